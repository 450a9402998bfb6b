// Squared distances of pairs of rows from their differences. Unlike |x|^2 + |z|^2 - 2 x.z this loses nothing where rows
// are close to each other and far from the origin: every term is the square of one rounded difference.
#pragma once

#include <cstdint>

#include "core/interrupt.hpp"
#include "core/rows.hpp"
#include "core/view.hpp"

namespace cutsvm {

// requires: i < X.n, j < Z.n, X.d == Z.d.
inline double pair_distance(const DenseRows<double>& X, std::int64_t i, const DenseRows<double>& Z, std::int64_t j) {
    const double *x = X.data + i * X.stride, *z = Z.data + j * Z.stride;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t k = 0; k < X.d; ++k) sum += (x[k] - z[k]) * (x[k] - z[k]);
    return sum;
}

// requires: the columns of a row rise.
template <class I, class J>
double pair_distance(const SparseRows<double, I>& X, std::int64_t i, const SparseRows<double, J>& Z, std::int64_t j) {
    std::int64_t a = X.pointers[i], b = Z.pointers[j];
    const std::int64_t end_a = X.pointers[i + 1], end_b = Z.pointers[j + 1];
    double sum = 0.0;
    while (a < end_a && b < end_b) {
        const std::int64_t left = X.columns[a], right = Z.columns[b];
        const double x = left <= right ? X.values[a] : 0.0, z = right <= left ? Z.values[b] : 0.0;
        sum += (x - z) * (x - z);
        a += left <= right;
        b += right <= left;
    }
    for (; a < end_a; ++a) sum += X.values[a] * X.values[a];
    for (; b < end_b; ++b) sum += Z.values[b] * Z.values[b];
    return sum;
}

// out[k] = |x_i - z_j|^2 for i = left[k], j = right[k].
// requires: left, right and out have one entry per pair, left < n of X, right < n of Z; X.d == Z.d.
template <class Rows, class Others>
void pair_distances(const Rows& X, View<const std::int64_t> left, const Others& Z, View<const std::int64_t> right,
                    View<double> out) {
    Interrupt interrupt;
    for (std::int64_t k = 0; k < out.size(); ++k) {
        if (k % 1024 == 0) interrupt.check();
        out[k] = pair_distance(X, left[k], Z, right[k]);
    }
}

}  // namespace cutsvm
