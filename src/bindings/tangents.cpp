// Bindings of core/tangents.hpp for each kind of rows.
#include "core/tangents.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrices.hpp"

using namespace cutsvm;

namespace {

// Arguments that do not depend on the kind of rows.
struct Points {
    const Vector<double>& a;
    const Matrix<double>& W;
    const Vector<double>& b;
    const Vector<std::int64_t>& edges;
    const MatrixOut<double>& partial;
    const MatrixOut<double>& heights;
};

template <class Rows>
void run_tangents(const Rows& rows, const Points& p, int threads) {
    const std::size_t points = p.b.shape(0);
    check(static_cast<std::int64_t>(p.a.shape(0)) == rows.n, "one entry per row expected");
    check(points > 0 && static_cast<std::int64_t>(points) <= POINTS, "1 to POINTS points expected");
    check(p.W.shape(0) == points && static_cast<std::int64_t>(p.W.shape(1)) == rows.d, "W: points x d expected");
    check((p.W.stride(1) == 1 || rows.d == 1) && (p.W.stride(0) == rows.d || points == 1), "W: rows side by side expected");
    check(static_cast<std::int64_t>(p.partial.shape(1)) == rows.d + 1, "partial: d + 1 columns expected");
    check(p.partial.shape(0) % points == 0, "partial: points for each piece expected");
    check(p.heights.shape(0) == p.partial.shape(0) && p.heights.shape(1) == 2, "heights: two for each plane expected");
    check_edges(p.edges, p.partial.shape(0) / points, rows.n);
    released([&] {
        hinge_tangents(rows, view(p.a), p.W.data(), view(p.b), view(p.edges), p.partial.data(), p.heights.data(), threads);
    });
}

template <class T>
void bind_dense(nb::module_& m) {
    m.def(
        "dense_hinge_tangents",
        [](const Matrix<T>& X, const Vector<double>& a, const Matrix<double>& W, const Vector<double>& b,
           const Vector<std::int64_t>& edges, const MatrixOut<double>& partial, const MatrixOut<double>& heights,
           int threads) {
            const Points points{a, W, b, edges, partial, heights};
            with_dense(X, [&](const auto& rows) { run_tangents(rows, points, threads); });
        },
        "X"_a.noconvert(), "a"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(), "edges"_a.noconvert(),
        "partial"_a.noconvert(), "heights"_a.noconvert(), "threads"_a);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    m.def(
        "sparse_hinge_tangents",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const Vector<double>& a,
           const Matrix<double>& W, const Vector<double>& b, const Vector<std::int64_t>& edges,
           const MatrixOut<double>& partial, const MatrixOut<double>& heights, int threads) {
            const Points points{a, W, b, edges, partial, heights};
            run_tangents(sparse(values, columns, pointers, static_cast<std::int64_t>(W.shape(1))), points, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "a"_a.noconvert(),
        "W"_a.noconvert(), "b"_a.noconvert(), "edges"_a.noconvert(), "partial"_a.noconvert(), "heights"_a.noconvert(),
        "threads"_a);
}

}  // namespace

void bind_tangents(nb::module_& m) {
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    m.attr("POINTS") = POINTS;
}
