// Binding of core/reduced.hpp.
#include "core/reduced.hpp"

#include "bindings/arrays.hpp"

using namespace cutsvm;

namespace {

void check(bool fine, const char* what) {
    if (!fine) throw nb::value_error(what);
}

ReducedRules rules_of(const nb::dict& named) {
    const auto number = [&](const char* name) { return nb::cast<double>(named[name]); };
    return {.max_steps = nb::cast<int>(named["max_steps"]),
            .to_the_wall = number("to_the_wall"),
            .lag = number("lag"),
            .sink = number("sink"),
            .shorter = number("shorter"),
            .times = nb::cast<int>(named["times"]),
            .too_short = number("too_short"),
            .less = number("less"),
            .back = number("back"),
            .stuck = number("stuck"),
            .round_off = number("round_off"),
            .floor = number("floor"),
            .headroom = number("headroom"),
            .least_room = number("least_room"),
            .fine = number("fine"),
            .guard = number("guard"),
            .polish = nb::cast<int>(named["polish"])};
}

// An empty Gram matrix means one row per feature, empty warm weights a start from nothing.
std::tuple<double, double, double, int> reduced(const Matrix<double>& slopes, const Vector<double>& offsets,
                                                const Vector<std::int64_t>& shard, std::size_t n_free, double reach,
                                                const Matrix<double>& gram, double C, double tol,
                                                const Vector<double>& warm, const nb::dict& rules,
                                                const VectorOut<double>& w, const VectorOut<double>& weights) {
    const std::size_t m = offsets.shape(0), size = slopes.shape(1);
    check(m > 0, "offsets: at least one plane expected");
    check(slopes.shape(0) == m && shard.shape(0) == m, "slopes, offsets and shard: one row per plane expected");
    check(n_free < size, "n_free: fewer than all coordinates expected");
    check(n_free <= 1 || (reach > 0.0 && std::isfinite(reach)), "reach: positive and finite expected if n_free > 1");
    check(slopes.stride(1) == 1 || size == 1, "slopes: rows side by side expected");
    const bool by_planes = gram.shape(0) > 0;
    if (by_planes) {
        check(gram.shape(0) == m && gram.shape(1) == m, "gram: one row and column per plane expected");
        check(gram.stride(1) == 1 || m == 1, "gram: rows side by side expected");
    }
    check(warm.shape(0) == 0 || warm.shape(0) == m, "warm: one weight per plane expected, or none");
    check(w.shape(0) == size && weights.shape(0) == m, "outputs: one entry per coordinate and per plane expected");
    const PlanesView planes{slopes.data(),
                            static_cast<std::size_t>(slopes.stride(0)),
                            size - n_free,
                            n_free,
                            view(offsets),
                            view(shard),
                            by_planes ? gram.data() : nullptr,
                            by_planes ? static_cast<std::size_t>(gram.stride(0)) : 0,
                            reach};
    const ReducedRules numbers = rules_of(rules);
    const ReducedResult found =
        released([&] { return solve_reduced(planes, C, tol, view(warm), numbers, view(w), view(weights)); });
    return {found.lower, found.value, found.risk, found.steps};
}

}  // namespace

void bind_reduced(nb::module_& m) {
    m.def("reduced", &reduced, "slopes"_a.noconvert(), "offsets"_a.noconvert(), "shard"_a.noconvert(), "n_free"_a,
          "reach"_a, "gram"_a.noconvert(), "C"_a, "tol"_a, "warm"_a.noconvert(), "rules"_a, "w"_a.noconvert(),
          "weights"_a.noconvert());
}
