// Bindings of core/dcd.hpp.
#include "core/dcd.hpp"

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"
#include "bindings/row_losses.hpp"

using namespace cutsvm;

namespace {

// loss, q, C, unit, above, below, alpha
using Descent = std::tuple<const RowLoss*, Vector<double>, double, double, double, double, VectorOut<double>>;
// gap, steepest, flattest, rows that stay
using Seen = std::tuple<double, double, double, std::int64_t>;

Seen run_descend(const Matrix& X, const Descent& descent, const VectorOut<std::int32_t>& order,
                 const VectorOut<double>& w, std::size_t run, std::uint64_t seed, int threads) {
    const auto& [loss, q, C, unit, above, below, alpha] = descent;
    const std::int64_t n = X.n();
    check(loss != nullptr, "loss: a RowLoss expected");
    check(loss->n() == n && extent(q) == n && extent(alpha) == n, "loss, q, alpha: one entry per row expected");
    check(extent(w) == X.d() + 1, "w: d + 1 entries expected");
    check(0 < run && run <= 4096, "run: 1 to 4096 expected");
    for (const std::int32_t i : view(order)) check(0 <= i && i < n, "order: row numbers below n expected");
    const auto epoch_of = [&]<class Rows, class Loss>(const Rows& rows, const Loss& own) {
        const Dual<Loss> dual{own, view(q), C, unit, view(alpha), {above, below}};
        return released([&] { return descend(rows, dual, view(order), view(w), run, seed, threads); });
    };
    const Epoch epoch =
        X.visit([&](const auto& rows) { return loss->visit([&](const auto& own) { return epoch_of(rows, own); }); });
    return {epoch.gap, epoch.steepest, epoch.flattest, epoch.active};
}

}  // namespace

void bind_dcd(BoundMatrix& matrix) {
    matrix.def("descend", &run_descend, "descent"_a.noconvert(), "order"_a.noconvert(), "w"_a.noconvert(), "run"_a,
               "seed"_a, "threads"_a);
}
