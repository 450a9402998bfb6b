// Bindings of core/hinge.hpp: what piecewise linear losses have besides.
#include "core/hinge.hpp"

#include "bindings/row_losses.hpp"

using namespace cutsvm;

namespace {

// work(loss) for a loss that is a sum of hinges, with the GIL released.
template <class Work>
auto on_piecewise(const RowLoss& loss, const Work& work) {
    using Result = decltype(work(std::declval<const Hinge&>()));
    return loss.visit([&]<class Loss>(const Loss& own) -> Result {
        if constexpr (PIECEWISE<Loss>) {
            return released([&] { return work(own); });
        } else {
            throw nb::value_error("loss: a piecewise linear one expected");
        }
    });
}

Line line(const RowLoss& loss, const Vector<double>& f, const Vector<double>& to) {
    check_rows(loss, f);
    if (to.shape(0) > 0) check_rows(loss, to);
    return {view(f), view(to)};
}

std::tuple<double, double, double> run_balance(const RowLoss& loss, const Vector<double>& f, int threads) {
    check_rows(loss, f);
    const auto sums = on_piecewise(loss, [&](const auto& own) { return hinge_balance(own, view(f), threads); });
    return {sums[0], sums[1], sums[2]};
}

void run_shared_slopes(const RowLoss& loss, const Vector<double>& f, double tied_positive, double tied_negative,
                       const Vector<std::int64_t>& bounds, const VectorOut<double>& g, const Array2DOut<double>& out,
                       int threads) {
    check_rows(loss, f);
    check_rows(loss, g);
    check_edges(bounds, extent(out, 1), loss.n());
    const ShardSums sums = shard_sums(out);
    on_piecewise(loss, [&](const auto& own) {
        hinge_slopes(own, view(f), {tied_positive, tied_negative}, view(bounds), view(g), sums, threads);
    });
}

auto run_sift(const RowLoss& loss, const Vector<double>& f, double band, const VectorOut<std::int32_t>& group,
              int threads) {
    check_rows(loss, f);
    check_rows(loss, group);
    return to_numpy(
        on_piecewise(loss, [&](const auto& own) { return hinge_sift(own, view(f), band, view(group), threads); }));
}

auto run_violators(const RowLoss& loss, const Vector<double>& f, const Vector<std::int32_t>& group, int threads) {
    check_rows(loss, f);
    check_rows(loss, group);
    return to_numpy(
        on_piecewise(loss, [&](const auto& own) { return hinge_violators(own, view(f), view(group), threads); }));
}

void run_evaluate(const RowLoss& loss, const Vector<double>& f, const Vector<double>& to, const Vector<double>& ks,
                  const Array2DOut<double>& out, int threads) {
    const Line along = line(loss, f, to);
    check(ks.shape(0) == LINE_POINTS && out.shape(0) == 3 && out.shape(1) == LINE_POINTS,
          "ks, out: LINE_POINTS entries, and three rows of as many, expected");
    std::array<double, LINE_POINTS> at;
    std::copy_n(ks.data(), LINE_POINTS, at.begin());
    const LineValues values =
        on_piecewise(loss, [&](const auto& own) { return hinge_evaluate(own, along, at, threads); });
    std::copy_n(values.constant.begin(), LINE_POINTS, out.data());
    std::copy_n(values.slope.begin(), LINE_POINTS, out.data() + LINE_POINTS);
    std::copy_n(values.breakpoints.begin(), LINE_POINTS, out.data() + 2 * LINE_POINTS);
}

double run_crossing(const RowLoss& loss, const Vector<double>& f, const Vector<double>& to, double low, double high,
                    double slope, double curvature, double level, int threads) {
    const Line along = line(loss, f, to);
    return on_piecewise(loss, [&](const auto& own) {
        std::vector<Breakpoint> breakpoints = hinge_breakpoints(own, along, low, high, threads);
        return crossing(breakpoints, slope, curvature, level, low, high);
    });
}

}  // namespace

void bind_hinge(nb::module_& m, BoundRowLoss& row_loss) {
    row_loss.def("balance", &run_balance, "f"_a.noconvert(), "threads"_a)
        .def("shared_slopes", &run_shared_slopes, "f"_a.noconvert(), "tied_positive"_a, "tied_negative"_a,
             "bounds"_a.noconvert(), "g"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
        .def("sift", &run_sift, "f"_a.noconvert(), "band"_a, "group"_a.noconvert(), "threads"_a)
        .def("violators", &run_violators, "f"_a.noconvert(), "group"_a.noconvert(), "threads"_a)
        .def("evaluate", &run_evaluate, "f"_a.noconvert(), "to"_a.noconvert(), "ks"_a.noconvert(), "out"_a.noconvert(),
             "threads"_a)
        .def("crossing", &run_crossing, "f"_a.noconvert(), "to"_a.noconvert(), "low"_a, "high"_a, "slope"_a,
             "curvature"_a, "level"_a, "threads"_a);
    m.attr("KEPT") = static_cast<int>(KEPT);
    m.attr("OUTSIDE") = static_cast<int>(OUTSIDE);
    m.attr("LINE_POINTS") = LINE_POINTS;
}
