// Bindings of core/multinomial.hpp.
#include "core/multinomial.hpp"

#include "bindings/matrix.hpp"

using namespace cutsvm;

namespace {

using Scores = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

ClassScores class_scores(const Scores& f, const Vector<std::int32_t>& y, const Vector<double>& s) {
    const auto n = extent(f), K = extent(f, 1);
    check(extent(y) == n && extent(s) == n && K > 0, "y, s: one entry per row of f expected");
    for (const std::int32_t label : view(y)) check(0 <= label && label < K, "y: labels below the number of scores");
    return {f.data(), view(y), view(s), K};
}

template <class Array>
void check_shape(const Scores& f, const Array& other) {
    check(other.shape(0) == f.shape(0) && other.shape(1) == f.shape(1), "the shape of f expected");
}

std::tuple<double, double, double> as_tuple(const std::array<double, 3>& sums) { return {sums[0], sums[1], sums[2]}; }

}  // namespace

void bind_multinomial(nb::module_& m) {
    m.def(
        "multinomial_value",
        [](const Scores& f, const Vector<std::int32_t>& y, const Vector<double>& s, int threads) {
            const ClassScores rows = class_scores(f, y, s);
            return released([&] { return multinomial_value(rows, threads); });
        },
        "f"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "threads"_a);
    m.def(
        "multinomial_slopes",
        [](const Scores& f, const Vector<std::int32_t>& y, const Vector<double>& s, const Array2DOut<double>& g,
           int threads) {
            const ClassScores rows = class_scores(f, y, s);
            check_shape(f, g);
            return as_tuple(released([&] { return multinomial_slopes(rows, g.data(), threads); }));
        },
        "f"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "g"_a.noconvert(), "threads"_a);
    m.def(
        "multinomial_along",
        [](const Scores& f, const Scores& to, const Vector<std::int32_t>& y, const Vector<double>& s, double k,
           int threads) {
            const ClassScores rows = class_scores(f, y, s);
            check_shape(f, to);
            return as_tuple(released([&] { return multinomial_along(rows, to.data(), k, threads); }));
        },
        "f"_a.noconvert(), "to"_a.noconvert(), "y"_a.noconvert(), "s"_a.noconvert(), "k"_a, "threads"_a);
}
