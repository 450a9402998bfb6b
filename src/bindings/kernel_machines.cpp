// Bindings of core/distances.hpp, core/kernel_sgd.hpp, core/l2_dual.hpp and core/one_vs_one.hpp.
#include <algorithm>
#include <limits>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"
#include "bindings/problems.hpp"
#include "core/distances.hpp"
#include "core/kernel_sgd.hpp"
#include "core/l2_dual.hpp"
#include "core/one_vs_one.hpp"
#include "core/parallel.hpp"

using namespace cutsvm;

namespace {

template <class T>
using CubeOut = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t MANY = 8;  // versions that are trained together; the other case is one

// Calls use(W) as a constant: how many versions there are.
template <class Use>
void with_width(std::size_t width, const Use& use) {
    check(width == 1 || width == MANY, "1 or 8 versions expected");
    if (width == 1)
        use(std::integral_constant<std::size_t, 1>{});
    else
        use(std::integral_constant<std::size_t, MANY>{});
}

Gram gram_of(const Array2D<float>& values) {
    check(values.stride(1) == 1 || values.shape(1) <= 1, "kernel values: contiguous rows expected");
    return {values.data(), extent(values), extent(values, 1), values.stride(0)};
}

void kernel_sgd(const Array2D<float>& values, const Rows32& row_place, const Rows32& column_place, const Rows32& rows,
                const Vector<double>& a, const Counts& first, const Vector<double>& scale, const Vector<double>& tail,
                std::int64_t epochs, const Vector<double>& margin, const Counts& begin, const Counts& end,
                const VectorOut<std::int32_t>& slot, const VectorOut<std::int32_t>& columns,
                const Array2DOut<double>& beta, const Array2DOut<double>& mean, const VectorOut<std::int64_t>& used,
                int threads) {
    const Gram gram = gram_of(values);
    const Problems problems = problems_of(rows, a, first);
    const std::int64_t total = extent(rows), count = problems.count();
    check(row_place.shape(0) == column_place.shape(0), "row_place and column_place differ in length");
    check_within(rows, 0, extent(row_place), "rows: row numbers within range expected");
    check_within(row_place, -1, gram.rows, "row_place: -1 or rows of the kernel values expected");
    check_within(column_place, -1, gram.columns, "column_place: -1 or columns of the kernel values expected");
    check(epochs > 0 && extent(scale) == total * epochs && tail.shape(0) == scale.shape(0),
          "scale, tail: one entry per step expected");
    check(extent(slot) == total && extent(columns) == total && extent(beta) == total && extent(mean) == total,
          "slot, columns, beta, mean: one entry per row of a problem expected");
    check(beta.shape(1) == mean.shape(1) && margin.shape(0) == beta.shape(1),
          "margin, beta, mean: as many versions expected");
    check(extent(begin) == count && extent(end) == count && extent(used) == count,
          "begin, end, used: one entry per problem expected");
    for (std::int64_t p = 0; p < problems.count(); ++p) {
        const std::int64_t from = problems.begin(p);
        const std::int64_t m = problems.size(p), steps = view(end)[p];
        check(0 <= view(begin)[p] && view(begin)[p] <= steps && steps <= epochs * m,
              "begin, end: 0 <= begin <= end <= steps expected");
        for (std::int64_t t = view(begin)[p]; t < std::min(steps, view(begin)[p] + m); ++t) {
            const std::int32_t i = view(rows)[from + t % m];
            check(view(row_place)[i] >= 0 && view(column_place)[i] >= 0, "rows: one of these steps has no place");
        }
        check(0 <= view(used)[p] && view(used)[p] <= m, "used: more than rows");
        for (std::int64_t k = from; k < from + view(used)[p]; ++k)
            check(0 <= view(columns)[k] && view(columns)[k] < gram.columns,
                  "columns: columns of the kernel values expected");
        for (std::int64_t k = from; k < from + m; ++k)
            check(-1 <= view(slot)[k] && view(slot)[k] < view(used)[p], "slot: not in the support");
    }
    const SgdState state{view(slot),
                         view(columns),
                         {beta.data(), static_cast<std::int64_t>(beta.size())},
                         {mean.data(), static_cast<std::int64_t>(mean.size())},
                         view(used)};
    with_width(beta.shape(1), [&](auto width) {
        constexpr std::size_t W = decltype(width)::value;
        Sums<W> margins;
        std::copy_n(margin.data(), W, margins.begin());
        released([&] {
            Interrupt interrupt;
            for_tasks(
                problems.count(), threads,
                [&](std::int64_t p) {
                    sgd_steps<W>(gram, {view(row_place), view(column_place)}, problems,
                                 {view(scale), view(tail), epochs}, margins, p, view(begin)[p], view(end)[p], state,
                                 interrupt);
                },
                interrupt);
        });
    });
}

Machines machines_of(const Gram& gram, const Counts& first, const Rows32& columns, const Array2DOut<double>& coef,
                     const Counts& used, const Array2DOut<double>& intercept) {
    check(intercept.shape(0) == used.shape(0) && intercept.shape(1) == coef.shape(1),
          "intercept: machines x versions expected");
    check(first.shape(0) == used.shape(0) + 1 && columns.shape(0) == coef.shape(0), "machines: lengths differ");
    const auto size = extent(columns);
    for (std::int64_t p = 0; p < extent(used); ++p) {
        const std::int64_t from = view(first)[p], to = from + view(used)[p];
        check(0 <= from && from <= to && to <= size, "machines: supports within columns expected");
        for (std::int64_t k = from; k < to; ++k)
            check(0 <= columns.data()[k] && columns.data()[k] < gram.columns,
                  "machines: columns of the kernel values expected");
    }
    return {view(first), view(used), columns.data(), coef.data(), intercept.data()};
}

void machine_scores(const Array2D<float>& values, const Rows32& rows, const Counts& first, const Rows32& columns,
                    const Array2DOut<double>& coef, const Counts& used, const Array2DOut<double>& intercept,
                    const CubeOut<double>& out, int threads) {
    const Gram gram = gram_of(values);
    check_within(rows, 0, gram.rows, "rows: row numbers within range expected");
    const Machines machines = machines_of(gram, first, columns, coef, used, intercept);
    check(out.shape(0) == rows.shape(0) && out.shape(1) == used.shape(0) && out.shape(2) == coef.shape(1),
          "out: rows x machines x versions expected");
    with_width(coef.shape(1), [&](auto width) {
        constexpr std::size_t W = decltype(width)::value;
        const auto n = extent(rows);
        released([&] {
            for_tasks((n + TILE - 1) / TILE, threads, [&](std::int64_t number) {
                const std::int64_t i = number * TILE;
                const auto tile = view(rows).part(i, std::min(TILE, n - i));
                score_tile<W>(gram, machines, tile, out.data() + i * machines.count() * static_cast<std::int64_t>(W));
            });
        });
    });
}

ClassPairs pairs_of(const Rows32& low, const Rows32& high, std::int64_t machines, std::int64_t classes) {
    check(extent(low) == machines && extent(high) == machines, "low, high: one entry per machine expected");
    check_within(low, 0, classes, "low: classes below the number of classes expected");
    check_within(high, 0, classes, "high: classes below the number of classes expected");
    return {view(low), view(high)};
}

void pair_decisions(const Array2D<double>& scores, const Rows32& low, const Rows32& high,
                    const Array2DOut<double>& out) {
    check(scores.stride(1) == 1 || scores.shape(1) <= 1, "scores: contiguous rows expected");
    check(scores.shape(0) == out.shape(0), "scores and out differ in length");
    const std::int64_t classes = extent(out, 1);
    const ClassPairs pairs = pairs_of(low, high, extent(scores, 1), classes);
    released([&] {
        std::vector<double> trust(classes);
        for (std::int64_t i = 0; i < extent(out); ++i) {
            const double* own = scores.data() + i * scores.stride(0);
            decide(pairs, own, 1, {out.data() + i * classes, classes}, trust);
        }
    });
}

void bound_count_hits(const Array2D<float>& values, const Rows32& rows, const Rows32& labels, const Counts& first,
                      const Rows32& columns, const Array2DOut<double>& coef, const Counts& used,
                      const Array2DOut<double>& intercept, const Rows32& low, const Rows32& high, std::int64_t classes,
                      const VectorOut<std::int64_t>& hits, int threads) {
    const Gram gram = gram_of(values);
    check_within(rows, 0, gram.rows, "rows: row numbers within range expected");
    check(labels.shape(0) == rows.shape(0) && hits.shape(0) == coef.shape(1), "labels, hits: lengths differ");
    const Machines machines = machines_of(gram, first, columns, coef, used, intercept);
    const ClassPairs pairs = pairs_of(low, high, extent(used), classes);
    with_width(coef.shape(1), [&](auto width) {
        constexpr std::size_t W = decltype(width)::value;
        const auto found =
            released([&] { return count_hits<W>(gram, machines, pairs, view(rows), view(labels), classes, threads); });
        std::copy_n(found.begin(), W, hits.data());
    });
}

void kernel_l2(const Array2D<float>& values, const Rows32& rows, const Vector<double>& a, const Counts& first,
               const Vector<double>& Cs, const std::string& method, double tol, std::int64_t budget, double seconds,
               const Array2DOut<double>& alpha, const CubeOut<double>& seen, int threads) {
    const Gram gram = gram_of(values);
    const Problems problems = problems_of(rows, a, first);
    check_within(rows, 0, std::min(gram.rows, gram.columns), "rows: row numbers within range expected");
    const std::int64_t count = problems.count(), versions = extent(Cs);
    check(extent(alpha) == extent(rows) && extent(alpha, 1) >= versions && versions > 0,
          "alpha: rows x versions expected");
    check(extent(seen) == count && extent(seen, 1) == versions && seen.shape(2) == 3,
          "seen: problems x versions x 3 expected");
    check(method == "isda" || method == "min_norm" || method == "hinge", "method: isda, min_norm or hinge expected");
    for (std::int64_t p = 0; p < problems.count(); ++p) {
        const auto own = view(a).part(problems.begin(p), problems.size(p));
        const auto weighs = [](double value) { return value != 0.0; };
        check(std::any_of(own.begin(), own.end(), weighs), "a: a problem without weight");
    }
    const L2Method how = method == "isda"       ? L2Method::isda
                         : method == "min_norm" ? L2Method::min_norm
                                                : L2Method::hinge;
    std::vector<L2Seen> found(count * versions);
    released([&] {
        solve_all(gram, problems, view(Cs), how, tol, budget, seconds, alpha.data(), extent(alpha, 1), found.data(),
                  threads);
    });
    double* out = seen.data();
    for (const L2Seen& one : found) *out++ = one.primal, *out++ = one.dual, *out++ = static_cast<double>(one.steps);
}

void linear_sgd(const Matrix& X, const Rows32& rows, const Vector<double>& a, const Vector<double>& scale,
                const Vector<double>& tail, double margin, std::int64_t begin, std::int64_t end,
                const VectorOut<double>& theta, const VectorOut<double>& beta, const VectorOut<double>& mean) {
    check_within(rows, 0, X.n(), "rows: row numbers below n expected");
    check(rows.shape(0) > 0 && a.shape(0) == rows.shape(0) && beta.shape(0) == rows.shape(0) &&
              mean.shape(0) == rows.shape(0),
          "rows, a, beta, mean: lengths differ");
    check(0 <= begin && begin <= end && end <= extent(scale) && tail.shape(0) == scale.shape(0),
          "scale, tail: one entry per step expected");
    check(extent(theta) == X.d(), "theta: d entries expected");
    X.visit([&](const auto& x) {
        released([&] {
            linear_sgd_steps(x, view(rows), view(a), view(scale), view(tail), margin, begin, end, theta.data(),
                             view(beta), view(mean));
        });
    });
}

void linear_ascent(const Matrix& X, const Rows32& rows, const Vector<double>& a, double C, std::int64_t begin,
                   std::int64_t end, const VectorOut<double>& w, const VectorOut<double>& alpha) {
    check_within(rows, 0, X.n(), "rows: row numbers below n expected");
    check(rows.shape(0) > 0 && a.shape(0) == rows.shape(0) && alpha.shape(0) == rows.shape(0),
          "rows, a, alpha: lengths differ");
    check(0 <= begin && begin <= end, "begin, end: 0 <= begin <= end expected");
    check(extent(w) == X.d(), "w: d entries expected");
    X.visit([&](const auto& x) {
        released([&] { linear_ascent_steps(x, view(rows), view(a), C, begin, end, w.data(), view(alpha)); });
    });
}

void run_pair_distances(const Matrix& X, const Counts& left, const Matrix& Z, const Counts& right,
                        const VectorOut<double>& out) {
    check(X.d() == Z.d(), "X and Z differ in features");
    check(left.shape(0) == out.shape(0) && right.shape(0) == out.shape(0), "left, right, out: lengths differ");
    for (const std::int64_t i : view(left)) check(0 <= i && i < X.n(), "left: row numbers below n expected");
    for (const std::int64_t j : view(right)) check(0 <= j && j < Z.n(), "right: row numbers below n expected");
    X.visit_with(Z, [&](const auto& x, const auto& z) {
        if constexpr (requires { pair_distance(x, 0, z, 0); })
            released([&] { pair_distances(x, view(left), z, view(right), view(out)); });
        else
            check(false, "X, Z: float64 in C order or CSR expected");
    });
}

}  // namespace

void bind_kernel_machines(nb::module_& m, BoundMatrix& matrix) {
    m.attr("VERSIONS") = MANY;
    m.def("kernel_sgd", &kernel_sgd, "values"_a.noconvert(), "row_place"_a.noconvert(), "column_place"_a.noconvert(),
          "rows"_a.noconvert(), "a"_a.noconvert(), "first"_a.noconvert(), "scale"_a.noconvert(), "tail"_a.noconvert(),
          "epochs"_a, "margin"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "slot"_a.noconvert(),
          "columns"_a.noconvert(), "beta"_a.noconvert(), "mean"_a.noconvert(), "used"_a.noconvert(), "threads"_a);
    m.def("machine_scores", &machine_scores, "values"_a.noconvert(), "rows"_a.noconvert(), "first"_a.noconvert(),
          "columns"_a.noconvert(), "coef"_a.noconvert(), "used"_a.noconvert(), "intercept"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a);
    m.def("pair_decisions", &pair_decisions, "scores"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(),
          "out"_a.noconvert());
    m.def("count_hits", &bound_count_hits, "values"_a.noconvert(), "rows"_a.noconvert(), "labels"_a.noconvert(),
          "first"_a.noconvert(), "columns"_a.noconvert(), "coef"_a.noconvert(), "used"_a.noconvert(),
          "intercept"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "classes"_a, "hits"_a.noconvert(),
          "threads"_a);
    m.def("kernel_l2", &kernel_l2, "values"_a.noconvert(), "rows"_a.noconvert(), "a"_a.noconvert(),
          "first"_a.noconvert(), "Cs"_a.noconvert(), "method"_a, "tol"_a, "budget"_a, "seconds"_a,
          "alpha"_a.noconvert(), "seen"_a.noconvert(), "threads"_a);
    matrix
        .def("linear_sgd", &linear_sgd, "rows"_a.noconvert(), "a"_a.noconvert(), "scale"_a.noconvert(),
             "tail"_a.noconvert(), "margin"_a, "begin"_a, "end"_a, "theta"_a.noconvert(), "beta"_a.noconvert(),
             "mean"_a.noconvert())
        .def("linear_ascent", &linear_ascent, "rows"_a.noconvert(), "a"_a.noconvert(), "C"_a, "begin"_a, "end"_a,
             "w"_a.noconvert(), "alpha"_a.noconvert())
        .def("pair_distances", &run_pair_distances, "left"_a.noconvert(), "Z"_a, "right"_a.noconvert(),
             "out"_a.noconvert());
}
