// Bindings of core/many.hpp for each kind of rows.
#include "core/many.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrices.hpp"

using namespace cutsvm;

namespace {

// Arguments that do not depend on the kind of rows.
struct Choices {
    const Vector<std::int32_t>& y;
    const Vector<double>& s;
    const VectorOut<std::int32_t>& old;
    const Vector<std::int32_t>& fresh;
    const Vector<std::int64_t>& bounds;
    const MatrixOut<double>& sums;
    const VectorOut<double>& moved;
    std::int64_t classes;
};

void check_classes(std::span<const std::int32_t> values, std::int64_t classes) {
    for (const std::int32_t k : values) check(0 <= k && k < classes, "a class that is not there");
}

template <class Rows>
void run_scores(const Rows& rows, const Matrix<double>& W, const Vector<double>& b, const MatrixOut<double>& out,
                int threads) {
    check(W.shape(0) == b.shape(0) && static_cast<std::int64_t>(W.shape(1)) == rows.d, "W: outputs x d expected");
    check((W.stride(1) == 1 || rows.d == 1) && (W.stride(0) == rows.d || W.shape(0) <= 1), "W: rows side by side expected");
    check(static_cast<std::int64_t>(out.shape(0)) == rows.n && out.shape(1) == b.shape(0), "out: n x outputs expected");
    released([&] { scores_many(rows, W.data(), view(b), out.data(), threads); });
}

template <class Rows>
std::int64_t run_accumulate(const Rows& rows, const Choices& c, int threads) {
    const auto n = static_cast<std::size_t>(rows.n);
    check(c.y.shape(0) == n && c.s.shape(0) == n && c.old.shape(0) == n && c.fresh.shape(0) == n,
          "one entry per row expected");
    check(static_cast<std::int64_t>(c.sums.shape(1)) >= c.classes * rows.d, "sums: classes x d columns expected");
    check(c.bounds.shape(0) == c.sums.shape(0) + 1 && c.sums.shape(0) > 0, "bounds: one more than shards expected");
    check(c.moved.shape(0) == c.sums.shape(0), "moved: one entry per shard expected");
    const auto edges = view(c.bounds);
    check(edges.front() == 0 && edges.back() == rows.n && std::is_sorted(edges.begin(), edges.end()),
          "bounds: rising from 0 to n expected");
    return released([&] {
        check_classes(view(c.y), c.classes);
        check_classes(view(c.old), c.classes);
        check_classes(view(c.fresh), c.classes);
        return accumulate_choices(rows, c.classes, view(c.y), view(c.s), view(c.old), view(c.fresh), edges,
                                  c.sums.data(), static_cast<std::int64_t>(c.sums.shape(1)), view(c.moved), threads);
    });
}

template <class Rows>
std::int64_t run_group_sums(const Rows& rows, const Vector<double>& s, const Vector<std::int32_t>& group,
                            const MatrixOut<double>& sums, int threads) {
    const auto groups = static_cast<std::int64_t>(sums.shape(0));
    check(static_cast<std::int64_t>(s.shape(0)) == rows.n && s.shape(0) == group.shape(0), "one entry per row expected");
    check(static_cast<std::int64_t>(sums.shape(1)) == rows.d + 1, "sums: groups x (d + 1) expected");
    return released([&] {
        for (const std::int32_t g : view(group)) check(g < groups, "a group that is not there");
        return group_sums(rows, view(s), view(group), groups, sums.data(), threads);
    });
}

// The same for one block of many rows; sums go on in `partial`, which has `groups` rows for each piece.
template <class Rows>
std::int64_t run_add_groups(const Rows& rows, const Vector<double>& s, const Vector<std::int32_t>& group,
                            std::int64_t groups, const Vector<std::int64_t>& edges, const MatrixOut<double>& partial,
                            int threads) {
    check(static_cast<std::int64_t>(s.shape(0)) == rows.n && s.shape(0) == group.shape(0), "one entry per row expected");
    check(static_cast<std::int64_t>(partial.shape(1)) == rows.d + 1, "partial: d + 1 columns expected");
    check(groups > 0 && partial.shape(0) % static_cast<std::size_t>(groups) == 0, "partial: groups for each piece expected");
    check_edges(edges, partial.shape(0) / static_cast<std::size_t>(groups), rows.n);
    return released([&] {
        for (const std::int32_t g : view(group)) check(g < groups, "a group that is not there");
        return add_groups(rows, view(s), view(group), groups, view(edges), partial.data(), threads);
    });
}

template <class T>
void bind_dense(nb::module_& m) {
    m.def(
        "dense_add_groups",
        [](const Matrix<T>& X, const Vector<double>& s, const Vector<std::int32_t>& group, std::int64_t groups,
           const Vector<std::int64_t>& edges, const MatrixOut<double>& partial, int threads) {
            return with_dense(
                X, [&](const auto& rows) { return run_add_groups(rows, s, group, groups, edges, partial, threads); });
        },
        "X"_a.noconvert(), "s"_a.noconvert(), "group"_a.noconvert(), "groups"_a, "edges"_a.noconvert(),
        "partial"_a.noconvert(), "threads"_a);
    m.def(
        "dense_scores_many",
        [](const Matrix<T>& X, const Matrix<double>& W, const Vector<double>& b, const MatrixOut<double>& out,
           int threads) { with_dense(X, [&](const auto& rows) { run_scores(rows, W, b, out, threads); }); },
        "X"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def(
        "dense_accumulate_choices",
        [](const Matrix<T>& X, const Vector<std::int32_t>& y, const Vector<double>& s, const VectorOut<std::int32_t>& old,
           const Vector<std::int32_t>& fresh, const Vector<std::int64_t>& bounds, const MatrixOut<double>& sums,
           const VectorOut<double>& moved, std::int64_t classes, int threads) {
            const Choices choices{y, s, old, fresh, bounds, sums, moved, classes};
            return with_dense(X, [&](const auto& rows) { return run_accumulate(rows, choices, threads); });
        },
        "X"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "old"_a.noconvert(), "fresh"_a.noconvert(),
        "bounds"_a.noconvert(), "sums"_a.noconvert(), "moved"_a.noconvert(), "classes"_a, "threads"_a);
    m.def(
        "dense_group_sums",
        [](const Matrix<T>& X, const Vector<double>& s, const Vector<std::int32_t>& group, const MatrixOut<double>& sums,
           int threads) {
            return with_dense(X, [&](const auto& rows) { return run_group_sums(rows, s, group, sums, threads); });
        },
        "X"_a.noconvert(), "s"_a.noconvert(), "group"_a.noconvert(), "sums"_a.noconvert(), "threads"_a);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    m.def(
        "sparse_add_groups",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const Vector<double>& s,
           const Vector<std::int32_t>& group, std::int64_t groups, const Vector<std::int64_t>& edges,
           const MatrixOut<double>& partial, int threads) {
            const auto rows = sparse(values, columns, pointers, static_cast<std::int64_t>(partial.shape(1)) - 1);
            return run_add_groups(rows, s, group, groups, edges, partial, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "s"_a.noconvert(),
        "group"_a.noconvert(), "groups"_a, "edges"_a.noconvert(), "partial"_a.noconvert(), "threads"_a);
    m.def(
        "sparse_scores_many",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const Matrix<double>& W,
           const Vector<double>& b, const MatrixOut<double>& out, int threads) {
            run_scores(sparse(values, columns, pointers, static_cast<std::int64_t>(W.shape(1))), W, b, out, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "W"_a.noconvert(),
        "b"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def(
        "sparse_accumulate_choices",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, std::int64_t d,
           const Vector<std::int32_t>& y, const Vector<double>& s, const VectorOut<std::int32_t>& old,
           const Vector<std::int32_t>& fresh, const Vector<std::int64_t>& bounds, const MatrixOut<double>& sums,
           const VectorOut<double>& moved, std::int64_t classes, int threads) {
            const Choices choices{y, s, old, fresh, bounds, sums, moved, classes};
            return run_accumulate(sparse(values, columns, pointers, d), choices, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "d"_a, "y"_a.noconvert(),
        "s"_a.noconvert(), "old"_a.noconvert(), "fresh"_a.noconvert(), "bounds"_a.noconvert(), "sums"_a.noconvert(),
        "moved"_a.noconvert(), "classes"_a, "threads"_a);
    m.def(
        "sparse_group_sums",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const Vector<double>& s,
           const Vector<std::int32_t>& group, const MatrixOut<double>& sums, int threads) {
            const auto rows = sparse(values, columns, pointers, static_cast<std::int64_t>(sums.shape(1)) - 1);
            return run_group_sums(rows, s, group, sums, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "s"_a.noconvert(),
        "group"_a.noconvert(), "sums"_a.noconvert(), "threads"_a);
}

}  // namespace

void bind_many(nb::module_& m) {
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    m.def(
        "group_edges",
        [](std::int64_t n, std::int64_t groups, std::int64_t d) { return to_numpy(group_edges(n, groups, d)); }, "n"_a,
        "groups"_a, "d"_a);
}
