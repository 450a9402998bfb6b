// Dual variables of losses (core/row_losses.hpp) over all rows, which coordinate descent (core/dcd.hpp) changes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/dcd.hpp"
#include "core/parallel.hpp"
#include "core/row_losses.hpp"
#include "core/view.hpp"

namespace cutsvm {

// sum_i C offset_i(-y_i alpha_i / C): the dual without its |w|^2/2.
// requires: alpha has one entry per row, within its limits.
// ensures: the same bits for any number of threads.
template <class Loss>
double dual_value(const Loss& loss, View<const double> alpha, double C, int threads) {
    const auto block = [=](std::int64_t begin, std::int64_t end) {
        double sum = 0.0;
        for (std::int64_t i = begin; i < end; ++i) sum += C * loss.offset(i, -loss.label(i) * alpha[i] / C);
        return std::array{sum};
    };
    return sum_blocks<1>(loss.size(), threads, block)[0];
}

// out[i] = the row's share of primal - dual at the score f_i.
// requires: f, alpha and out have one entry per row; alpha within its limits.
template <class Loss>
void dual_gaps(const Loss& loss, View<const double> f, View<const double> alpha, double C, View<double> out,
               int threads) {
    for_blocks(loss.size(), threads, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) out[i] = loss.optimality(i, alpha[i], loss.label(i) * f[i], C).gap;
    });
}

// out[i] = whether coordinate descent would leave the row out at the score f_i.
// requires: as dual_gaps.
template <class Loss>
void at_rest(const Loss& loss, View<const double> f, View<const double> alpha, double C, Safe safe, View<bool> out,
             int threads) {
    for_blocks(loss.size(), threads, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const double m = loss.label(i) * f[i];
            out[i] = safe(loss.optimality(i, alpha[i], m, C).margins, m);
        }
    });
}

// Every alpha_i becomes the nearest one within its limits.
// requires: alpha has one entry per row.
template <class Loss>
void clip_dual(const Loss& loss, View<double> alpha, double C, int threads) {
    for_blocks(loss.size(), threads, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const auto [low, high] = loss.limits(i, C);
            alpha[i] = std::clamp(alpha[i], low, high);
        }
    });
}

}  // namespace cutsvm
