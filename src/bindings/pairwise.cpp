// Bindings of core/pairwise.hpp.
#include "core/pairwise.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"

using namespace cutsvm;

void bind_pairwise(nb::module_& m) {
    // What calls leave for the next one.
    nb::class_<PairMemory>(m, "PairMemory").def(nb::init<>());
    // requires: levels[q] is more than every y of query q, which the caller has made sure of.
    m.def(
        "pair_slopes",
        [](const Vector<std::int32_t>& y, const Vector<double>& s, const Vector<std::int64_t>& starts,
           const Vector<std::int64_t>& levels, const Vector<double>& f, double margin, const VectorOut<double>& g,
           const VectorOut<double>& weights, const VectorOut<double>& losses, PairMemory& memory, int threads) {
            const std::size_t n = y.shape(0), queries = levels.shape(0);
            check(s.shape(0) == n && f.shape(0) == n && g.shape(0) == n, "one entry per row expected");
            check(starts.shape(0) == queries + 1 && weights.shape(0) == queries && losses.shape(0) == queries,
                  "starts, weights, losses: one entry per query expected");
            const auto edges = view(starts);
            check(edges.front() == 0 && edges.back() == static_cast<std::int64_t>(n) &&
                      std::is_sorted(edges.begin(), edges.end()),
                  "starts: rising from 0 to n expected");
            for (std::size_t q = 0; q < queries; ++q)
                check(edges[q + 1] - edges[q] < std::int64_t{1} << 31, "queries of fewer than 2^31 rows expected");
            const Pairs pairs{view(y), view(s), edges, view(levels), margin};
            released([&] { pair_slopes(pairs, view(f), view(g), view(weights), view(losses), memory, threads); });
        },
        "y"_a.noconvert(), "s"_a.noconvert(), "starts"_a.noconvert(), "levels"_a.noconvert(), "f"_a.noconvert(),
        "margin"_a, "g"_a.noconvert(), "weights"_a.noconvert(), "losses"_a.noconvert(), "memory"_a, "threads"_a);
}
