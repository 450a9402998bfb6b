// Kernel machines: functions f(x) = b + sum_k coef_k K(x, x_k) over their support, and the problems they are trained on.
//
// A machine comes in `W` versions at once, one for each value of C, whose coefficients are contiguous: a kernel
// value is read once for all of them. Kernel values are float, coefficients and sums are double.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/view.hpp"

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
    View<const std::int32_t> rows;
    View<const double> a;
    View<const std::int64_t> first;

    std::int64_t count() const { return std::ssize(first) - 1; }
    std::int64_t begin(std::int64_t p) const { return first[p]; }
    std::int64_t size(std::int64_t p) const { return begin(p + 1) - begin(p); }
};

// The machines that problems have led to: the support of machine p are used[p] entries from first[p] on.
struct Machines {
    View<const std::int64_t> first, used;
    const std::int32_t* columns;
    const double* coef;
    const double* intercept = nullptr;  // machines x versions; none: 0

    std::int64_t count() const { return used.size(); }
};

template <std::size_t W>
using Sums = std::array<double, W>;

// f(x) of one machine for R points at once, given their kernel values: the sums over its support of
// coef[k] * kernel[r][columns[k]]. next: the kernel values that will be asked for after these, to be fetched meanwhile.
// requires: columns and coef have `count` entries (of W numbers), columns within each kernel row.
template <std::size_t W, std::size_t R>
std::array<Sums<W>, R> support_sums(const std::array<const float*, R>& kernel, const std::int32_t* columns,
                                    const double* coef, std::int64_t count, const float* next = nullptr) {
    constexpr std::size_t CHAINS = std::max<std::size_t>(1, 4 / R);  // sums that do not wait for each other
    std::array<std::array<Sums<W>, R>, CHAINS> chains{};
    const auto add = [&](std::int64_t k, std::array<Sums<W>, R>& chain) {
        const double* own = coef + k * static_cast<std::int64_t>(W);
        for (std::size_t r = 0; r < R; ++r) {
            const double value = static_cast<double>(kernel[r][columns[k]]);
#pragma omp simd
            for (std::size_t c = 0; c < W; ++c) chain[r][c] += value * own[c];
        }
    };
    std::int64_t k = 0;
    for (; k + static_cast<std::int64_t>(CHAINS) <= count; k += static_cast<std::int64_t>(CHAINS))
        for (std::size_t l = 0; l < CHAINS; ++l) {
            if (next != nullptr) __builtin_prefetch(next + columns[k + static_cast<std::int64_t>(l)]);
            add(k + static_cast<std::int64_t>(l), chains[l]);
        }
    for (; k < count; ++k) add(k, chains[0]);
    for (std::size_t l = 1; l < CHAINS; ++l)
        for (std::size_t r = 0; r < R; ++r)
            for (std::size_t c = 0; c < W; ++c) chains[0][r][c] += chains[l][r][c];
    return chains[0];
}

inline constexpr std::int64_t TILE = 32;  // rows that share what is read of a machine

// The scores of at most TILE rows: out is rows x machines x versions. A piece of a machine's support serves all rows
// before the next one is read.
// requires: rows within gram, the columns of all machines too; out has rows x machines x W entries.
template <std::size_t W>
void score_tile(const Gram& gram, const Machines& machines, View<const std::int32_t> rows, double* out) {
    constexpr std::int64_t PIECE = 256;
    const auto count = std::ssize(rows), width = machines.count() * static_cast<std::int64_t>(W);
    for (std::int64_t i = 0; i < count; ++i) {
        if (machines.intercept == nullptr)
            std::fill_n(out + i * width, width, 0.0);
        else
            std::copy_n(machines.intercept, width, out + i * width);
    }
    const auto kernel = [&](std::int64_t i) { return gram.row(rows[i]); };
    for (std::int64_t p = 0; p < machines.count(); ++p)
        for (std::int64_t k = 0; k < machines.used[p]; k += PIECE) {
            const std::int64_t from = machines.first[p] + k, size = std::min(PIECE, machines.used[p] - k);
            const std::int32_t* columns = machines.columns + from;
            const double* coef = machines.coef + from * static_cast<std::int64_t>(W);
            const auto put = [&](std::int64_t i, const auto& sums) {
                for (const Sums<W>& own : sums) {
                    double* to = out + i++ * width + p * static_cast<std::int64_t>(W);
                    for (std::size_t c = 0; c < W; ++c) to[c] += own[c];
                }
            };
            std::int64_t i = 0;
            for (; i + 4 <= count; i += 4) {
                const std::array four{kernel(i), kernel(i + 1), kernel(i + 2), kernel(i + 3)};
                put(i, support_sums<W, 4>(four, columns, coef, size));
            }
            for (; i < count; ++i) put(i, support_sums<W, 1>({kernel(i)}, columns, coef, size));
        }
}

}  // namespace cutsvm
