// The bound matrix and the bindings of core/sweep.hpp.
#include "core/sweep.hpp"

#include "core/gram.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"

using namespace cutsvm;

namespace {

template <class Rows>
inline constexpr bool IS_DENSE = requires(const Rows& rows) { rows.stride; };

template <class Array>
void check_per_row(const Matrix& X, const Array& array, const char* what) {
    check(extent(array) == X.n(), what);
}

void run_scores(const Matrix& X, const Vector<double>& w, double b, const VectorOut<double>& out) {
    check(extent(w) == X.d(), "w: one entry per feature expected");
    check_per_row(X, out, "out: one entry per row expected");
    X.visit([&](const auto& rows) { released([&] { scores(rows, w.data(), b, view(out), X.threads()); }); });
}

void run_compensated_scores(const Matrix& X, const Vector<double>& w, double b, const VectorOut<double>& out,
                            const VectorOut<double>& rest) {
    check(extent(w) == X.d(), "w: one entry per feature expected");
    check_per_row(X, out, "out: one entry per row expected");
    check_per_row(X, rest, "rest: one entry per row expected");
    X.visit([&](const auto& rows) {
        released([&] { compensated_scores(rows, w.data(), b, view(out), view(rest), X.threads()); });
    });
}

std::int64_t run_accumulate(const Matrix& X, const VectorOut<double>& old, const Vector<double>& fresh,
                            const Vector<std::int64_t>& bounds, const Array2DOut<double>& sums,
                            const VectorOut<double>& moved) {
    const auto width = extent(sums, 1);
    check_per_row(X, old, "old: one entry per row expected");
    check_per_row(X, fresh, "fresh: one entry per row expected");
    check(width == X.d() || width == X.d() + 1, "sums: d or d + 1 columns expected");
    check(moved.shape(0) == sums.shape(0), "moved: one entry per shard expected");
    check_edges(bounds, extent(sums), X.n());
    return X.visit([&](const auto& rows) {
        return released([&] {
            return accumulate(rows, view(old), view(fresh), view(bounds), sums.data(), width, view(moved), X.threads());
        });
    });
}

std::int64_t run_add_pieces(const Matrix& X, const VectorOut<double>& old, const Vector<double>& fresh,
                            const Vector<std::int64_t>& edges, const Array2DOut<double>& partial,
                            const VectorOut<double>& travel) {
    const auto width = extent(partial, 1);
    check_per_row(X, old, "old: one entry per row expected");
    check_per_row(X, fresh, "fresh: one entry per row expected");
    check(width == X.d() || width == X.d() + 1, "partial: d or d + 1 columns expected");
    check(travel.shape(0) == partial.shape(0), "travel: one entry per piece expected");
    check_edges(edges, extent(partial), X.n());
    return X.visit([&](const auto& rows) {
        return released([&] {
            return add_pieces(rows, view(old), view(fresh), view(edges), partial.data(), width, view(travel),
                              X.threads());
        });
    });
}

void run_row_hashes(const Matrix& X, const VectorOut<std::uint64_t>& out) {
    check_per_row(X, out, "out: one entry per row expected");
    X.visit([&](const auto& rows) { released([&] { row_hashes(rows, view(out), X.threads()); }); });
}

void run_squares(const Matrix& X, const VectorOut<double>& out) {
    check_per_row(X, out, "out: one entry per row expected");
    X.visit([&](const auto& rows) { released([&] { squares(rows, view(out), X.threads()); }); });
}

void run_column_ranges(const Matrix& X, const VectorOut<double>& low, const VectorOut<double>& high) {
    check(X.n() > 0, "X: at least one row expected");
    check(extent(low) == X.d() && high.shape(0) == low.shape(0), "low, high: one entry per feature expected");
    X.visit([&]<class Rows>(const Rows& rows) {
        if constexpr (IS_DENSE<Rows>)
            released([&] { column_ranges(rows, view(low), view(high), X.threads()); });
        else
            check(false, "X: a dense matrix expected");
    });
}

void run_count_nonzeros(const Matrix& X, const VectorOut<std::int64_t>& counts) {
    check_per_row(X, counts, "counts: one entry per row expected");
    X.visit([&](const auto& rows) { released([&] { count_nonzeros(rows, view(counts), X.threads()); }); });
}

template <class T, class I>
void run_compress(const Matrix& X, const Vector<I>& pointers, const VectorOut<T>& values, const VectorOut<I>& columns) {
    check(extent(pointers) == X.n() + 1, "pointers: n + 1 entries expected");
    const auto ends = view(pointers);
    check(ends.front() == 0 && std::is_sorted(ends.begin(), ends.end()), "pointers: rising from 0 expected");
    const std::int64_t stored = ends.back();
    check(extent(values) == stored && extent(columns) == stored, "values, columns: wrong length");
    X.visit([&]<class Rows>(const Rows& rows) {
        if constexpr (IS_DENSE<Rows> && std::is_same_v<typename Rows::Value, T>)
            released([&] { compress(rows, ends, view(values), view(columns), X.threads()); });
        else
            check(false, "values: the type of the dense matrix expected");
    });
}

void check_which(const Vector<std::int64_t>& which, std::int64_t n) {
    for (const std::int64_t i : view(which)) check(0 <= i && i < n, "which: row numbers below n expected");
}

template <class T>
void run_take(const Matrix& X, const Vector<std::int64_t>& which, const Array2DOut<T>& out) {
    check(out.shape(0) == which.shape(0) && extent(out, 1) == X.d(), "out: one row per row taken expected");
    check_which(which, X.n());
    X.visit([&]<class Rows>(const Rows& rows) {
        if constexpr (IS_DENSE<Rows> && std::is_same_v<typename Rows::Value, T>)
            released([&] { take(rows, view(which), out.data(), X.threads()); });
        else
            check(false, "out: the layout and type of the matrix expected");
    });
}

template <class T, class I>
void run_sparse_take(const Matrix& X, const Vector<std::int64_t>& which, const Vector<I>& pointers,
                     const VectorOut<T>& values, const VectorOut<I>& columns) {
    check_which(which, X.n());
    check(pointers.shape(0) == which.shape(0) + 1, "pointers: one more than rows taken expected");
    X.visit([&]<class Rows>(const Rows& rows) {
        if constexpr (std::is_same_v<Rows, SparseRows<T, I>>) {
            std::int64_t next = 0;
            for (std::int64_t k = 0; k < extent(which); ++k) {
                check(pointers.data()[k] == next, "pointers: sums of lengths expected");
                const std::int64_t row = which.data()[k];
                next += rows.pointers[row + 1] - rows.pointers[row];
            }
            check(extent(values) == next && columns.shape(0) == values.shape(0), "values, columns: wrong length");
            released([&] { take(rows, view(which), view(pointers), view(values), view(columns), X.threads()); });
        } else {
            check(false, "values, columns: the layout and types of the matrix expected");
        }
    });
}

void run_gram(const Matrix& X, const Vector<double>& weights, const Array2DOut<double>& out) {
    check_per_row(X, weights, "weights: one entry per row expected");
    check(extent(out) == X.d() + 1 && extent(out, 1) == X.d() + 1, "out: d + 1 rows and columns expected");
    X.visit([&]<class Rows>(const Rows& rows) {
        if constexpr (IS_DENSE<Rows>)
            check(false, "X: a sparse matrix expected");
        else
            released([&] { gram(rows, view(weights), out.data(), X.threads()); });
    });
}

template <class T>
void bind_dense(BoundMatrix& matrix) {
    matrix.def(nb::init<const Array2D<T>&, int>(), "X"_a.noconvert(), "threads"_a = 1)
        .def("take_into", &run_take<T>, "which"_a.noconvert(), "out"_a.noconvert());
}

template <class T, class I>
void bind_sparse(BoundMatrix& matrix) {
    matrix
        .def(nb::init<const Vector<T>&, const Vector<I>&, const Vector<I>&, std::int64_t, int>(),
             "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "d"_a, "threads"_a = 1)
        .def("take_into", &run_sparse_take<T, I>, "which"_a.noconvert(), "pointers"_a.noconvert(),
             "values"_a.noconvert(), "columns"_a.noconvert())
        .def("compress", &run_compress<T, I>, "pointers"_a.noconvert(), "values"_a.noconvert(),
             "columns"_a.noconvert());
}

template <class T>
void bind_all_finite(nb::module_& m) {
    m.def(
        "all_finite",
        [](const Vector<T>& values, int threads) {
            return released([&] { return all_finite(view(values), threads); });
        },
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

void bind_sweep(nb::module_& m, BoundMatrix& matrix) {
    bind_dense<float>(matrix);
    bind_dense<double>(matrix);
    bind_sparse<float, std::int32_t>(matrix);
    bind_sparse<float, std::int64_t>(matrix);
    bind_sparse<double, std::int32_t>(matrix);
    bind_sparse<double, std::int64_t>(matrix);
    matrix.def_prop_ro("n", &Matrix::n)
        .def_prop_ro("d", &Matrix::d)
        .def_prop_ro("entries", &Matrix::entries)
        .def_prop_ro("threads", &Matrix::threads)
        .def("scores", &run_scores, "w"_a.noconvert(), "b"_a, "out"_a.noconvert())
        .def("compensated_scores", &run_compensated_scores, "w"_a.noconvert(), "b"_a, "out"_a.noconvert(),
             "rest"_a.noconvert())
        .def("accumulate", &run_accumulate, "old"_a.noconvert(), "fresh"_a.noconvert(), "bounds"_a.noconvert(),
             "sums"_a.noconvert(), "moved"_a.noconvert())
        .def("add_pieces", &run_add_pieces, "old"_a.noconvert(), "fresh"_a.noconvert(), "edges"_a.noconvert(),
             "partial"_a.noconvert(), "travel"_a.noconvert())
        .def("gram_into", &run_gram, "weights"_a.noconvert(), "out"_a.noconvert())
        .def("hashes", &run_row_hashes, "out"_a.noconvert())
        .def("squares", &run_squares, "out"_a.noconvert())
        .def("column_ranges", &run_column_ranges, "low"_a.noconvert(), "high"_a.noconvert())
        .def("count_nonzeros", &run_count_nonzeros, "counts"_a.noconvert());
    bind_all_finite<float>(m);
    bind_all_finite<double>(m);
    bind_valid_csr<std::int32_t>(m);
    bind_valid_csr<std::int64_t>(m);
    m.def(
        "cut_shards",
        [](const Vector<std::int64_t>& bounds) {
            check(bounds.shape(0) > 1, "bounds: two or more expected");
            return to_numpy(cut_shards(view(bounds)));
        },
        "bounds"_a.noconvert());
    m.def(
        "blend",
        [](const Vector<double>& from, const Vector<double>& to, double k, const VectorOut<double>& out, int threads) {
            check(from.shape(0) == out.shape(0) && to.shape(0) == out.shape(0), "vectors differ in length");
            released([&] { blend(view(from), view(to), k, view(out), threads); });
        },
        "from_"_a.noconvert(), "to"_a.noconvert(), "k"_a, "out"_a.noconvert(), "threads"_a);
}
