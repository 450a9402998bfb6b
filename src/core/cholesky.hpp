// Symmetric positive definite matrices of up to a few hundred rows: sums of outer products, Cholesky, solutions.
//
//   add_products   H += P'P
//   factorise      H = R'R with R upper triangular, in place:
//                      for each band of TALL rows, from the top
//                          subtract what the rows above it add up to
//                          factorise its corner, divide the rest of the band by that
//   solve          H x = r by R'y = r (forward), R x = y (backward)
//
// Both sums are one kernel: a tile of the matrix stays in registers while row after row is multiplied into it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/lanes.hpp"

namespace cutsvm {

// A tile has TALL rows of two vectors of LANES numbers. It has to leave registers for its factors.
inline constexpr std::size_t TALL = LANES == 8 ? 8 : 4;

// Rows are padded to a multiple of this, so that tiles are always whole.
inline constexpr std::size_t PAD = 8;
static_assert(PAD % TALL == 0 && TALL % LANES == 0);

inline std::size_t padded(std::size_t n) { return (n + PAD - 1) / PAD * PAD; }

// requires: a and b have n entries.
inline double dot(const double* a, const double* b, std::size_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// y += a x
// requires: x and y have n entries.
inline void add_multiple(double a, const double* x, double* y, std::size_t n) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// y += sum of x[i] row(i) over i from begin to end. Four rows at a time: every visit to y waits for the one before.
// requires: row(i) and y have n entries.
template <class Row>
void add_rows(const double* x, const Row& row, std::size_t begin, std::size_t end, double* y, std::size_t n) {
    std::size_t i = begin;
    for (; i + 4 <= end; i += 4) {
        const double *a = row(i), *b = row(i + 1), *c = row(i + 2), *d = row(i + 3);
        const double xa = x[i], xb = x[i + 1], xc = x[i + 2], xd = x[i + 3];
#pragma omp simd
        for (std::size_t j = 0; j < n; ++j) y[j] += (xa * a[j] + xb * b[j]) + (xc * c[j] + xd * d[j]);
    }
    for (; i < end; ++i) add_multiple(x[i], row(i), y, n);
}

// The upper half, j >= i, row by row. Rows and columns n to size are those of the unit matrix.
struct Symmetric {
    std::size_t n, size, stride;
    std::vector<double> values;

    explicit Symmetric(std::size_t rows)
        : n(rows),
          size(padded(rows)),
          stride((size / PAD | 1) * PAD),  // odd: rows one above the other do not compete for the same cache lines
          values(size * stride) {
        clear();
    }

    double* row(std::size_t i) { return values.data() + i * stride; }
    const double* row(std::size_t i) const { return values.data() + i * stride; }

    void clear() {
        std::fill(values.begin(), values.end(), 0.0);
        for (std::size_t i = n; i < size; ++i) row(i)[i] = 1.0;
    }
};

// to[r][j] += SIGN sum over k < depth of left[k][r] right[k][j], for TALL rows r and VECTORS x LANES columns j.
// requires: rows of left and right are `stride` entries, those of to `to_stride`.
template <int SIGN, std::size_t VECTORS>
void multiply_tile(const double* left, const double* right, std::size_t stride, std::size_t depth, double* to,
                   std::size_t to_stride) {
    Lanes sum[TALL][VECTORS];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < TALL; ++r)
#pragma GCC unroll 2
        for (std::size_t v = 0; v < VECTORS; ++v) sum[r][v] = lanes(to + r * to_stride + v * LANES);
    for (std::size_t k = 0; k < depth; ++k, left += stride, right += stride) {
#pragma GCC unroll 8
        for (std::size_t r = 0; r < TALL; ++r)
#pragma GCC unroll 2
            for (std::size_t v = 0; v < VECTORS; ++v) {
                if constexpr (SIGN > 0)
                    sum[r][v] += left[r] * lanes(right + v * LANES);
                else
                    sum[r][v] -= left[r] * lanes(right + v * LANES);
            }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < TALL; ++r)
#pragma GCC unroll 2
        for (std::size_t v = 0; v < VECTORS; ++v) lanes(to + r * to_stride + v * LANES) = sum[r][v];
}

// Rows first to first + TALL of H += SIGN P'P, where P has `depth` rows.
// requires: rows of P are `stride` >= H.size entries; first + TALL <= H.size.
template <int SIGN>
void multiply_band(Symmetric& H, const double* P, std::size_t stride, std::size_t depth, std::size_t first) {
    std::size_t j = first;
    double* to = H.row(first);
    for (; j + 2 * LANES <= H.size; j += 2 * LANES)
        multiply_tile<SIGN, 2>(P + first, P + j, stride, depth, to + j, H.stride);
    for (; j < H.size; j += LANES) multiply_tile<SIGN, 1>(P + first, P + j, stride, depth, to + j, H.stride);
}

// H += P'P
// requires: P has `depth` rows of H.size numbers, `stride` apart, which are 0 from H.n on.
inline void add_products(Symmetric& H, const double* P, std::size_t stride, std::size_t depth) {
    for (std::size_t first = 0; first < H.size; first += TALL) multiply_band<1>(H, P, stride, depth, first);
}

// R with H = R'R, in the place of H.
struct Cholesky {
    Symmetric H;
    std::vector<double> inverse;  // of R's diagonal

    explicit Cholesky(std::size_t n) : H(n), inverse(H.size) {}

    // false where H is not positive definite, or rounding makes it look so.
    bool factorise() {
        for (std::size_t first = 0; first < H.size; first += TALL) {
            multiply_band<-1>(H, H.row(0), H.stride, first, first);
            if (!factorise_corner(first)) return false;
            for (std::size_t j = first + TALL; j < H.size; j += LANES) divide_by_corner(first, j);
        }
        return true;
    }

    // H x = r in place: x holds r before.
    void solve(double* x) const {
        forward(x);
        backward(x);
    }

    // R'y = r in place.
    void forward(double* x) const {
        for (std::size_t i = 0; i < H.n; ++i) {
            x[i] *= inverse[i];
            add_multiple(-x[i], H.row(i) + i + 1, x + i + 1, H.n - i - 1);
        }
    }

    // R x = y in place.
    void backward(double* x) const {
        for (std::size_t i = H.n; i-- > 0;) x[i] = (x[i] - dot(H.row(i) + i + 1, x + i + 1, H.n - i - 1)) * inverse[i];
    }

    // R'Y = X in place, for `width` right-hand sides: X has one row per row of H, contiguous.
    void forward(double* X, std::size_t width) const {
        std::vector<double> above(H.n);  // a column of -R, whose numbers are far apart
        for (std::size_t i = 0; i < H.n; ++i) {
            for (std::size_t k = 0; k < i; ++k) above[k] = -H.row(k)[i];
            double* to = X + i * width;
            add_rows(above.data(), [&](std::size_t k) { return X + k * width; }, 0, i, to, width);
            for (std::size_t j = 0; j < width; ++j) to[j] *= inverse[i];
        }
    }

  private:
    bool factorise_corner(std::size_t first) {
        for (std::size_t k = first; k < first + TALL; ++k) {
            double* above = H.row(k);
            if (!(above[k] > 0.0)) return false;
            inverse[k] = 1.0 / std::sqrt(above[k]);
            for (std::size_t j = k; j < first + TALL; ++j) above[j] *= inverse[k];
            for (std::size_t i = k + 1; i < first + TALL; ++i)
                for (std::size_t j = i; j < first + TALL; ++j) H.row(i)[j] -= above[i] * above[j];
        }
        return true;
    }

    // LANES columns of a band, from j on: corner' X = what stands there.
    void divide_by_corner(std::size_t first, std::size_t j) {
        Lanes x[TALL];
#pragma GCC unroll 8
        for (std::size_t k = 0; k < TALL; ++k) x[k] = lanes(H.row(first + k) + j);
#pragma GCC unroll 8
        for (std::size_t k = 0; k < TALL; ++k) {
            const double* corner = H.row(first + k) + first;
            x[k] *= inverse[first + k];
#pragma GCC unroll 8
            for (std::size_t i = k + 1; i < TALL; ++i) x[i] -= corner[i] * x[k];
        }
#pragma GCC unroll 8
        for (std::size_t k = 0; k < TALL; ++k) lanes(H.row(first + k) + j) = x[k];
    }
};

}  // namespace cutsvm
