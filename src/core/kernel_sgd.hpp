// Stochastic gradient steps for kernel machines (Melki and Kecman 2016, Algorithm B), for many problems and many C at
// once. Each problem minimises
//
//   |w|^2 / (2 C m) + 1/m sum_i s_i max(0, 1 - y_i f(x_i)),     f(x) = sum_j alpha_j K(x_j, x)
//
//   beta = 0
//   for t = 1 .. T, i = rows[(t - 1) mod m]:
//       alpha = C scale_t beta                       scale_t = m / t is the paper's 1 / (lambda t)
//       if y_i f(x_i) < 1:  beta_i += y_i s_i
//
// The answer is the mean of some of the alphas, of which each change of beta is a part: a change made by step t counts
// in all that come later, with tail_t = the sum of their scales over their number. So `mean` takes one more addition
// where beta changes, and nothing where it does not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/interrupt.hpp"
#include "core/machines.hpp"
#include "core/view.hpp"

namespace cutsvm {

// What the steps so far have made, for all problems one after another as in Problems::rows.
// The support of problem p are the first used[p] entries of its part of columns, beta and mean.
struct SgdState {
    View<std::int32_t> slot;     // the row's place in the support, -1 if it is not there
    View<std::int32_t> columns;  // of Gram
    View<double> beta, mean;     // W numbers each
    View<std::int64_t> used;
};

// Places of the rows in a Gram matrix of some of them: -1 if a row is not in it.
struct Places {
    View<const std::int32_t> row, column;
};

// Factors of the steps, for all problems one after another: those of problem p begin at epochs * first[p].
struct Schedule {
    View<const double> scale, tail;
    std::int64_t epochs;
};

// Steps begin+1 .. end of problem p. margin[c] = 1 / C, minus infinity for a version that is not there.
// requires: each row of these steps has a place in gram.
template <std::size_t W>
void sgd_steps(const Gram& gram, const Places& places, const Problems& problems, const Schedule& schedule,
               const Sums<W>& margin, std::int64_t p, std::int64_t begin, std::int64_t end, const SgdState& state,
               Interrupt& interrupt) {
    const std::int64_t first = problems.begin(p), m = problems.size(p);
    const std::int32_t* rows = problems.rows.data() + first;
    const double* a = problems.a.data() + first;
    const double* scale = schedule.scale.data() + schedule.epochs * first;
    const double* tail = schedule.tail.data() + schedule.epochs * first;
    std::int32_t* slot = state.slot.data() + first;
    std::int32_t* columns = state.columns.data() + first;
    double* beta = state.beta.data() + first * static_cast<std::int64_t>(W);
    double* mean = state.mean.data() + first * static_cast<std::int64_t>(W);
    std::int64_t used = state.used[p];

    for (std::int64_t t = begin; t < end; ++t) {
        if (t % 64 == 0 && interrupt.requested()) break;
        const std::int64_t k = t % m;
        const std::int32_t i = rows[k];
        const double y = std::copysign(1.0, a[k]);
        const std::int32_t after = rows[(t + 1) % m];
        const float* next = t + 1 < end ? gram.row(places.row[after]) : nullptr;
        const Sums<W> f = support_sums<W, 1>({gram.row(places.row[i])}, columns, beta, used, next)[0];
        Sums<W> change;
        bool any = false;
        for (std::size_t c = 0; c < W; ++c) {
            const bool short_of = y * scale[t] * f[c] < margin[c];
            change[c] = short_of ? a[k] : 0.0;
            any |= change[c] != 0.0;
        }
        if (!any) continue;
        if (slot[k] < 0) {
            slot[k] = static_cast<std::int32_t>(used);
            columns[used] = places.column[i];
            ++used;
        }
        const std::int64_t at = slot[k] * static_cast<std::int64_t>(W);
        for (std::size_t c = 0; c < W; ++c) {
            beta[at + static_cast<std::int64_t>(c)] += change[c];
            mean[at + static_cast<std::int64_t>(c)] += tail[t] * change[c];
        }
    }
    state.used[p] = used;
}

// The same without a kernel (Algorithm A), for one problem: theta = sum_i beta_i x_i is kept as well.
// requires: rows, a, beta and mean have one length > 0; scale and tail have `end` entries; theta has d.
template <class Rows>
void linear_sgd_steps(const Rows& x, View<const std::int32_t> rows, View<const double> a, View<const double> scale,
                      View<const double> tail, double margin, std::int64_t begin, std::int64_t end, double* theta,
                      View<double> beta, View<double> mean) {
    const auto m = std::ssize(rows);
    for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t k = t % m;
        if (t + 1 < end) x.prefetch(rows[(t + 1) % m]);
        const double y = std::copysign(1.0, a[k]);
        if (a[k] == 0.0 || !(y * scale[t] * x.dot(rows[k], theta) < margin)) continue;
        x.axpy(rows[k], a[k], theta);
        beta[k] += a[k];
        mean[k] += tail[t] * a[k];
    }
}

// Coordinate ascent on the dual of the same problem without a kernel, begin .. end of the visits to its rows in turn:
//   max over 0 <= alpha_i <= C s_i of  sum_i alpha_i - |w|^2 / 2,     w = sum_i alpha_i y_i x_i
//   alpha_i = clip(alpha_i + (1 - y_i w.x_i) / |x_i|^2, 0, C s_i)
// requires: rows, a and alpha have one length > 0; 0 <= alpha_i <= C s_i; w belongs to alpha.
// ensures: the same of alpha and w.
template <class Rows>
void linear_ascent_steps(const Rows& x, View<const std::int32_t> rows, View<const double> a, double C,
                         std::int64_t begin, std::int64_t end, double* w, View<double> alpha) {
    const auto m = std::ssize(rows);
    for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t k = t % m;
        if (t + 1 < end) x.prefetch(rows[(t + 1) % m]);
        const double y = std::copysign(1.0, a[k]), cap = C * std::abs(a[k]), before = alpha[k];
        const double slope = 1.0 - y * x.dot(rows[k], w), curvature = x.square(rows[k]);
        const double bound = slope > 0.0 ? cap : 0.0;  // the maximiser for a row of zeros, whose dual is linear
        const double now = curvature > 0.0 ? std::clamp(before + slope / curvature, 0.0, cap) : bound;
        if (now == before) continue;
        x.axpy(rows[k], (now - before) * y, w);
        alpha[k] = now;
    }
}

}  // namespace cutsvm
