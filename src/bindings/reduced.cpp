// Binding of core/reduced.hpp.
#include "core/reduced.hpp"

#include "bindings/arrays.hpp"

using namespace cutsvm;

namespace {

void check(bool fine, const char* what) {
    if (!fine) throw nb::value_error(what);
}

// An empty Gram matrix means one row per feature, an empty warm start a start from equal weights.
std::tuple<double, double, double, int> bound_solve_reduced(
    const InteriorPointSettings& settings, const Array2D<double>& slopes, const Vector<double>& offsets,
    const Vector<std::int64_t>& shard, std::size_t n_free, double intercept_bound, const Array2D<double>& gram,
    double C, double tol, const Vector<double>& warm_start, const VectorOut<double>& w,
    const VectorOut<double>& weights) {
    const std::size_t m = offsets.shape(0), size = slopes.shape(1);
    check(m > 0, "offsets: at least one plane expected");
    check(slopes.shape(0) == m && shard.shape(0) == m, "slopes, offsets and shard: one row per plane expected");
    check(n_free < size, "n_free: fewer than all coordinates expected");
    check(n_free <= 1 || (intercept_bound > 0.0 && std::isfinite(intercept_bound)),
          "intercept_bound: positive and finite expected if n_free > 1");
    check(slopes.stride(1) == 1 || size == 1, "slopes: contiguous rows expected");
    const bool by_planes = gram.shape(0) > 0;
    if (by_planes) {
        check(gram.shape(0) == m && gram.shape(1) == m, "gram: one row and column per plane expected");
        check(gram.stride(1) == 1 || m == 1, "gram: contiguous rows expected");
    }
    check(warm_start.shape(0) == 0 || warm_start.shape(0) == m, "warm_start: one weight per plane expected, or none");
    check(w.shape(0) == size && weights.shape(0) == m, "outputs: one entry per coordinate and per plane expected");
    const PlanesView planes{slopes.data(),
                            static_cast<std::size_t>(slopes.stride(0)),
                            size - n_free,
                            n_free,
                            view(offsets),
                            view(shard),
                            by_planes ? gram.data() : nullptr,
                            by_planes ? static_cast<std::size_t>(gram.stride(0)) : 0,
                            intercept_bound};
    const ReducedResult found =
        released([&] { return solve_reduced(planes, C, tol, view(warm_start), settings, view(w), view(weights)); });
    return {found.lower, found.value, found.risk, found.steps};
}

}  // namespace

void bind_reduced(nb::module_& m) {
    using Settings = InteriorPointSettings;
    nb::class_<Settings>(m, "InteriorPointSettings")
        .def(nb::init<>())
        .def_rw("max_steps", &Settings::max_steps)
        .def_rw("fraction_to_boundary", &Settings::fraction_to_boundary)
        .def_rw("min_centrality", &Settings::min_centrality)
        .def_rw("centrality_decrease", &Settings::centrality_decrease)
        .def_rw("backtracking", &Settings::backtracking)
        .def_rw("max_backtracks", &Settings::max_backtracks)
        .def_rw("min_step_length", &Settings::min_step_length)
        .def_rw("max_mu_ratio", &Settings::max_mu_ratio)
        .def_rw("recentering_mu_ratio", &Settings::recentering_mu_ratio)
        .def_rw("stalled_step_length", &Settings::stalled_step_length)
        .def_rw("rounding_error", &Settings::rounding_error)
        .def_rw("compensated_rounding_error", &Settings::compensated_rounding_error)
        .def_rw("regularization", &Settings::regularization)
        .def_rw("max_projections", &Settings::max_projections)
        .def_rw("min_initial_weight", &Settings::min_initial_weight)
        .def_rw("initial_slack", &Settings::initial_slack)
        .def_rw("min_initial_slack", &Settings::min_initial_slack);
    m.def("solve_reduced", &bound_solve_reduced, "settings"_a, "slopes"_a.noconvert(), "offsets"_a.noconvert(),
          "shard"_a.noconvert(), "n_free"_a, "intercept_bound"_a, "gram"_a.noconvert(), "C"_a, "tol"_a,
          "warm_start"_a.noconvert(), "w"_a.noconvert(), "weights"_a.noconvert());
}
