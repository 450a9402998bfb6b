// Sums of outer products of sparse rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "core/rows.hpp"
#include "core/view.hpp"

namespace cutsvm {

// Pieces of rows whose sums are made apart and added up in their order, whatever the number of threads.
inline constexpr std::int64_t GRAM_PIECES = 4;
inline constexpr std::int64_t GRAM_ROWS = 4096;  // up to which one piece is enough

// out = sum_i h_i (x_i, 1) (x_i, 1)', a matrix of d + 1 rows.
// requires: columns rise within each row; h has one entry per row, out (d + 1)^2.
// ensures: symmetric; the same bits for any number of threads.
template <class T, class I>
void gram(const SparseRows<T, I>& rows, View<const double> h, double* out, int threads) {
    const std::int64_t size = rows.d + 1, pieces = rows.n > GRAM_ROWS ? GRAM_PIECES : 1;
    std::vector<double> partial(pieces * size * size);
    for_equal_tasks(pieces, threads, [&](std::int64_t p) {
        double* const sums = partial.data() + p * size * size;
        double* const last = sums + rows.d * size;
        for (std::int64_t i = rows.n * p / pieces; i < rows.n * (p + 1) / pieces; ++i) {
            if (h[i] == 0.0) continue;
            const std::int64_t first = rows.pointers[i], end = rows.pointers[i + 1];
            for (std::int64_t k = first; k < end; ++k) {
                const double scaled = h[i] * static_cast<double>(rows.values[k]);
                double* const row = sums + rows.columns[k] * size;
                for (std::int64_t m = first; m <= k; ++m)
                    row[rows.columns[m]] += scaled * static_cast<double>(rows.values[m]);
                last[rows.columns[k]] += scaled;
            }
            last[rows.d] += h[i];
        }
    });
    for (std::int64_t j = 0; j < size; ++j)
        for (std::int64_t k = 0; k <= j; ++k) {
            double sum = 0.0;
            for (std::int64_t p = 0; p < pieces; ++p) sum += partial[p * size * size + j * size + k];
            out[j * size + k] = out[k * size + j] = sum;
        }
}

}  // namespace cutsvm
