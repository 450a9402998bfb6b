// Steps on the dual of core/kernel_dual.hpp within a working set, whose kernel values with each other are known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/interrupt.hpp"
#include "core/view.hpp"

namespace cutsvm {

// The variables of a working set; K is q x q, by rows, of float or double.
template <class V>
struct WorkingSet {
    const V* K;
    View<const double> low, high;
    View<double> s, g;

    std::int64_t size() const { return s.size(); }
    const V* row(std::int64_t i) const { return K + i * size(); }
};

// The least curvature of a step, as in LIBSVM: K may be singular.
inline constexpr double LEAST_CURVATURE = 1e-12;

// The first place of `key` in values.
// requires: it is there.
template <class T>
std::int64_t place_of(const std::vector<T>& values, T key) {
    constexpr std::int64_t RUN = 64;
    const T* const data = values.data();
    std::int64_t k = 0;
    for (; k + RUN <= std::ssize(values); k += RUN) {
        int found = 0;
#pragma omp simd reduction(| : found)
        for (std::int64_t l = 0; l < RUN; ++l) found |= data[k + l] == key;
        if (found != 0) break;
    }
    while (data[k] != key) ++k;
    return k;
}

// SMO with the choice of Fan, Chen and Lin (JMLR 2005), WSS 2: the variable i with the largest slope that may rise, and
// the j that may fall with which the quadratic gain is largest; s_i rises and s_j falls by the best length.
// requires: low <= s <= high; g are the slopes at s.
// ensures: low <= s <= high; g up to date; the sum of s has not changed but for rounding; ends when no pair has slopes
// that differ by more than `tolerance`. Returns the number of steps.
template <class V>
std::int64_t pair_steps(const WorkingSet<V>& set, double tolerance, std::int64_t most, Interrupt& interrupt) {
    const std::int64_t q = set.size();
    const double *low = set.low.data(), *high = set.high.data();
    double *s = set.s.data(), *g = set.g.data();
    constexpr V NONE = -std::numeric_limits<V>::infinity(), LEAST = static_cast<V>(LEAST_CURVATURE);
    std::vector<V> diagonal(q), gain(q);
    std::vector<double> rising(q);
    for (std::int64_t k = 0; k < q; ++k) diagonal[k] = set.row(k)[k];
    std::int64_t step = 0;
    for (; step < most; ++step) {
        if (step % 4096 == 4095 && interrupt.requested()) break;
        double top = -std::numeric_limits<double>::infinity(), bottom = -top;
#pragma omp simd reduction(max : top) reduction(min : bottom)
        for (std::int64_t k = 0; k < q; ++k) {
            const double up = s[k] < high[k] ? g[k] : -std::numeric_limits<double>::infinity();
            const double down = s[k] > low[k] ? g[k] : std::numeric_limits<double>::infinity();
            rising[k] = up;
            top = std::max(top, up);
            bottom = std::min(bottom, down);
        }
        if (!(top - bottom > tolerance)) break;
        const std::int64_t i = place_of(rising, top);
        const V* Ki = set.row(i);
        const V own = diagonal[i];
        V best = NONE;
#pragma omp simd reduction(max : best)
        for (std::int64_t k = 0; k < q; ++k) {
            const V slope = static_cast<V>(top - g[k]);
            const V curvature = std::max(own + diagonal[k] - V(2) * Ki[k], LEAST);
            const V value = s[k] > low[k] && slope > V(0) ? slope * slope / curvature : NONE;
            gain[k] = value;
            best = std::max(best, value);
        }
        if (best == NONE) break;
        const std::int64_t j = place_of(gain, best);
        const double curvature =
            static_cast<double>(own) + static_cast<double>(diagonal[j]) - 2.0 * static_cast<double>(Ki[j]);
        const double full = (top - g[j]) / std::max(curvature, LEAST_CURVATURE);
        const double room_i = high[i] - s[i], room_j = s[j] - low[j];
        const double length = std::min({full, room_i, room_j});
        s[i] = length == room_i ? high[i] : s[i] + length;
        s[j] = length == room_j ? low[j] : s[j] - length;
        const V* Kj = set.row(j);
#pragma omp simd
        for (std::int64_t k = 0; k < q; ++k) g[k] -= length * (static_cast<double>(Ki[k]) - static_cast<double>(Kj[k]));
    }
    return step;
}

// The same without an intercept: the variable whose step along its own axis gains most.
// ensures: ends when no slope that a variable may follow is above `tolerance`.
template <class V>
std::int64_t single_steps(const WorkingSet<V>& set, double tolerance, std::int64_t most, Interrupt& interrupt) {
    const std::int64_t q = set.size();
    const double *low = set.low.data(), *high = set.high.data();
    double *s = set.s.data(), *g = set.g.data();
    std::vector<double> diagonal(q), gain(q);
    for (std::int64_t k = 0; k < q; ++k) diagonal[k] = std::max(static_cast<double>(set.row(k)[k]), LEAST_CURVATURE);
    std::int64_t step = 0;
    for (; step < most; ++step) {
        if (step % 4096 == 4095 && interrupt.requested()) break;
        double best = 0.0, worst = 0.0;
#pragma omp simd reduction(max : best, worst)
        for (std::int64_t k = 0; k < q; ++k) {
            const double move = std::clamp(g[k] / diagonal[k], low[k] - s[k], high[k] - s[k]);
            const double value = move * (g[k] - 0.5 * diagonal[k] * move);
            gain[k] = value;
            best = std::max(best, value);
            worst = std::max(worst, move != 0.0 ? std::abs(g[k]) : 0.0);
        }
        if (!(worst > tolerance) || best <= 0.0) break;
        const std::int64_t i = place_of(gain, best);
        const double wanted = s[i] + g[i] / diagonal[i];
        const double next = std::clamp(wanted, low[i], high[i]), move = next - s[i];
        if (move == 0.0) break;
        s[i] = next;
        const V* Ki = set.row(i);
#pragma omp simd
        for (std::int64_t k = 0; k < q; ++k) g[k] -= move * static_cast<double>(Ki[k]);
    }
    return step;
}

// Without an intercept: single steps, and steps of pairs in between where many are needed. Two equal rows of different
// classes are a direction without curvature, in which single steps take C steps to the bounds and a pair takes one.
// ensures: as single_steps.
template <class V>
std::int64_t mixed_steps(const WorkingSet<V>& set, double tolerance, std::int64_t most, Interrupt& interrupt) {
    const std::int64_t run = 8 * set.size() + 64;
    std::int64_t steps = 0;
    while (steps < most && !interrupt.requested()) {
        const std::int64_t singles = single_steps(set, tolerance, std::min(run, most - steps), interrupt);
        steps += singles;
        if (singles < run) break;
        steps += pair_steps(set, tolerance, std::min(run, most - steps), interrupt);
    }
    return steps;
}

}  // namespace cutsvm
