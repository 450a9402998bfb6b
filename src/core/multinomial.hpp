// The multinomial logistic loss of K scores per row: s_i (log sum_k exp(f_ik) - f_iy), y the row's label.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "core/row_losses.hpp"
#include "core/view.hpp"

namespace cutsvm {

// Rows of K scores each, with labels in 0..K-1 and weights.
struct ClassScores {
    const double* f;  // n rows of K
    View<const std::int32_t> y;
    View<const double> s;
    std::int64_t K;

    std::int64_t size() const { return y.size(); }
};

// p[k] = exp(f_k - max) for one row; returns {their sum, max}. requires: p has K entries.
inline std::array<double, 2> exponentials(const double* f, std::int64_t K, double* p) {
    double top = f[0], sum = 0.0;
    for (std::int64_t k = 1; k < K; ++k) top = std::max(top, f[k]);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t k = 0; k < K; ++k) {
        p[k] = exp_minus(top - f[k]);
        sum += p[k];
    }
    return {sum, top};
}

// A row's loss, log(sum) + top - f_y, with the own score f_y.
// requires: what `exponentials` has returned.
inline double class_loss(const std::array<double, 2>& sum_and_top, double own) {
    return std::log(sum_and_top[0]) + (sum_and_top[1] - own);
}

// sum_i of the losses
// requires: f has n rows of K scores; labels in 0..K-1.
// ensures: the same bits for any number of threads.
inline double multinomial_value(const ClassScores& rows, int threads) {
    return sum_blocks<1>(rows.size(), threads, [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> p(rows.K);
        double sum = 0.0;
        for (std::int64_t i = begin; i < end; ++i) {
            const double* f = rows.f + i * rows.K;
            sum += rows.s[i] * class_loss(exponentials(f, rows.K, p.data()), f[rows.y[i]]);
        }
        return std::array{sum};
    })[0];
}

// g[i, k] = s_i (p_ik - [k = y_i]), p the probabilities exp(f_ik) / sum; sums over all rows: of the tangents' offsets,
// of |g_ik|, and of the absolute values of what the offsets are made of.
// requires: as multinomial_value; g has as many entries as f.
// ensures: the same bits for any number of threads.
inline std::array<double, 3> multinomial_slopes(const ClassScores& rows, double* g, int threads) {
    return sum_blocks<3>(rows.size(), threads, [&](std::int64_t begin, std::int64_t end) {
        double offset = 0.0, size = 0.0, magnitude = 0.0;
        for (std::int64_t i = begin; i < end; ++i) {
            const double *f = rows.f + i * rows.K, s = rows.s[i];
            double* const p = g + i * rows.K;
            const std::int32_t y = rows.y[i];
            const auto found = exponentials(f, rows.K, p);
            const double value = s * class_loss(found, f[y]);
            double product = 0.0, products = 0.0, others = 0.0;
            for (std::int64_t k = 0; k < rows.K; ++k) {
                others += k == y ? 0.0 : p[k];
                p[k] *= s / found[0];
            }
            p[y] = -s * others / found[0];  // p_y - 1, without cancellation
            for (std::int64_t k = 0; k < rows.K; ++k) {
                product += p[k] * (f[k] - f[y]);  // they sum to 0 over k, so that any f may be subtracted
                products += std::abs(p[k]) * (std::abs(f[k]) + std::abs(f[y]));
                size += std::abs(p[k]);
            }
            offset += value - product;
            magnitude += value + products;
        }
        return std::array{offset, size, magnitude};
    });
}

// At f + k (to - f): {value, slope, curvature} of the loss in k.
// requires: as multinomial_value; to has as many entries as f.
// ensures: the same bits for any number of threads.
inline std::array<double, 3> multinomial_along(const ClassScores& rows, const double* to, double at, int threads) {
    return sum_blocks<3>(rows.size(), threads, [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> here(rows.K), p(rows.K);
        double value = 0.0, slope = 0.0, curvature = 0.0;
        for (std::int64_t i = begin; i < end; ++i) {
            const double *f = rows.f + i * rows.K, *t = to + i * rows.K, s = rows.s[i];
            const std::int32_t y = rows.y[i];
            for (std::int64_t k = 0; k < rows.K; ++k) here[k] = f[k] + at * (t[k] - f[k]);
            const auto found = exponentials(here.data(), rows.K, p.data());
            value += s * class_loss(found, here[y]);
            const double own = t[y] - f[y];
            double mean = 0.0, square = 0.0;
            for (std::int64_t k = 0; k < rows.K; ++k) {
                const double ahead = (t[k] - f[k]) - own;
                mean += p[k] * ahead;
                square += p[k] * ahead * ahead;
            }
            mean /= found[0];
            slope += s * mean;
            curvature += s * std::max(0.0, square / found[0] - mean * mean);
        }
        return std::array{value, slope, curvature};
    });
}

}  // namespace cutsvm
