// Bindings of core/pairwise.hpp and core/pair_squares.hpp.
#include "core/pairwise.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"
#include "core/pair_squares.hpp"

using namespace cutsvm;

namespace {

// requires: levels[q] is more than every y of query q, which the caller has made sure of.
Pairs pairs_of(const Vector<std::int32_t>& y, const Vector<double>& s, const Vector<std::int64_t>& starts,
               const Vector<std::int64_t>& levels, double margin) {
    const std::size_t n = y.shape(0), queries = levels.shape(0);
    check(s.shape(0) == n, "one entry per row expected");
    check(starts.shape(0) == queries + 1, "starts: one entry per query expected, and one for the end");
    const auto edges = view(starts);
    check(edges.front() == 0 && edges.back() == static_cast<std::int64_t>(n) &&
              std::is_sorted(edges.begin(), edges.end()),
          "starts: rising from 0 to n expected");
    for (std::size_t q = 0; q < queries; ++q)
        check(edges[q + 1] - edges[q] < std::int64_t{1} << 31, "queries of fewer than 2^31 rows expected");
    return {view(y), view(s), edges, view(levels), margin};
}

// One entry per row.
template <class... Arrays>
void check_rows(const Pairs& pairs, const Arrays&... arrays) {
    check(((extent(arrays) == std::ssize(pairs.y)) && ...), "one entry per row expected");
}

}  // namespace

void bind_pairwise(nb::module_& m) {
    // What calls leave for the next one.
    nb::class_<PairMemory>(m, "PairMemory").def(nb::init<>());
    m.def(
        "pair_slopes",
        [](const Vector<std::int32_t>& y, const Vector<double>& s, const Vector<std::int64_t>& starts,
           const Vector<std::int64_t>& levels, const Vector<double>& f, double margin, const VectorOut<double>& g,
           const VectorOut<double>& weights, const VectorOut<double>& losses, PairMemory& memory, int threads) {
            const Pairs pairs = pairs_of(y, s, starts, levels, margin);
            check_rows(pairs, f, g);
            check(extent(weights) == pairs.queries() && extent(losses) == pairs.queries(),
                  "weights, losses: one entry per query expected");
            released([&] { pair_slopes(pairs, view(f), view(g), view(weights), view(losses), memory, threads); });
        },
        "y"_a.noconvert(), "s"_a.noconvert(), "starts"_a.noconvert(), "levels"_a.noconvert(), "f"_a.noconvert(),
        "margin"_a, "g"_a.noconvert(), "weights"_a.noconvert(), "losses"_a.noconvert(), "memory"_a, "threads"_a);
    // sums: one row (weight, loss, offset, size, magnitude) per query.
    m.def(
        "pair_squares",
        [](const Vector<std::int32_t>& y, const Vector<double>& s, const Vector<std::int64_t>& starts,
           const Vector<std::int64_t>& levels, const Vector<double>& f, double margin, const VectorOut<double>& g,
           const Array2DOut<double>& sums, PairMemory& memory, int threads) {
            const Pairs pairs = pairs_of(y, s, starts, levels, margin);
            check_rows(pairs, f, g);
            check(extent(sums) == pairs.queries() && extent(sums, 1) == 5, "sums: 5 entries per query expected");
            std::vector<SquareSums> found(levels.shape(0));
            released([&] { pair_squares(pairs, view(f), view(g), found, memory, threads); });
            double* out = sums.data();
            for (const SquareSums& own : found)
                for (const double sum : {own.weight, own.loss, own.offset, own.size, own.magnitude}) *out++ = sum;
        },
        "y"_a.noconvert(), "s"_a.noconvert(), "starts"_a.noconvert(), "levels"_a.noconvert(), "f"_a.noconvert(),
        "margin"_a, "g"_a.noconvert(), "sums"_a.noconvert(), "memory"_a, "threads"_a);
    m.def(
        "pair_products",
        [](const Vector<std::int32_t>& y, const Vector<double>& s, const Vector<std::int64_t>& starts,
           const Vector<std::int64_t>& levels, const Vector<double>& f, double margin, const Vector<double>& v,
           const VectorOut<double>& product, const VectorOut<double>& diagonal, PairMemory& memory, int threads) {
            const Pairs pairs = pairs_of(y, s, starts, levels, margin);
            check_rows(pairs, f, v, product, diagonal);
            released([&] { pair_products(pairs, view(f), view(v), view(product), view(diagonal), memory, threads); });
        },
        "y"_a.noconvert(), "s"_a.noconvert(), "starts"_a.noconvert(), "levels"_a.noconvert(), "f"_a.noconvert(),
        "margin"_a, "v"_a.noconvert(), "product"_a.noconvert(), "diagonal"_a.noconvert(), "memory"_a, "threads"_a);
}
