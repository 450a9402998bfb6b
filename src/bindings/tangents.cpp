// Bindings of core/tangents.hpp and core/prefix.hpp.
#include "core/tangents.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"
#include "core/prefix.hpp"

using namespace cutsvm;

namespace {

void run_tangents(const Matrix& X, const Vector<double>& signed_weights, const Array2D<double>& W,
                  const Vector<double>& b, const Vector<std::int64_t>& edges, const Array2DOut<double>& partial,
                  const Array2DOut<double>& heights) {
    const std::int64_t points = extent(b);
    const std::int64_t d = X.d();
    check(extent(signed_weights) == X.n(), "one entry per row expected");
    check(points > 0 && points <= POINTS, "1 to POINTS points expected");
    check(extent(W) == points && extent(W, 1) == d, "W: points x d expected");
    check((W.stride(1) == 1 || d == 1) && (W.stride(0) == d || points == 1), "W: C order expected");
    check(extent(partial, 1) == d + 1, "partial: d + 1 columns expected");
    check(extent(partial) % points == 0, "partial: points for each piece expected");
    check(heights.shape(0) == partial.shape(0) && heights.shape(1) == 2, "heights: two for each plane expected");
    check_edges(edges, extent(partial) / points, X.n());
    X.visit([&](const auto& rows) {
        released([&] {
            hinge_tangents(rows, view(signed_weights), W.data(), view(b), view(edges), partial.data(), heights.data(),
                           X.threads());
        });
    });
}

std::tuple<std::int64_t, std::int64_t> run_prefix(const Matrix& X, const Vector<double>& signed_weights,
                                                  const Vector<double>& w, double b, double limit,
                                                  const VectorOut<double>& slope, const VectorOut<double>& heights) {
    check(extent(signed_weights) == X.n(), "one entry per row expected");
    check(extent(w) == X.d(), "w: one entry per feature expected");
    check(extent(slope) == X.d() + 1, "slope: d + 1 entries expected");
    check(extent(heights) == 2, "heights: two entries expected");
    return X.visit([&](const auto& rows) {
        return released([&] {
            const InsideSums sums{slope.data(), heights.data()};
            const auto [stop, read] = hinge_prefix(rows, view(signed_weights), w.data(), b, limit, sums, X.threads());
            return std::tuple(stop, read);
        });
    });
}

}  // namespace

void bind_tangents(nb::module_& m, BoundMatrix& matrix) {
    matrix.def("tangents", &run_tangents, "signed"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(),
               "edges"_a.noconvert(), "partial"_a.noconvert(), "heights"_a.noconvert());
    matrix.def("prefix", &run_prefix, "signed"_a.noconvert(), "w"_a.noconvert(), "b"_a, "limit"_a,
               "slope"_a.noconvert(), "heights"_a.noconvert());
    m.attr("POINTS") = POINTS;
}
