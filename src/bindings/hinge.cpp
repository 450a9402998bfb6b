// Bindings of core/hinge.hpp.
#include "core/hinge.hpp"
#include "bindings/arrays.hpp"

using namespace cutsvm;

namespace {

void check_lengths(std::size_t n, std::initializer_list<std::size_t> others) {
    for (const std::size_t other : others)
        if (other != n) throw nb::value_error("vectors differ in length");
}

Line line(const Vector<double>& f, const Vector<double>& to, const Vector<double>& a) {
    check_lengths(f.shape(0), {a.shape(0)});
    if (to.shape(0) > 0) check_lengths(f.shape(0), {to.shape(0)});
    return {view(f), view(to), view(a)};
}

}  // namespace

void bind_hinge(nb::module_& m) {
    m.def(
        "hinge_value",
        [](const Vector<double>& f, const Vector<double>& a, int threads) {
            check_lengths(f.shape(0), {a.shape(0)});
            return released([&] { return hinge_value(view(f), view(a), threads); });
        },
        "f"_a.noconvert(), "a"_a.noconvert(), "threads"_a);
    m.def(
        "hinge_balance",
        [](const Vector<double>& f, const Vector<double>& a, int threads) {
            check_lengths(f.shape(0), {a.shape(0)});
            const auto sums = released([&] { return hinge_balance(view(f), view(a), threads); });
            return std::tuple(sums[0], sums[1], sums[2]);
        },
        "f"_a.noconvert(), "a"_a.noconvert(), "threads"_a);
    m.def(
        "hinge_slopes",
        [](const Vector<double>& f, const Vector<double>& a, double tied_positive, double tied_negative,
           const Vector<std::int64_t>& bounds, const VectorOut<double>& g, const VectorOut<double>& offsets,
           int threads) {
            check_lengths(f.shape(0), {a.shape(0), g.shape(0)});
            check_lengths(bounds.shape(0), {offsets.shape(0) + 1});
            released([&] {
                hinge_slopes(view(f), view(a), {tied_positive, tied_negative}, view(bounds), view(g), view(offsets),
                             threads);
            });
        },
        "f"_a.noconvert(), "a"_a.noconvert(), "tied_positive"_a, "tied_negative"_a, "bounds"_a.noconvert(),
        "g"_a.noconvert(), "offsets"_a.noconvert(), "threads"_a);
    m.def(
        "hinge_sift",
        [](const Vector<double>& f, const Vector<double>& a, double band, const VectorOut<std::int32_t>& group,
           int threads) {
            check_lengths(f.shape(0), {a.shape(0), group.shape(0)});
            return to_numpy(released([&] { return hinge_sift(view(f), view(a), band, view(group), threads); }));
        },
        "f"_a.noconvert(), "a"_a.noconvert(), "band"_a, "group"_a.noconvert(), "threads"_a);
    m.def(
        "hinge_violators",
        [](const Vector<double>& f, const Vector<double>& a, const Vector<std::int32_t>& group, int threads) {
            check_lengths(f.shape(0), {a.shape(0), group.shape(0)});
            return to_numpy(released([&] { return hinge_violators(view(f), view(a), view(group), threads); }));
        },
        "f"_a.noconvert(), "a"_a.noconvert(), "group"_a.noconvert(), "threads"_a);
    m.attr("KEPT") = static_cast<int>(KEPT);
    m.attr("OUTSIDE") = static_cast<int>(OUTSIDE);
    m.def(
        "hinge_evaluate",
        [](const Vector<double>& f, const Vector<double>& to, const Vector<double>& a, const Vector<double>& ks,
           const Array2DOut<double>& out, int threads) {
            check_lengths(LINE_POINTS, {ks.shape(0), out.shape(1)});
            check_lengths(3, {out.shape(0)});
            const Line along = line(f, to, a);
            std::array<double, LINE_POINTS> at;
            std::copy_n(ks.data(), LINE_POINTS, at.begin());
            const LineValues values = released([&] { return hinge_evaluate(along, at, threads); });
            std::copy_n(values.constant.begin(), LINE_POINTS, out.data());
            std::copy_n(values.slope.begin(), LINE_POINTS, out.data() + LINE_POINTS);
            std::copy_n(values.breakpoints.begin(), LINE_POINTS, out.data() + 2 * LINE_POINTS);
        },
        "f"_a.noconvert(), "to"_a.noconvert(), "a"_a.noconvert(), "ks"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def(
        "hinge_crossing",
        [](const Vector<double>& f, const Vector<double>& to, const Vector<double>& a, double low, double high,
           double slope, double curvature, double level, int threads) {
            const Line along = line(f, to, a);
            return released([&] {
                std::vector<Breakpoint> breakpoints = hinge_breakpoints(along, low, high, threads);
                return crossing(breakpoints, slope, curvature, level, low, high);
            });
        },
        "f"_a.noconvert(), "to"_a.noconvert(), "a"_a.noconvert(), "low"_a, "high"_a, "slope"_a, "curvature"_a,
        "level"_a, "threads"_a);
    m.attr("LINE_POINTS") = LINE_POINTS;
}
