// Kernel machines: functions f(x) = sum_k coef_k K(x, x_k) over their support, and the problems they are trained on.
//
// A machine comes in `W` versions at once, one for each value of C, whose coefficients lie side by side: a kernel
// value is read once for all of them. Kernel values are float, coefficients and sums are double.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace cutsvm {

// A matrix of kernel values: that of row i with the row of column j is values[i * stride + j].
struct Gram {
    const float* values;
    std::int64_t rows, columns, stride;

    const float* row(std::int64_t i) const { return values + i * stride; }
};

// Problems of two classes each, on rows of one data set. Problem p has the rows rows[first[p]], ..,
// rows[first[p + 1] - 1] and their signs times weights: a = y s, where -0.0 is a row of the negative class without
// weight.
struct Problems {
    std::span<const std::int32_t> rows;
    std::span<const double> a;
    std::span<const std::int64_t> first;

    std::int64_t count() const { return static_cast<std::int64_t>(first.size()) - 1; }
    std::int64_t size(std::int64_t p) const { return first[static_cast<std::size_t>(p) + 1] - first[static_cast<std::size_t>(p)]; }
};

template <std::size_t W>
using Sums = std::array<double, W>;

// f(x) of one machine for R points at once, given their kernel values: the sums over its support of
// coef[k] * kernel[r][columns[k]]. next: the kernel values that will be asked for after these, to be fetched meanwhile.
template <std::size_t W, std::size_t R>
std::array<Sums<W>, R> support_sums(const std::array<const float*, R>& kernel, const std::int32_t* columns,
                                    const double* coef, std::int64_t count, const float* next = nullptr) {
    constexpr std::size_t LANES = std::max<std::size_t>(1, 4 / R);  // sums that do not wait for each other
    std::array<std::array<Sums<W>, R>, LANES> lanes{};
    const auto add = [&](std::int64_t k, std::array<Sums<W>, R>& lane) {
        const double* own = coef + k * static_cast<std::int64_t>(W);
        for (std::size_t r = 0; r < R; ++r) {
            const double value = static_cast<double>(kernel[r][columns[k]]);
#pragma omp simd
            for (std::size_t c = 0; c < W; ++c) lane[r][c] += value * own[c];
        }
    };
    std::int64_t k = 0;
    for (; k + static_cast<std::int64_t>(LANES) <= count; k += static_cast<std::int64_t>(LANES))
        for (std::size_t l = 0; l < LANES; ++l) {
            if (next != nullptr) __builtin_prefetch(next + columns[k + static_cast<std::int64_t>(l)]);
            add(k + static_cast<std::int64_t>(l), lanes[l]);
        }
    for (; k < count; ++k) add(k, lanes[0]);
    for (std::size_t l = 1; l < LANES; ++l)
        for (std::size_t r = 0; r < R; ++r)
            for (std::size_t c = 0; c < W; ++c) lanes[0][r][c] += lanes[l][r][c];
    return lanes[0];
}

}  // namespace cutsvm
