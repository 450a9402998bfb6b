// The hinge loss at several points at once: what it is there, and the plane that touches it, with one reading of the
// rows.
//
// Points of a path over C are known before any of them is visited. A pass for one of them does one multiplication for
// each value that it reads; here a value that was read is used for all points.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/lanes.hpp"
#include "core/large_pages.hpp"
#include "core/many.hpp"
#include "core/parallel.hpp"
#include "core/rows.hpp"
#include "core/view.hpp"

namespace cutsvm {

// Points that one sweep takes at most.
inline constexpr std::int64_t POINTS = 2 * BATCH;

// sums[j] += sum of x_(first + r, j) slopes[r] over MANY rows, one after the other. sums: d rows of GROUPS x BATCH.
// requires: rows first .. first + MANY - 1 exist.
template <int MANY, int GROUPS>
void spread(const DenseRows<double>& rows, std::int64_t first, const Batch (&slopes)[MANY][GROUPS], double* sums) {
    const double* x = rows.data + first * rows.stride;
    for (std::int64_t j = 0; j < rows.d; ++j)
        for (int g = 0; g < GROUPS; ++g) {
            double* place = sums + (j * GROUPS + g) * BATCH;
            Batch sum = load(place);
            for (int r = 0; r < MANY; ++r) sum += x[r * rows.stride + j] * slopes[r][g];
            store(sum, place);
        }
}
// requires: as above.
template <int MANY, int GROUPS, class T, class I>
void spread(const SparseRows<T, I>& rows, std::int64_t first, const Batch (&slopes)[MANY][GROUPS], double* sums) {
    for (int r = 0; r < MANY; ++r)
        for (std::int64_t k = rows.pointers[first + r]; k < rows.pointers[first + r + 1]; ++k) {
            double* row = sums + static_cast<std::int64_t>(rows.columns[k]) * GROUPS * BATCH;
            const auto value = static_cast<double>(rows.values[k]);
            for (int g = 0; g < GROUPS; ++g) {
                double* place = row + g * BATCH;
                store(load(place) + value * slopes[r][g], place);
            }
        }
}

// The rows [begin, end) at up to GROUPS x BATCH points: adds to sums, (d + 1) x width, and heights, 2 x width.
// requires: a has n entries, W.width == GROUPS BATCH, b has W.width.
template <int GROUPS, class Rows>
void touch(const Rows& rows, View<const double> a, const Transposed& W, const double* b, std::int64_t begin,
           std::int64_t end, double* sums, double* heights) {
    Batch bias[GROUPS], loss[GROUPS], offset[GROUPS], total[GROUPS];
    double* last = sums + rows.d * GROUPS * BATCH;
    for (int g = 0; g < GROUPS; ++g) {
        bias[g] = load(b + g * BATCH);
        loss[g] = load(heights + g * BATCH);
        offset[g] = load(heights + (GROUPS + g) * BATCH);
        total[g] = load(last + g * BATCH);
    }
    FewRows<Rows> few(rows);
    few_at_a_time<ROWS<GROUPS>>(begin, end, [&]<int MANY>(Count<MANY>, std::int64_t i) {
        std::int64_t first = i;
        const auto& near = few.from(first, MANY);
        Batch dots[MANY][GROUPS], slopes[MANY][GROUPS];
        tile(near, first, W, 0, dots);
        for (int r = 0; r < MANY; ++r) {
            const double label = a[i + r], weight = std::abs(label);
            for (int g = 0; g < GROUPS; ++g) {
                const Batch zero{}, left = broadcast(weight) - label * (dots[r][g] + bias[g]);
                const Mask inside = left > zero;
                slopes[r][g] = select(inside, broadcast(-label), zero);
                loss[g] += select(inside, left, zero);
                offset[g] += select(inside, broadcast(weight), zero);
                total[g] += slopes[r][g];
            }
        }
        spread(near, first, slopes, sums);
    });
    for (int g = 0; g < GROUPS; ++g) {
        store(loss[g], heights + g * BATCH);
        store(offset[g], heights + (GROUPS + g) * BATCH);
        store(total[g], last + g * BATCH);
    }
}

// For each piece q of the rows and each point k, with f_i = x_i . W[k] + b[k], over the rows inside the margin:
//   partial[q, k] -= sum of a_i (x_i, 1),   heights[q, k] += (sum of |a_i| - a_i f_i, sum of |a_i|)
// The loss of piece q is at least partial[q, k] . (w, b) + heights[q, k, 1] everywhere, and equal to that at the point.
// Sums continued over the next rows are the same to the last bit as those over all rows at once.
// requires: W is K x d, K <= POINTS; partial is Q x K x (d + 1) and heights Q x K x 2, row-major; edges has Q + 1
//           entries, from 0 to n, never falling.
template <class Rows>
void hinge_tangents(const Rows& rows, View<const double> a, const double* W, View<const double> b,
                    View<const std::int64_t> edges, double* partial, double* heights, int threads) {
    const auto points = std::ssize(b);
    const auto count = std::ssize(edges) - 1;
    const Transposed transposed(W, points, rows.d);
    const std::int64_t width = transposed.width, size = rows.d + 1;
    std::vector<double> bias(width);
    std::copy(b.begin(), b.end(), bias.begin());
    struct Own {
        LargeVector<double> sums, both;
    };
    const auto make = [&] { return Own{LargeVector<double>(size * width), LargeVector<double>(2 * width)}; };
    for_tasks_with(count, threads, make, [&](std::int64_t q, Own& own) {
        auto& [sums, both] = own;
        const std::int64_t begin = edges[q], end = edges[q + 1];
        if (begin == end) return;
        std::fill(sums.begin(), sums.end(), 0.0);
        std::fill(both.begin(), both.end(), 0.0);
        double *slopes = partial + q * points * size, *height = heights + q * points * 2;
        for (std::int64_t k = 0; k < points; ++k) {
            for (std::int64_t j = 0; j < size; ++j) sums[j * width + k] = slopes[k * size + j];
            for (std::int64_t h = 0; h < 2; ++h) both[h * width + k] = height[k * 2 + h];
        }
        width > BATCH ? touch<2>(rows, a, transposed, bias.data(), begin, end, sums.data(), both.data())
                      : touch<1>(rows, a, transposed, bias.data(), begin, end, sums.data(), both.data());
        for (std::int64_t k = 0; k < points; ++k) {
            for (std::int64_t j = 0; j < size; ++j) slopes[k * size + j] = sums[j * width + k];
            for (std::int64_t h = 0; h < 2; ++h) height[k * 2 + h] = both[h * width + k];
        }
    });
}

}  // namespace cutsvm
