// Losses of core/row_losses.hpp over all rows; and of those with a continuous slope the behaviour along a line of scores.
// Piecewise linear ones have theirs in core/hinge.hpp.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "core/parallel.hpp"
#include "core/row_losses.hpp"
#include "core/view.hpp"

namespace cutsvm {

// sum_i l_i(f_i)
// requires: f has one entry per row.
// ensures: the same bits for any number of threads.
template <class Loss>
double loss_value(const Loss& loss, View<const double> f, int threads) {
    const auto block = [=](std::int64_t begin, std::int64_t end) {
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = begin; i < end; ++i) sum += loss.value(i, f[i]);
        return std::array{sum};
    };
    return sum_blocks<1>(loss.size(), threads, block, PIECEWISE<Loss> ? LIGHT : 1)[0];
}

// Sums over a shard: of the offsets of the rows' planes, of |g_i|, and of the absolute values of what the offsets are
// made of.
struct ShardSums {
    View<double> offsets, sizes, magnitudes;
};

// g[i] = l_i'(f_i), with the offsets l_i(f_i) - g_i f_i of the tangents.
// requires: f and g have one entry per row; bounds one more than the sums, from 0 to n, never falling.
// ensures: the same bits for any number of threads.
template <class Loss>
void loss_slopes(const Loss& loss, View<const double> f, View<const std::int64_t> bounds, View<double> g,
                 const ShardSums& sums, int threads) {
    for_blocks(loss.size(), threads, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) g[i] = loss.slope(i, f[i]);
    });
    for_equal_tasks(sums.offsets.size(), threads, [=](std::int64_t p) {
        double offset = 0.0, size = 0.0, magnitude = 0.0;
        for (std::int64_t i = bounds[p]; i < bounds[p + 1]; ++i) {
            const double value = loss.value(i, f[i]), product = g[i] * f[i];
            offset += value - product;
            size += std::abs(g[i]);
            magnitude += value + std::abs(product);
        }
        sums.offsets[p] = offset;
        sums.sizes[p] = size;
        sums.magnitudes[p] = magnitude;
    });
}

// The offsets of the highest planes with slopes g.
// requires: g has one entry per row, a slope that the row's loss has somewhere; bounds as in loss_slopes.
// ensures: the same bits for any number of threads.
template <class Loss>
void dual_heights(const Loss& loss, View<const double> g, View<const std::int64_t> bounds, const ShardSums& sums,
                  int threads) {
    for_equal_tasks(sums.offsets.size(), threads, [=](std::int64_t p) {
        double offset = 0.0, size = 0.0, magnitude = 0.0;
#pragma omp simd reduction(+ : offset, size, magnitude)
        for (std::int64_t i = bounds[p]; i < bounds[p + 1]; ++i) {
            offset += loss.offset(i, g[i]);
            size += std::abs(g[i]);
            magnitude += loss.terms(i, g[i]);
        }
        sums.offsets[p] = offset;
        sums.sizes[p] = size;
        sums.magnitudes[p] = magnitude;
    });
}

// out[i] = l_i''(f_i)
// requires: f and out have one entry per row.
template <class Loss>
void loss_curvatures(const Loss& loss, View<const double> f, View<double> out, int threads) {
    for_blocks(loss.size(), threads, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) out[i] = loss.curvature(i, f[i]);
    });
}

// At f_i + k step(i): {value, slope, curvature} of the loss in k.
// ensures: the same bits for any number of threads.
template <class Loss, class Step>
std::array<double, 3> loss_on_line(const Loss& loss, View<const double> f, const Step& step, double k, int threads) {
    return sum_blocks<3>(loss.size(), threads, [=](std::int64_t begin, std::int64_t end) {
        double value = 0.0, slope = 0.0, curvature = 0.0;
#pragma omp simd reduction(+ : value, slope, curvature)
        for (std::int64_t i = begin; i < end; ++i) {
            const double along = step(i), here = f[i] + k * along;
            value += loss.value(i, here);
            slope += loss.slope(i, here) * along;
            curvature += loss.curvature(i, here) * along * along;
        }
        return std::array{value, slope, curvature};
    });
}

// At one k of the line f + k (to - f), or f + k if `to` is empty: {value, slope, curvature} of the loss in k.
// requires: f and, unless it is empty, to have one entry per row.
// ensures: the same bits for any number of threads.
template <class Loss>
std::array<double, 3> loss_along(const Loss& loss, View<const double> f, View<const double> to, double k, int threads) {
    if (to.empty()) return loss_on_line(loss, f, [](std::int64_t) { return 1.0; }, k, threads);
    return loss_on_line(loss, f, [=](std::int64_t i) { return to[i] - f[i]; }, k, threads);
}

}  // namespace cutsvm
