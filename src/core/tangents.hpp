// The hinge loss at several points at once: what it is there, and the plane that touches it, with one reading of the rows.
//
// Points of a walk over C are known before any of them is visited. A sweep for one of them does one multiplication for
// each value that it reads; here a value is used for all points while it is there. covtype as CSR, one thread: scores of
// one point take 6.5 ms, 8 points with their planes 14.5 ms, 16 points 22 ms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/large_pages.hpp"
#include "core/many.hpp"
#include "core/rows.hpp"

namespace cutsvm {

// Points that one sweep takes at most.
inline constexpr std::int64_t POINTS = 2 * ABREAST;

inline void store(const Abreast& lanes, double* to) { std::memcpy(to, &lanes, sizeof lanes); }

// sums[j] += sum of x_(first + r, j) slopes[r] over `many` rows, one after the other. sums: d rows of GROUPS x ABREAST.
template <int GROUPS>
void spread(const DenseRows<double>& rows, std::int64_t first, std::int64_t many, const Abreast (*slopes)[GROUPS],
            double* sums) {
    const double* x = rows.data + first * rows.stride;
    for (std::int64_t j = 0; j < rows.d; ++j)
        for (int g = 0; g < GROUPS; ++g) {
            double* place = sums + (j * GROUPS + g) * ABREAST;
            Abreast sum;
            load(sum, place);
            for (std::int64_t r = 0; r < many; ++r) sum += x[r * rows.stride + j] * slopes[r][g];
            store(sum, place);
        }
}
template <int GROUPS, class T, class I>
void spread(const SparseRows<T, I>& rows, std::int64_t first, std::int64_t many, const Abreast (*slopes)[GROUPS],
            double* sums) {
    for (std::int64_t r = 0; r < many; ++r)
        for (std::int64_t k = rows.pointers[first + r]; k < rows.pointers[first + r + 1]; ++k) {
            double* row = sums + static_cast<std::int64_t>(rows.columns[k]) * GROUPS * ABREAST;
            const auto value = static_cast<double>(rows.values[k]);
            for (int g = 0; g < GROUPS; ++g) {
                Abreast sum;
                load(sum, row + g * ABREAST);
                sum += value * slopes[r][g];
                store(sum, row + g * ABREAST);
            }
        }
}

// The rows [begin, end) at up to GROUPS x ABREAST points: goes on with sums, (d + 1) x width, and heights, 2 x width.
template <int GROUPS, class Rows>
void touch(const Rows& rows, std::span<const double> a, const Transposed& W, const double* b, std::int64_t begin,
           std::int64_t end, double* sums, double* heights) {
    constexpr int ROWS = 4;
    Abreast bias[GROUPS], loss[GROUPS], offset[GROUPS], total[GROUPS];
    double* last = sums + rows.d * GROUPS * ABREAST;
    for (int g = 0; g < GROUPS; ++g) {
        load(bias[g], b + g * ABREAST);
        load(loss[g], heights + g * ABREAST);
        load(offset[g], heights + (GROUPS + g) * ABREAST);
        load(total[g], last + g * ABREAST);
    }
    FewRows<Rows> few(rows);
    for (std::int64_t i = begin; i < end; i += ROWS) {
        const std::int64_t many = std::min<std::int64_t>(ROWS, end - i);
        std::int64_t first = i;
        const auto& near = few.from(first, many);
        Abreast dots[ROWS][2], slopes[ROWS][GROUPS];
        if (many == ROWS)
            tile<ROWS, GROUPS>(near, first, W, 0, dots);
        else
            for (std::int64_t r = 0; r < many; ++r) tile<1, GROUPS>(near, first + r, W, 0, dots + r);
        for (std::int64_t r = 0; r < many; ++r) {
            const double label = a[static_cast<std::size_t>(i + r)], weight = std::abs(label);
            for (int g = 0; g < GROUPS; ++g) {
                const Abreast zero{}, left = weight - label * (dots[r][g] + bias[g]);
                const auto inside = left > 0.0;
                slopes[r][g] = inside ? zero - label : zero;
                loss[g] += inside ? left : zero;
                offset[g] += inside ? zero + weight : zero;
                total[g] += slopes[r][g];
            }
        }
        spread<GROUPS>(near, first, many, slopes, sums);
    }
    for (int g = 0; g < GROUPS; ++g) {
        store(loss[g], heights + g * ABREAST);
        store(offset[g], heights + (GROUPS + g) * ABREAST);
        store(total[g], last + g * ABREAST);
    }
}

// For each piece q of the rows and each point k, with f_i = x_i . W[k] + b[k], over the rows inside the margin:
//   partial[q, k] -= sum of a_i (x_i, 1),   heights[q, k] += (sum of |a_i| - a_i f_i, sum of |a_i|)
// The loss of piece q is at least partial[q, k] . (w, b) + heights[q, k, 1] everywhere, and equal to that at the point.
// Sums that go on over the next rows come out the same to the last bit as those over all rows at once.
// requires: W is K x d, K <= POINTS; partial is Q x K x (d + 1) and heights Q x K x 2, row-major; edges has Q + 1
//           entries, from 0 to n, never falling.
template <class Rows>
void hinge_tangents(const Rows& rows, std::span<const double> a, const double* W, std::span<const double> b,
                    std::span<const std::int64_t> edges, double* partial, double* heights, int threads) {
    const auto points = static_cast<std::int64_t>(b.size());
    const auto count = static_cast<std::int64_t>(edges.size()) - 1;
    const Transposed transposed(W, points, rows.d);
    const std::int64_t width = transposed.width, size = rows.d + 1;
    std::vector<double> bias(static_cast<std::size_t>(width));
    std::copy(b.begin(), b.end(), bias.begin());
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        LargeVector<double> sums(static_cast<std::size_t>(size * width)), both(static_cast<std::size_t>(2 * width));
#pragma omp for schedule(dynamic)
        for (std::int64_t q = 0; q < count; ++q) {
            const std::int64_t begin = edges[static_cast<std::size_t>(q)], end = edges[static_cast<std::size_t>(q) + 1];
            if (begin == end) continue;
            std::fill(sums.begin(), sums.end(), 0.0);
            std::fill(both.begin(), both.end(), 0.0);
            double *slopes = partial + q * points * size, *height = heights + q * points * 2;
            for (std::int64_t k = 0; k < points; ++k) {
                for (std::int64_t j = 0; j < size; ++j) sums[static_cast<std::size_t>(j * width + k)] = slopes[k * size + j];
                for (std::int64_t h = 0; h < 2; ++h) both[static_cast<std::size_t>(h * width + k)] = height[k * 2 + h];
            }
            width > ABREAST ? touch<2>(rows, a, transposed, bias.data(), begin, end, sums.data(), both.data())
                            : touch<1>(rows, a, transposed, bias.data(), begin, end, sums.data(), both.data());
            for (std::int64_t k = 0; k < points; ++k) {
                for (std::int64_t j = 0; j < size; ++j) slopes[k * size + j] = sums[static_cast<std::size_t>(j * width + k)];
                for (std::int64_t h = 0; h < 2; ++h) height[k * 2 + h] = both[static_cast<std::size_t>(h * width + k)];
            }
        }
    }
}

}  // namespace cutsvm
