// Bindings of core/tangents.hpp.
#include "core/tangents.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"

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

}  // namespace

void bind_tangents(nb::module_& m, BoundMatrix& matrix) {
    matrix.def("tangents", &run_tangents, "signed"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(),
               "edges"_a.noconvert(), "partial"_a.noconvert(), "heights"_a.noconvert());
    m.attr("POINTS") = POINTS;
}
