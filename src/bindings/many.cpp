// Bindings of core/many.hpp.
#include "core/many.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"

using namespace cutsvm;

namespace {

// y, weights, old, fresh, classes
using Choices =
    std::tuple<Vector<std::int32_t>, Vector<double>, VectorOut<std::int32_t>, Vector<std::int32_t>, std::int64_t>;

void check_classes(View<const std::int32_t> values, std::int64_t classes) {
    for (const std::int32_t k : values) check(0 <= k && k < classes, "classes below the number of classes expected");
}

void check_groups(View<const std::int32_t> values, std::int64_t groups) {
    for (const std::int32_t g : values) check(g < groups, "groups below the number of groups expected");
}

void run_scores_many(const Matrix& X, const Array2D<double>& W, const Vector<double>& b,
                     const Array2DOut<double>& out) {
    const std::int64_t d = X.d();
    check(W.shape(0) == b.shape(0) && extent(W, 1) == d, "W: outputs x d expected");
    check((W.stride(1) == 1 || d == 1) && (W.stride(0) == d || W.shape(0) <= 1), "W: C order expected");
    check(extent(out) == X.n() && out.shape(1) == b.shape(0), "out: n x outputs expected");
    X.visit(
        [&](const auto& rows) { released([&] { scores_many(rows, W.data(), view(b), out.data(), X.threads()); }); });
}

std::int64_t run_accumulate_choices(const Matrix& X, const Choices& choices, const Vector<std::int64_t>& bounds,
                                    const Array2DOut<double>& sums, const VectorOut<double>& moved) {
    const auto& [y, s, old, fresh, classes] = choices;
    const std::int64_t n = X.n();
    check(extent(y) == n && extent(s) == n && extent(old) == n && extent(fresh) == n, "one entry per row expected");
    check(extent(sums, 1) >= classes * X.d(), "sums: classes x d columns expected");
    check(moved.shape(0) == sums.shape(0), "moved: one entry per shard expected");
    check_edges(bounds, extent(sums), X.n());
    const auto labels = view(y), now = view(fresh);
    const auto before = view(old);
    const auto weights = view(s);
    const std::int64_t count = classes;
    return X.visit([&](const auto& rows) {
        return released([&] {
            check_classes(labels, count);
            check_classes(before, count);
            check_classes(now, count);
            return accumulate_choices(rows, count, labels, weights, before, now, view(bounds), sums.data(),
                                      extent(sums, 1), view(moved), X.threads());
        });
    });
}

std::int64_t run_group_sums(const Matrix& X, const Vector<double>& weights, const Vector<std::int32_t>& group,
                            const Array2DOut<double>& sums) {
    const auto groups = extent(sums);
    check(extent(weights) == X.n() && weights.shape(0) == group.shape(0), "one entry per row expected");
    check(extent(sums, 1) == X.d() + 1, "sums: groups x (d + 1) expected");
    return X.visit([&](const auto& rows) {
        return released([&] {
            check_groups(view(group), groups);
            return group_sums(rows, view(weights), view(group), groups, sums.data(), X.threads());
        });
    });
}

// The same for one block of many rows; sums continue in `partial`, which has `groups` rows for each piece.
std::int64_t run_add_groups(const Matrix& X, const Vector<double>& weights, const Vector<std::int32_t>& group,
                            std::int64_t groups, const Vector<std::int64_t>& edges, const Array2DOut<double>& partial) {
    check(extent(weights) == X.n() && weights.shape(0) == group.shape(0), "one entry per row expected");
    check(extent(partial, 1) == X.d() + 1, "partial: d + 1 columns expected");
    check(groups > 0 && extent(partial) % groups == 0, "partial: groups for each piece expected");
    check_edges(edges, extent(partial) / groups, X.n());
    return X.visit([&](const auto& rows) {
        return released([&] {
            check_groups(view(group), groups);
            return add_groups(rows, view(weights), view(group), groups, view(edges), partial.data(), X.threads());
        });
    });
}

}  // namespace

void bind_many(nb::module_& m, BoundMatrix& matrix) {
    matrix.def("scores_many", &run_scores_many, "W"_a.noconvert(), "b"_a.noconvert(), "out"_a.noconvert())
        .def("accumulate_choices", &run_accumulate_choices, "choices"_a.noconvert(), "bounds"_a.noconvert(),
             "sums"_a.noconvert(), "moved"_a.noconvert())
        .def("group_sums", &run_group_sums, "weights"_a.noconvert(), "group"_a.noconvert(), "sums"_a.noconvert())
        .def("add_groups", &run_add_groups, "weights"_a.noconvert(), "group"_a.noconvert(), "groups"_a,
             "edges"_a.noconvert(), "partial"_a.noconvert());
    m.def(
        "group_edges",
        [](std::int64_t n, std::int64_t groups, std::int64_t d) { return to_numpy(group_edges(n, groups, d)); }, "n"_a,
        "groups"_a, "d"_a);
}
