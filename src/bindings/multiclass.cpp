// Bindings of core/multiclass.hpp.
#include "core/multiclass.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"

using namespace cutsvm;

namespace {

using Scores = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Classes = Vector<std::int32_t>;

ClassScores class_scores(const Scores& f, const Classes& y, const Vector<double>& s) {
    const auto n = extent(f), classes = extent(f, 1);
    check(y.shape(0) == f.shape(0) && s.shape(0) == f.shape(0), "one label and one weight per row expected");
    return {f.data(), n, classes, view(y), view(s)};
}

ClassLine class_line(const Scores& f, const Scores& to, const Classes& y, const Vector<double>& s) {
    check(to.shape(0) == f.shape(0) && to.shape(1) == f.shape(1), "scores differ in shape");
    return {class_scores(f, y, s), to.data()};
}

}  // namespace

// requires of all: labels in 0..classes-1, which the caller has made sure of.
void bind_multiclass(nb::module_& m) {
    m.def(
        "multi_value",
        [](const Scores& f, const Classes& y, const Vector<double>& s, int threads) {
            const ClassScores scores = class_scores(f, y, s);
            return released([&] { return multi_value(scores, threads); });
        },
        "f"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "threads"_a);
    m.def(
        "multi_choose",
        [](const Scores& f, const Classes& y, const Vector<double>& s, const Vector<std::int64_t>& bounds,
           const VectorOut<std::int32_t>& choice, const VectorOut<double>& offsets, const Array2DOut<double>& pulls,
           int threads) {
            const ClassScores scores = class_scores(f, y, s);
            check(choice.shape(0) == f.shape(0), "choice: one entry per row expected");
            check(bounds.shape(0) == offsets.shape(0) + 1, "bounds: one more than shards expected");
            check(pulls.shape(0) == offsets.shape(0) && pulls.shape(1) == f.shape(1),
                  "pulls: shards x classes expected");
            released([&] { multi_choose(scores, view(bounds), view(choice), view(offsets), pulls.data(), threads); });
        },
        "f"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "bounds"_a.noconvert(), "choice"_a.noconvert(),
        "offsets"_a.noconvert(), "pulls"_a.noconvert(), "threads"_a);
    m.def(
        "multi_evaluate",
        [](const Scores& f, const Scores& to, const Classes& y, const Vector<double>& s, const Vector<double>& ks,
           const Array2DOut<double>& out, int threads) {
            const ClassLine line = class_line(f, to, y, s);
            check(ks.shape(0) == LINE_POINTS && out.shape(0) == 3 && out.shape(1) == LINE_POINTS,
                  "out: 3 x LINE_POINTS expected");
            std::array<double, LINE_POINTS> at;
            std::copy_n(ks.data(), LINE_POINTS, at.begin());
            const LineValues values = released([&] { return multi_evaluate(line, at, threads); });
            std::copy_n(values.constant.begin(), LINE_POINTS, out.data());
            std::copy_n(values.slope.begin(), LINE_POINTS, out.data() + LINE_POINTS);
            std::copy_n(values.breakpoints.begin(), LINE_POINTS, out.data() + 2 * LINE_POINTS);
        },
        "f"_a.noconvert(), "to"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "ks"_a.noconvert(),
        "out"_a.noconvert(), "threads"_a);
    m.def(
        "multi_crossing",
        [](const Scores& f, const Scores& to, const Classes& y, const Vector<double>& s, double low, double high,
           double slope, double curvature, double level, int threads) {
            const ClassLine line = class_line(f, to, y, s);
            return released([&] {
                std::vector<Breakpoint> breakpoints = multi_breakpoints(line, low, high, threads);
                return crossing(breakpoints, slope, curvature, level, low, high);
            });
        },
        "f"_a.noconvert(), "to"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "low"_a, "high"_a, "slope"_a,
        "curvature"_a, "level"_a, "threads"_a);
    m.def(
        "multi_sift",
        [](const Scores& f, const Classes& y, const Vector<double>& s, double band,
           const VectorOut<std::int32_t>& group, int threads) {
            const ClassScores scores = class_scores(f, y, s);
            check(group.shape(0) == f.shape(0), "group: one entry per row expected");
            return to_numpy(released([&] { return multi_sift(scores, band, view(group), threads); }));
        },
        "f"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "band"_a, "group"_a.noconvert(), "threads"_a);
    m.def(
        "multi_violators",
        [](const Scores& f, const Classes& y, const Vector<double>& s, const Classes& group, int threads) {
            const ClassScores scores = class_scores(f, y, s);
            check(group.shape(0) == f.shape(0), "group: one entry per row expected");
            return to_numpy(released([&] { return multi_violators(scores, view(group), threads); }));
        },
        "f"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "group"_a.noconvert(), "threads"_a);
}
