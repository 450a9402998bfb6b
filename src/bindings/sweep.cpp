// Bindings of core/sweep.hpp for each kind of rows.
#include "bindings/arrays.hpp"
#include "bindings/matrices.hpp"
#include "core/sweep.hpp"

using namespace cutsvm;

namespace {

template <class Rows>
void check_scores(const Rows& rows, const Vector<double>& w, const VectorOut<double>& out) {
    check(static_cast<std::int64_t>(w.shape(0)) == rows.d, "w: one entry per feature expected");
    check(static_cast<std::int64_t>(out.shape(0)) == rows.n, "out: one entry per row expected");
}

template <class Rows>
std::int64_t run_accumulate(const Rows& rows, const VectorOut<double>& old, const Vector<double>& fresh,
                            const Vector<std::int64_t>& bounds, const MatrixOut<double>& sums,
                            const VectorOut<double>& moved, int threads) {
    const auto n = static_cast<std::size_t>(rows.n);
    const auto width = static_cast<std::int64_t>(sums.shape(1));
    check(old.shape(0) == n && fresh.shape(0) == n, "coefficients: one entry per row expected");
    check(width == rows.d || width == rows.d + 1, "sums: d or d + 1 columns expected");
    check(bounds.shape(0) == sums.shape(0) + 1 && sums.shape(0) > 0, "bounds: one more than shards expected");
    check(moved.shape(0) == sums.shape(0), "moved: one entry per shard expected");
    const auto edges = view(bounds);
    check(edges.front() == 0 && edges.back() == rows.n && std::is_sorted(edges.begin(), edges.end()),
          "bounds: rising from 0 to n expected");
    return released(
        [&] { return accumulate(rows, view(old), view(fresh), edges, sums.data(), width, view(moved), threads); });
}

template <class T>
void bind_dense(nb::module_& m) {
    m.def(
        "dense_scores",
        [](const Matrix<T>& X, const Vector<double>& w, double b, const VectorOut<double>& out, int threads) {
            with_dense(X, [&](const auto& rows) {
                check_scores(rows, w, out);
                released([&] { scores(rows, w.data(), b, view(out), threads); });
            });
        },
        "X"_a.noconvert(), "w"_a.noconvert(), "b"_a, "out"_a.noconvert(), "threads"_a);
    m.def(
        "dense_squares",
        [](const Matrix<T>& X, const VectorOut<double>& out, int threads) {
            with_dense(X, [&](const auto& rows) {
                check(static_cast<std::int64_t>(out.shape(0)) == rows.n, "out: one entry per row expected");
                released([&] { squares(rows, view(out), threads); });
            });
        },
        "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def(
        "dense_accumulate",
        [](const Matrix<T>& X, const VectorOut<double>& old, const Vector<double>& fresh,
           const Vector<std::int64_t>& bounds, const MatrixOut<double>& sums, const VectorOut<double>& moved,
           int threads) {
            return with_dense(
                X, [&](const auto& rows) { return run_accumulate(rows, old, fresh, bounds, sums, moved, threads); });
        },
        "X"_a.noconvert(), "old"_a.noconvert(), "fresh"_a.noconvert(), "bounds"_a.noconvert(),
        "sums"_a.noconvert(), "moved"_a.noconvert(), "threads"_a);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    m.def(
        "sparse_scores",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const Vector<double>& w,
           double b, const VectorOut<double>& out, int threads) {
            const auto rows = sparse(values, columns, pointers, static_cast<std::int64_t>(w.shape(0)));
            check_scores(rows, w, out);
            released([&] { scores(rows, w.data(), b, view(out), threads); });
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "w"_a.noconvert(), "b"_a,
        "out"_a.noconvert(), "threads"_a);
    m.def(
        "sparse_squares",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const VectorOut<double>& out,
           int threads) {
            const auto rows = sparse(values, columns, pointers, 0);
            check(static_cast<std::int64_t>(out.shape(0)) == rows.n, "out: one entry per row expected");
            released([&] { squares(rows, view(out), threads); });
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def(
        "sparse_accumulate",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, std::int64_t d,
           const VectorOut<double>& old, const Vector<double>& fresh, const Vector<std::int64_t>& bounds,
           const MatrixOut<double>& sums, const VectorOut<double>& moved, int threads) {
            return run_accumulate(sparse(values, columns, pointers, d), old, fresh, bounds, sums, moved, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "d"_a, "old"_a.noconvert(),
        "fresh"_a.noconvert(), "bounds"_a.noconvert(), "sums"_a.noconvert(), "moved"_a.noconvert(), "threads"_a);
}

template <class T>
void bind_all_finite(nb::module_& m) {
    m.def(
        "all_finite",
        [](const Vector<T>& values, int threads) { return released([&] { return all_finite(view(values), threads); }); },
        "values"_a.noconvert(), "threads"_a);
}

template <class I>
void bind_valid_csr(nb::module_& m) {
    m.def(
        "valid_csr",
        [](const Vector<I>& columns, const Vector<I>& pointers, std::int64_t d, int threads) {
            check(pointers.shape(0) > 0, "pointers: n + 1 entries expected");
            bool sorted = false;
            const bool valid = released([&] { return valid_csr(view(columns), view(pointers), d, sorted, threads); });
            return std::tuple(valid, sorted);
        },
        "columns"_a.noconvert(), "pointers"_a.noconvert(), "d"_a, "threads"_a);
}

}  // namespace

void bind_sweep(nb::module_& m) {
    bind_all_finite<float>(m);
    bind_all_finite<double>(m);
    bind_valid_csr<std::int32_t>(m);
    bind_valid_csr<std::int64_t>(m);
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    m.def(
        "blend",
        [](const Vector<double>& from, const Vector<double>& to, double k, const VectorOut<double>& out, int threads) {
            check(from.shape(0) == out.shape(0) && to.shape(0) == out.shape(0), "vectors differ in length");
            released([&] { blend(view(from), view(to), k, view(out), threads); });
        },
        "from_"_a.noconvert(), "to"_a.noconvert(), "k"_a, "out"_a.noconvert(), "threads"_a);
}
