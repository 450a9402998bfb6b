// Bindings of core/smooth.hpp and core/row_duals.hpp.
#include "bindings/row_losses.hpp"

#include "core/row_duals.hpp"
#include "core/smooth.hpp"

using namespace cutsvm;

namespace {

template <class Loss>
inline constexpr bool IS_SMOOTH = requires(const Loss& loss) { loss.curvature(0, 0.0); };

// work(loss) for a loss with a continuous slope.
template <class Work>
void on_smooth(const RowLoss& loss, const Work& work) {
    loss.visit([&]<class Loss>(const Loss& own) {
        if constexpr (IS_SMOOTH<Loss>)
            released([&] { work(own); });
        else
            check(false, "loss: one with a continuous slope expected");
    });
}

double run_value(const RowLoss& loss, const Vector<double>& f, int threads) {
    check_rows(loss, f);
    return loss.visit([&](const auto& own) { return released([&] { return loss_value(own, view(f), threads); }); });
}

void run_slopes(const RowLoss& loss, const Vector<double>& f, const Vector<std::int64_t>& bounds,
                const VectorOut<double>& g, const Array2DOut<double>& out, int threads) {
    check_rows(loss, f);
    check_rows(loss, g);
    check_edges(bounds, extent(out, 1), loss.n());
    const ShardSums sums = shard_sums(out);
    loss.visit(
        [&](const auto& own) { released([&] { loss_slopes(own, view(f), view(bounds), view(g), sums, threads); }); });
}

void run_dual_heights(const RowLoss& loss, const Vector<double>& g, const Vector<std::int64_t>& bounds,
                      const Array2DOut<double>& out, int threads) {
    check_rows(loss, g);
    check_edges(bounds, extent(out, 1), loss.n());
    const ShardSums sums = shard_sums(out);
    loss.visit([&](const auto& own) { released([&] { dual_heights(own, view(g), view(bounds), sums, threads); }); });
}

void run_curvatures(const RowLoss& loss, const Vector<double>& f, const VectorOut<double>& out, int threads) {
    check_rows(loss, f);
    check_rows(loss, out);
    on_smooth(loss, [&](const auto& own) { loss_curvatures(own, view(f), view(out), threads); });
}

std::tuple<double, double, double> run_along(const RowLoss& loss, const Vector<double>& f, const Vector<double>& to,
                                             double k, int threads) {
    check_rows(loss, f);
    if (to.shape(0) > 0) check_rows(loss, to);
    std::array<double, 3> sums{};
    on_smooth(loss, [&](const auto& own) { sums = loss_along(own, view(f), view(to), k, threads); });
    return {sums[0], sums[1], sums[2]};
}

double run_dual_value(const RowLoss& loss, const Vector<double>& alpha, double C, int threads) {
    check_rows(loss, alpha);
    return loss.visit(
        [&](const auto& own) { return released([&] { return dual_value(own, view(alpha), C, threads); }); });
}

void run_gaps(const RowLoss& loss, const Vector<double>& f, const Vector<double>& alpha, double C,
              const VectorOut<double>& out, int threads) {
    check_rows(loss, f);
    check_rows(loss, alpha);
    check_rows(loss, out);
    loss.visit(
        [&](const auto& own) { released([&] { dual_gaps(own, view(f), view(alpha), C, view(out), threads); }); });
}

void run_at_rest(const RowLoss& loss, const Vector<double>& f, const Vector<double>& alpha, double C, double above,
                 double below, const VectorOut<bool>& out, int threads) {
    check_rows(loss, f);
    check_rows(loss, alpha);
    check_rows(loss, out);
    loss.visit([&](const auto& own) {
        released([&] { at_rest(own, view(f), view(alpha), C, {above, below}, view(out), threads); });
    });
}

void run_clip(const RowLoss& loss, const VectorOut<double>& alpha, double C, int threads) {
    check_rows(loss, alpha);
    loss.visit([&](const auto& own) { released([&] { clip_dual(own, view(alpha), C, threads); }); });
}

}  // namespace

void bind_row_losses(BoundRowLoss& row_loss) {
    row_loss.def(nb::init<const std::string&, const Vector<double>&>(), "name"_a, "a"_a.noconvert())
        .def(nb::init<const std::string&, const Vector<double>&, const Vector<double>&, double, double, double>(),
             "name"_a, "t"_a.noconvert(), "s"_a.noconvert(), "epsilon"_a, "below"_a, "above"_a)
        .def_prop_ro("n", &RowLoss::n)
        .def("value", &run_value, "f"_a.noconvert(), "threads"_a)
        .def("slopes", &run_slopes, "f"_a.noconvert(), "bounds"_a.noconvert(), "g"_a.noconvert(), "out"_a.noconvert(),
             "threads"_a)
        .def("dual_heights", &run_dual_heights, "g"_a.noconvert(), "bounds"_a.noconvert(), "out"_a.noconvert(),
             "threads"_a)
        .def("curvatures", &run_curvatures, "f"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
        .def("along", &run_along, "f"_a.noconvert(), "to"_a.noconvert(), "k"_a, "threads"_a)
        .def("part", &RowLoss::part, "begin"_a, "end"_a)
        .def("dual_value", &run_dual_value, "alpha"_a.noconvert(), "C"_a, "threads"_a)
        .def("gaps", &run_gaps, "f"_a.noconvert(), "alpha"_a.noconvert(), "C"_a, "out"_a.noconvert(), "threads"_a)
        .def("at_rest", &run_at_rest, "f"_a.noconvert(), "alpha"_a.noconvert(), "C"_a, "above"_a, "below"_a,
             "out"_a.noconvert(), "threads"_a)
        .def("clip", &run_clip, "alpha"_a.noconvert(), "C"_a, "threads"_a);
}
