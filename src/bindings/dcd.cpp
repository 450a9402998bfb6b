// Bindings of core/dcd.hpp for each kind of rows.
#include "bindings/arrays.hpp"
#include "bindings/matrices.hpp"
#include "core/dcd.hpp"

using namespace cutsvm;

namespace {

// gap, steepest, flattest, rows that stay
using Seen = std::tuple<double, double, double, std::int64_t>;

template <class Rows>
Seen run_descend(const Rows& rows, const Vector<double>& a, const Vector<double>& q, double C, double unit,
                 double above, double below, const VectorOut<double>& alpha, const VectorOut<std::int32_t>& order,
                 const VectorOut<double>& w, std::size_t run, std::uint64_t seed, int threads) {
    const auto n = static_cast<std::size_t>(rows.n);
    check(a.shape(0) == n && q.shape(0) == n && alpha.shape(0) == n, "a, q, alpha: one entry per row expected");
    check(w.shape(0) == static_cast<std::size_t>(rows.d) + 1, "w: d + 1 entries expected");
    check(0 < run && run <= 4096, "run: 1 to 4096 expected");
    for (const std::int32_t i : view(order)) check(0 <= i && i < rows.n, "order: a row that is not there");
    const Dual dual{view(a), view(q), C, unit, view(alpha), above, below};
    const Epoch epoch = released([&] { return descend(rows, dual, view(order), view(w), run, seed, threads); });
    return {epoch.gap, epoch.steepest, epoch.flattest, epoch.active};
}

template <class T>
void bind_dense(nb::module_& m) {
    m.def(
        "dense_descend",
        [](const Matrix<T>& X, const Vector<double>& a, const Vector<double>& q, double C, double unit, double above,
           double below, const VectorOut<double>& alpha, const VectorOut<std::int32_t>& order,
           const VectorOut<double>& w, std::size_t run, std::uint64_t seed, int threads) {
            return with_dense(X, [&](const auto& rows) {
                return run_descend(rows, a, q, C, unit, above, below, alpha, order, w, run, seed, threads);
            });
        },
        "X"_a.noconvert(), "a"_a.noconvert(), "q"_a.noconvert(), "C"_a, "unit"_a, "above"_a, "below"_a,
        "alpha"_a.noconvert(), "order"_a.noconvert(), "w"_a.noconvert(), "run"_a, "seed"_a, "threads"_a);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    m.def(
        "sparse_descend",
        [](const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, const Vector<double>& a,
           const Vector<double>& q, double C, double unit, double above, double below, const VectorOut<double>& alpha,
           const VectorOut<std::int32_t>& order, const VectorOut<double>& w, std::size_t run, std::uint64_t seed, int threads) {
            const auto rows = sparse(values, columns, pointers, static_cast<std::int64_t>(w.shape(0)) - 1);
            return run_descend(rows, a, q, C, unit, above, below, alpha, order, w, run, seed, threads);
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "pointers"_a.noconvert(), "a"_a.noconvert(),
        "q"_a.noconvert(), "C"_a, "unit"_a, "above"_a, "below"_a, "alpha"_a.noconvert(), "order"_a.noconvert(),
        "w"_a.noconvert(), "run"_a, "seed"_a, "threads"_a);
}

}  // namespace

void bind_dcd(nb::module_& m) {
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
}
