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

// The same for one block of many rows; sums go on in `partial` and `travel`.
template <class Rows>
std::int64_t run_add_pieces(const Rows& rows, const VectorOut<double>& old, const Vector<double>& fresh,
                            const Vector<std::int64_t>& edges, const MatrixOut<double>& partial,
                            const VectorOut<double>& travel, int threads) {
    const auto n = static_cast<std::size_t>(rows.n);
    const auto width = static_cast<std::int64_t>(partial.shape(1));
    check(old.shape(0) == n && fresh.shape(0) == n, "coefficients: one entry per row expected");
    check(width == rows.d || width == rows.d + 1, "partial: d or d + 1 columns expected");
    check(travel.shape(0) == partial.shape(0), "travel: one entry per piece expected");
    check_edges(edges, partial.shape(0), rows.n);
    return released([&] {
        return add_pieces(rows, view(old), view(fresh), view(edges), partial.data(), width, view(travel), threads);
    });
}

template <class T>
void bind_dense(nb::module_& m) {
    m.def(
        "dense_add_pieces",
        [](const Matrix<T>& X, const VectorOut<double>& old, const Vector<double>& fresh,
           const Vector<std::int64_t>& edges, const MatrixOut<double>& partial, const VectorOut<double>& travel,
           int threads) {
            return with_dense(X, [&](const auto& rows) {
                return run_add_pieces(rows, old, fresh, edges, partial, travel, threads);
            });
        },
        "X"_a.noconvert(), "old"_a.noconvert(), "fresh"_a.noconvert(), "edges"_a.noconvert(),
        "partial"_a.noconvert(), "travel"_a.noconvert(), "threads"_a);
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
        "dense_compensated_scores",
        [](const Matrix<T>& X, const Vector<double>& w, double b, const VectorOut<double>& out,
           const VectorOut<double>& rest, int threads) {
            with_dense(X, [&](const auto& rows) {
                check_scores(rows, w, out);
                check_scores(rows, w, rest);
                released([&] { compensated_scores(rows, w.data(), b, view(out), view(rest), threads); });
            });
        },
        "X"_a.noconvert(), "w"_a.noconvert(), "b"_a, "out"_a.noconvert(), "rest"_a.noconvert(), "threads"_a);
    m.def(
        "dense_row_hashes",
        [](const Matrix<T>& X, const VectorOut<std::uint64_t>& out, int threads) {
            with_dense(X, [&](const auto& rows) {
                check(static_cast<std::int64_t>(out.shape(0)) == rows.n, "out: one entry per row expected");
                released([&] { row_hashes(rows, view(out), threads); });
            });
        },
        "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def(
        "column_ranges",
        [](const Matrix<T>& X, const VectorOut<double>& low, const VectorOut<double>& high, int threads) {
            with_dense(X, [&](const auto& rows) {
                check(rows.n > 0, "X: at least one row expected");
                check(static_cast<std::int64_t>(low.shape(0)) == rows.d && high.shape(0) == low.shape(0),
                      "low, high: one entry per feature expected");
                released([&] { column_ranges(rows, view(low), view(high), threads); });
            });
        },
        "X"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "threads"_a);
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

void check_which(const Vector<std::int64_t>& which, std::int64_t n) {
    for (const std::int64_t i : view(which)) check(0 <= i && i < n, "which: a row that is not there");
}

template <class T>
void bind_take(nb::module_& m) {
    m.def(
        "dense_take",
        [](const Matrix<T>& X, const Vector<std::int64_t>& which, const MatrixOut<T>& out, int threads) {
            with_dense(X, [&](const auto& rows) {
                check(out.shape(0) == which.shape(0) && static_cast<std::int64_t>(out.shape(1)) == rows.d,
                      "out: one row per row taken expected");
                check_which(which, rows.n);
                released([&] { take(rows, view(which), out.data(), threads); });
            });
        },
        "X"_a.noconvert(), "which"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

template <class T, class I>
void bind_sparse_take(nb::module_& m) {
    m.def(
        "sparse_take",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers,
           const Vector<std::int64_t>& which, const Vector<I>& to_pointers, const VectorOut<T>& to_values,
           const VectorOut<I>& to_columns, int threads) {
            const auto rows = sparse(values, columns, pointers, 0);
            check_which(which, rows.n);
            check(to_pointers.shape(0) == which.shape(0) + 1, "to_pointers: one more than rows taken expected");
            std::int64_t next = 0;
            for (std::size_t k = 0; k < which.shape(0); ++k) {
                check(static_cast<std::int64_t>(to_pointers.data()[k]) == next, "to_pointers: sums of lengths expected");
                const std::int64_t row = which.data()[k];
                next += rows.pointers[row + 1] - rows.pointers[row];
            }
            check(static_cast<std::int64_t>(to_values.shape(0)) == next && to_columns.shape(0) == to_values.shape(0),
                  "to_values, to_columns: wrong length");
            released([&] { take(rows, view(which), view(to_pointers), view(to_values), view(to_columns), threads); });
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "which"_a.noconvert(),
        "to_pointers"_a.noconvert(), "to_values"_a.noconvert(), "to_columns"_a.noconvert(), "threads"_a);
}

template <class T>
void bind_count_nonzeros(nb::module_& m) {
    m.def(
        "count_nonzeros",
        [](const Matrix<T>& X, const VectorOut<std::int64_t>& counts, int threads) {
            with_dense(X, [&](const auto& rows) {
                check(static_cast<std::int64_t>(counts.shape(0)) == rows.n, "counts: one entry per row expected");
                released([&] { count_nonzeros(rows, view(counts), threads); });
            });
        },
        "X"_a.noconvert(), "counts"_a.noconvert(), "threads"_a);
}

template <class T, class I>
void bind_compress(nb::module_& m) {
    m.def(
        "compress",
        [](const Matrix<T>& X, const Vector<I>& pointers, const VectorOut<T>& values, const VectorOut<I>& columns,
           int threads) {
            with_dense(X, [&](const auto& rows) {
                check(static_cast<std::int64_t>(pointers.shape(0)) == rows.n + 1, "pointers: n + 1 entries expected");
                const auto ends = view(pointers);
                check(ends.front() == 0 && std::is_sorted(ends.begin(), ends.end()), "pointers: rising from 0 expected");
                const auto stored = static_cast<std::size_t>(ends.back());
                check(values.shape(0) == stored && columns.shape(0) == stored, "values, columns: wrong length");
                released([&] { compress(rows, view(pointers), view(values), view(columns), threads); });
            });
        },
        "X"_a.noconvert(), "pointers"_a.noconvert(), "values"_a.noconvert(), "columns"_a.noconvert(), "threads"_a);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    m.def(
        "sparse_add_pieces",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, std::int64_t d,
           const VectorOut<double>& old, const Vector<double>& fresh, const Vector<std::int64_t>& edges,
           const MatrixOut<double>& partial, const VectorOut<double>& travel, int threads) {
            return run_add_pieces(sparse(values, columns, pointers, d), old, fresh, edges, partial, travel, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "d"_a, "old"_a.noconvert(),
        "fresh"_a.noconvert(), "edges"_a.noconvert(), "partial"_a.noconvert(), "travel"_a.noconvert(), "threads"_a);
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
        "sparse_compensated_scores",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const Vector<double>& w,
           double b, const VectorOut<double>& out, const VectorOut<double>& rest, int threads) {
            const auto rows = sparse(values, columns, pointers, static_cast<std::int64_t>(w.shape(0)));
            check_scores(rows, w, out);
            check_scores(rows, w, rest);
            released([&] { compensated_scores(rows, w.data(), b, view(out), view(rest), threads); });
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "w"_a.noconvert(), "b"_a,
        "out"_a.noconvert(), "rest"_a.noconvert(), "threads"_a);
    m.def(
        "sparse_row_hashes",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers,
           const VectorOut<std::uint64_t>& out, int threads) {
            const auto rows = sparse(values, columns, pointers, 0);
            check(static_cast<std::int64_t>(out.shape(0)) == rows.n, "out: one entry per row expected");
            released([&] { row_hashes(rows, view(out), threads); });
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
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
    bind_count_nonzeros<float>(m);
    bind_count_nonzeros<double>(m);
    bind_compress<float, std::int32_t>(m);
    bind_compress<float, std::int64_t>(m);
    bind_compress<double, std::int32_t>(m);
    bind_compress<double, std::int64_t>(m);
    bind_take<float>(m);
    bind_take<double>(m);
    bind_sparse_take<float, std::int32_t>(m);
    bind_sparse_take<float, std::int64_t>(m);
    bind_sparse_take<double, std::int32_t>(m);
    bind_sparse_take<double, std::int64_t>(m);
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
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
