// The hinge loss of the first rows, as many as it takes to exceed a limit: the oracle with early returns of P. Bialon
// (Control and Cybernetics 38, 2009), Algorithms 2 to 4.
//
//   for j = 1, 2, ...:  if a_j f_j < |a_j|:  r -= a_j (x_j, 1),  s += |a_j| - a_j f_j;  stop if s > limit
//
// A row is read once, for its score and for r. With several threads rows after the one where the sum stops may be read in
// vain; what is returned does not depend on it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/parallel.hpp"
#include "core/rows.hpp"
#include "core/view.hpp"

namespace cutsvm {

// Rows whose scores are computed together, and rows that one thread adds up by itself.
inline constexpr std::int64_t TOGETHER = 64, PIECE = 1024;
// Pieces between two looks at the sum, at most.
inline constexpr std::int64_t MOST = 1024;

// Sums over rows inside the margin: r, d + 1 numbers; the loss s, and the sum of |a_j|.
struct InsideSums {
    double *slope, *heights;
};

// out += sum of g[k] x_(from + at[k]) over `used` rows.
// requires: rows from + at[k] exist; at and g have `used` entries, out has d.
template <class Rows>
void add_some(const Rows& rows, std::int64_t from, const std::int32_t* at, const double* g, std::int64_t used,
              double* out) {
    for (std::int64_t k = 0; k < used; ++k) rows.axpy(from + at[k], g[k], out);
}
// Four at a time: an addition to out then waits for the one before a quarter as often.
// requires: as above.
template <class T>
void add_some(const DenseRows<T>& rows, std::int64_t from, const std::int32_t* at, const double* g, std::int64_t used,
              double* out) {
    const auto row = [&](std::int64_t k) { return rows.data + (from + at[k]) * rows.stride; };
    std::int64_t k = 0;
    for (; k + 4 <= used; k += 4) {
        const T *x0 = row(k), *x1 = row(k + 1), *x2 = row(k + 2), *x3 = row(k + 3);
        const double g0 = g[k], g1 = g[k + 1], g2 = g[k + 2], g3 = g[k + 3];
#pragma omp simd
        for (std::int64_t j = 0; j < rows.d; ++j)
            out[j] += (g0 * static_cast<double>(x0[j]) + g1 * static_cast<double>(x1[j])) +
                      (g2 * static_cast<double>(x2[j]) + g3 * static_cast<double>(x3[j]));
    }
    for (; k < used; ++k) rows.axpy(from + at[k], g[k], out);
}

// Adds the rows [begin, end) up to the first at which before + loss exceeds the limit. Returns where it stopped.
// requires: a has n entries, w has d.
template <class Rows>
std::int64_t add_until(const Rows& rows, View<const double> a, const double* w, double b, std::int64_t begin,
                       std::int64_t end, double before, double limit, const InsideSums& sums) {
    std::array<double, TOGETHER> f, g;
    std::array<std::int32_t, TOGETHER> at;
    double loss = sums.heights[0], weight = sums.heights[1], total = sums.slope[rows.d];
    std::int64_t stop = begin;
    for (std::int64_t from = begin; from < end && stop == from; from += TOGETHER) {
        const std::int64_t size = std::min(TOGETHER, end - from);
        rows.dots(from, from + size, w, f.data());
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) {  // what is left to the margin, or 0
            const double ai = a[from + i], left = std::abs(ai) - ai * (f[i] + b);
            f[i] = left > 0.0 ? left : 0.0;
        }
        std::int64_t i = 0, used = 0;
        while (i < size) {
            at[used] = static_cast<std::int32_t>(i);
            g[used] = -a[from + i];
            used += f[i] > 0.0;  // no jump: which rows are inside cannot be foreseen
            loss += f[i++];
            if (before + loss > limit) break;
        }
        for (std::int64_t k = 0; k < used; ++k) {
            weight += std::abs(g[k]);
            total += g[k];
        }
        add_some(rows, from, at.data(), g.data(), used, sums.slope);
        stop = from + i;
        if (before + loss > limit) break;
    }
    sums.heights[0] = loss;
    sums.heights[1] = weight;
    sums.slope[rows.d] = total;
    return stop;
}

struct Prefix {
    std::int64_t rows, read;  // that the sums are of; that were read for them
};

// slope -= sum of a_j (x_j, 1), heights += (sum of |a_j| - a_j f_j, sum of |a_j|), over those of the first rows that are
// inside the margin. It stops after the row at which heights[0] exceeds the limit.
// requires: a has n entries, w has d, slope d + 1, heights 2.
// ensures: the same bits for any number of threads.
template <class Rows>
Prefix hinge_prefix(const Rows& rows, View<const double> a, const double* w, double b, double limit,
                    const InsideSums& sums, int threads) {
    const std::int64_t pieces = (rows.n + PIECE - 1) / PIECE, size = rows.d + 3;
    const bool all = !(limit < std::numeric_limits<double>::infinity());
    std::vector<double> partial;
    const auto part = [&](std::int64_t k) {
        double* first = partial.data() + k * size;
        return InsideSums{first, first + rows.d + 1};
    };
    for (std::int64_t first = 0, ahead = 0; first < pieces; first += ahead) {
        // In vain is at most a fourth of what was read before.
        const std::int64_t wanted = threads == 1 ? 1 : all ? MOST : std::clamp<std::int64_t>(first / 4, 1, MOST);
        ahead = std::min(wanted, pieces - first);
        const bool alone = ahead == 1;  // then it stops by itself
        partial.assign(ahead * size, 0.0);
        const auto add = [&](std::int64_t k, double bound) {
            const std::int64_t begin = (first + k) * PIECE, end = std::min(rows.n, begin + PIECE);
            return add_until(rows, a, w, b, begin, end, sums.heights[0], bound, part(k));
        };
        std::int64_t stop = 0;
        if (alone)
            stop = add(0, limit);
        else
            for_equal_tasks(ahead, threads, [&](std::int64_t k) { add(k, std::numeric_limits<double>::infinity()); });
        for (std::int64_t k = 0; k < ahead; ++k) {
            const bool exceeded = sums.heights[0] + part(k).heights[0] > limit;
            if (exceeded && !alone) {
                std::fill_n(part(k).slope, size, 0.0);
                stop = add(k, limit);
            }
            for (std::int64_t j = 0; j <= rows.d; ++j) sums.slope[j] += part(k).slope[j];
            for (int h = 0; h < 2; ++h) sums.heights[h] += part(k).heights[h];
            if (exceeded) return {stop, alone ? stop : std::min(rows.n, (first + ahead) * PIECE)};
        }
    }
    return {rows.n, rows.n};
}

}  // namespace cutsvm
