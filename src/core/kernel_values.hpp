// Kernel values of some rows with others, tile by tile: dot products by BLAS, then the kernel's function in place while
// the tile is in the cache.
//
//   linear   x.z          poly   (gamma x.z + coef0)^degree          rbf   exp(-gamma (|x|^2 + |z|^2 - 2 x.z))
//   sigmoid  tanh(gamma x.z + coef0)                                 and a constant `offset` more
//
// Tiles are fixed by the sizes alone and each is the work of one thread, which calls a BLAS of one thread: the values are
// the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/parallel.hpp"
#include "core/row_cache.hpp"
#include "core/view.hpp"

namespace cutsvm {

// xGEMM as Fortran declares it: C = alpha op(A) op(B) + beta C, by columns.
template <class T>
using Gemm = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k, const T* alpha,
                      const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc);

enum class KernelKind { linear, poly, rbf, sigmoid };

struct KernelFunction {
    KernelKind kind;
    double gamma, coef0, offset;
    int degree;
};

template <class T>
struct OwnBlock;

// Rows of numbers one after another, and |x|^2 of each.
template <class T>
struct Block {
    const T* rows;
    const T* squares;
    std::int64_t n, d;

    Block part(std::int64_t first, std::int64_t count) const { return {rows + first * d, squares + first, count, d}; }

    // A copy of some rows. requires: numbers below n.
    template <class Number>
    OwnBlock<T> some(View<const Number> which) const {
        OwnBlock<T> found{std::vector<T>(which.size() * d), std::vector<T>(which.size()), d};
        for (std::int64_t k = 0; k < which.size(); ++k) {
            std::copy_n(rows + which[k] * d, d, found.rows.data() + k * d);
            found.squares[k] = squares[which[k]];
        }
        return found;
    }
};

// A block with memory of its own.
template <class T>
struct OwnBlock {
    std::vector<T> rows, squares;
    std::int64_t d;

    Block<T> block() const { return {rows.data(), squares.data(), std::ssize(squares), d}; }
};

// exp(x) for x <= 0, without calls and branches so that loops over it are vectorised: 2^n exp(r), |r| <= log(2) / 2, by
// the series of exp. Below the smallest normal number it is that of a normal one.
// ensures: relative error below 4 eps.
template <class T>
inline T exp_negative(T x) {
    constexpr bool SINGLE = std::is_same_v<T, float>;
    using Bits = std::conditional_t<SINGLE, std::int32_t, std::int64_t>;
    constexpr T LOG2E = T(1.4426950408889634), HIGH = SINGLE ? T(0.693359375) : T(0.6931471803691238);
    constexpr T LOW = SINGLE ? T(-2.12194440e-4) : T(1.9082149292705877e-10);
    constexpr T ROUND = SINGLE ? T(12582912.0) : T(6755399441055744.0);  // adding it rounds to a whole number
    x = std::max(x, SINGLE ? T(-87.0) : T(-708.0));
    const T shifted = x * LOG2E + ROUND, n = shifted - ROUND;
    const T r = (x - n * HIGH) - n * LOW;
    T p;
    if constexpr (SINGLE) {
        p = T(1.0 / 5040);
        p = p * r + T(1.0 / 720);
    } else {
        p = T(1.0 / 6227020800.0);
        p = p * r + T(1.0 / 479001600.0);
        p = p * r + T(1.0 / 39916800.0);
        p = p * r + T(1.0 / 3628800.0);
        p = p * r + T(1.0 / 362880.0);
        p = p * r + T(1.0 / 40320.0);
        p = p * r + T(1.0 / 5040.0);
        p = p * r + T(1.0 / 720.0);
    }
    p = p * r + T(1.0 / 120);
    p = p * r + T(1.0 / 24);
    p = p * r + T(1.0 / 6);
    p = p * r + T(0.5);
    p = p * r + T(1.0);
    p = p * r + T(1.0);
    constexpr int MANTISSA = SINGLE ? 23 : 52;
    constexpr Bits BIAS = SINGLE ? 127 : 1023;
    const Bits exponent = static_cast<Bits>(n) + BIAS;
    return p * std::bit_cast<T>(static_cast<Bits>(exponent << MANTISSA));
}

// to[j] = the kernel's value with the row of column j, from the dot products `dots`. to may be dots itself.
// requires: dots, to and squares have `count` entries.
template <class T>
void kernel_of_dots(const KernelFunction& kernel, const T* dots, T square, const T* squares, std::int64_t count,
                    T* to) {
    const T gamma = static_cast<T>(kernel.gamma), coef0 = static_cast<T>(kernel.coef0);
    const T offset = static_cast<T>(kernel.offset);
    switch (kernel.kind) {
        case KernelKind::rbf:
#pragma omp simd
            for (std::int64_t j = 0; j < count; ++j) {
                const T distance = std::max(T(0), square + squares[j] - T(2) * dots[j]);
                to[j] = exp_negative(-gamma * distance) + offset;
            }
            return;
        case KernelKind::poly:
#pragma omp simd
            for (std::int64_t j = 0; j < count; ++j) {
                const T base = gamma * dots[j] + coef0;
                T value = base;
                for (int k = 1; k < kernel.degree; ++k) value *= base;
                to[j] = value + offset;
            }
            return;
        case KernelKind::sigmoid:
            for (std::int64_t j = 0; j < count; ++j) to[j] = std::tanh(gamma * dots[j] + coef0) + offset;
            return;
        case KernelKind::linear:
#pragma omp simd
            for (std::int64_t j = 0; j < count; ++j) to[j] = dots[j] + offset;
    }
}

inline constexpr std::int64_t TILE_COLUMNS = 256;
inline constexpr std::int64_t TILE_ROWS = 512;  // with TILE_COLUMNS: a tile of half a megabyte in float

inline std::int64_t count_tiles(std::int64_t n) { return (n + TILE_COLUMNS - 1) / TILE_COLUMNS; }

// Features that are multiplied in one call. Whatever the order in which BLAS adds them up, a dot product is off by at most
// (FEATURES + d / FEATURES + 2) u |x| |z|, u the rounding unit, and not by d u |x| |z|.
inline constexpr std::int64_t FEATURES = 128;

// dots[i, j] = a_i.b_j, by rows.
// requires: A.d == B.d; A and B are parts of no more than TILE_ROWS and TILE_COLUMNS rows; room for A.n x B.n dots.
template <class T>
void dot_tile(Gemm<T> gemm, const Block<T>& A, const Block<T>& B, T* dots) {
    const int m = static_cast<int>(B.n), n = static_cast<int>(A.n), ld = static_cast<int>(A.d);
    if (A.d == 0) std::fill_n(dots, A.n * B.n, T(0));
    for (std::int64_t first = 0; first < A.d; first += FEATURES) {
        const int k = static_cast<int>(std::min(FEATURES, A.d - first));
        const T one = 1, beta = first == 0 ? T(0) : T(1);
        gemm("T", "N", &m, &n, &k, &one, B.rows + first, &ld, A.rows + first, &ld, &beta, dots, &m);
    }
}

// Calls use(first row, number of rows, first column, number of columns, dots) for every tile of the products A B',
// dots by rows of that number of columns; one thread has all rows of some columns, in their order.
// requires: A.d == B.d.
template <class T, class Use>
void for_dot_tiles(Gemm<T> gemm, const Block<T>& A, const Block<T>& B, int threads, const Use& use) {
    const auto make = [&] { return std::vector<T>(std::min(A.n, TILE_ROWS) * TILE_COLUMNS); };
    for_tasks_with(count_tiles(B.n), threads, make, [&](std::int64_t tile, std::vector<T>& dots) {
        const std::int64_t column = tile * TILE_COLUMNS, width = std::min(TILE_COLUMNS, B.n - column);
        for (std::int64_t row = 0; row < A.n; row += TILE_ROWS) {
            const std::int64_t height = std::min(TILE_ROWS, A.n - row);
            dot_tile(gemm, A.part(row, height), B.part(column, width), dots.data());
            use(row, height, column, width, dots.data());
        }
    });
}

// values[places[i] * stride + j] = K(a_i, b_j)
// requires: places has A.n different entries, each with room for B.n values at its place; A.d == B.d.
// ensures: the same bits for any number of threads.
template <class T>
void kernel_rows(Gemm<T> gemm, const KernelFunction& kernel, const Block<T>& A, const Block<T>& B,
                 View<const std::int64_t> places, T* values, std::int64_t stride, int threads) {
    for_dot_tiles(gemm, A, B, threads, [&](auto row, auto height, auto column, auto width, const T* dots) {
        for (std::int64_t i = 0; i < height; ++i)
            kernel_of_dots(kernel, dots + i * width, A.squares[row + i], B.squares + column, width,
                           values + places[row + i] * stride + column);
    });
}

// values = the kernel's values from the dots of a tile, in place, and sums[j] += sum_i coef[i] values[i, j], SUM_ROWS rows
// at a time.
// requires: A and B as in dot_tile; coef has A.n entries, sums B.n.
template <class T>
void add_tile(const KernelFunction& kernel, const Block<T>& A, const Block<T>& B, T* values, const double* coef,
              double* sums) {
    for (std::int64_t first = 0; first < A.n; first += SUM_ROWS) {
        std::array<double, TILE_COLUMNS> part{};
        for (std::int64_t i = first; i < std::min(A.n, first + SUM_ROWS); ++i) {
            T* const own = values + i * B.n;
            kernel_of_dots(kernel, own, A.squares[i], B.squares, B.n, own);
            const double factor = coef[i];
#pragma omp simd
            for (std::int64_t j = 0; j < B.n; ++j) part[j] += factor * static_cast<double>(own[j]);
        }
        for (std::int64_t j = 0; j < B.n; ++j) sums[j] += part[j];
    }
}

// scores[j] += sum_i coef[i] K(a_i, b_j), summed over SUM_ROWS rows of A at a time.
// requires: coef has A.n entries, scores B.n; A.d == B.d.
// ensures: the same bits for any number of threads.
template <class T>
void kernel_scores(Gemm<T> gemm, const KernelFunction& kernel, const Block<T>& A, const Block<T>& B,
                   View<const double> coef, View<double> scores, int threads) {
    static_assert(TILE_ROWS % SUM_ROWS == 0);
    for_dot_tiles(gemm, A, B, threads, [&](auto row, auto height, auto column, auto width, T* dots) {
        add_tile(kernel, A.part(row, height), B.part(column, width), dots, coef.data() + row, scores.data() + column);
    });
}

// Sums that kernel_own_scores has at the same time, each of a fixed part of the tiles.
inline constexpr std::int64_t OWN_SUMS = 32;

// The same for the rows of A with themselves, of whose values one half is computed: the part of scores that is due to
// the tiles [first, last) of columns with the rows up to their own, both ways. All tiles: the whole of scores.
// requires: coef and scores have A.n entries; 0 <= first <= last <= count_tiles(A.n).
// ensures: the same bits for any number of threads.
template <class T>
void kernel_own_scores(Gemm<T> gemm, const KernelFunction& kernel, const Block<T>& A, View<const double> coef,
                       std::int64_t first, std::int64_t last, View<double> scores, int threads) {
    static_assert(TILE_COLUMNS <= TILE_ROWS && TILE_COLUMNS % SUM_ROWS == 0);
    const std::int64_t end = std::min(A.n, last * TILE_COLUMNS), count = std::min(OWN_SUMS, last - first);
    std::vector<double> sums(count * end);
    const auto make = [] { return std::vector<T>(TILE_COLUMNS * TILE_COLUMNS); };
    const auto tile = [&](std::int64_t number) {
        return A.part(number * TILE_COLUMNS, std::min(TILE_COLUMNS, A.n - number * TILE_COLUMNS));
    };
    for_tasks_with(count, threads, make, [&](std::int64_t task, std::vector<T>& values) {
        double* const own = sums.data() + task * end;
        for (std::int64_t j = first + task; j < last; j += count) {
            const Block<T> columns = tile(j);
            for (std::int64_t i = 0; i <= j; ++i) {
                const Block<T> rows = tile(i);
                dot_tile(gemm, rows, columns, values.data());
                add_tile(kernel, rows, columns, values.data(), coef.data() + i * TILE_COLUMNS, own + j * TILE_COLUMNS);
                for (std::int64_t r = 0; r < (i < j ? rows.n : 0); ++r) {
                    const T* const row = values.data() + r * columns.n;
                    for (std::int64_t begin = 0; begin < columns.n; begin += SUM_ROWS) {
                        const double* const factors = coef.data() + j * TILE_COLUMNS + begin;
                        const std::int64_t terms = std::min(SUM_ROWS, columns.n - begin);
                        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
                        for (std::int64_t k = 0; k < terms; ++k)
                            sum += factors[k] * static_cast<double>(row[begin + k]);
                        own[i * TILE_COLUMNS + r] += sum;
                    }
                }
            }
        }
    });
    for (std::int64_t task = 0; task < count; ++task)
        for (std::int64_t j = 0; j < end; ++j) scores[j] += sums[task * end + j];
}

// values[i * n + j] = K(a_i, a_j) for all pairs of rows, of which only one half is computed.
// requires: values has n x n entries.
// ensures: symmetric; the same bits for any number of threads.
template <class T>
void kernel_matrix(Gemm<T> gemm, const KernelFunction& kernel, const Block<T>& A, T* values, int threads) {
    for_tasks(count_tiles(A.n), threads, [&](std::int64_t tile) {
        // The rows of a tile with those of the tiles after it; the first ones have most to do and begin first.
        const std::int64_t first = tile * TILE_COLUMNS, height = std::min(TILE_COLUMNS, A.n - first);
        const Block<T> own = A.part(first, height), rest = A.part(first, A.n - first);
        const auto mirror = [&](std::int64_t row, std::int64_t count, std::int64_t column, std::int64_t width,
                                T* dots) {
            for (std::int64_t i = 0; i < count; ++i) {
                T* const to = values + (first + row + i) * A.n + first + column;
                kernel_of_dots(kernel, dots + i * width, own.squares[row + i], rest.squares + column, width, to);
            }
            for (std::int64_t j = 0; j < width; ++j) {
                T* const to = values + (first + column + j) * A.n + first + row;
                if (first + column + j >= first + height)
                    for (std::int64_t i = 0; i < count; ++i)
                        to[i] = values[(first + row + i) * A.n + first + column + j];
            }
        };
        for_dot_tiles(gemm, own, rest, 1, mirror);
        for (std::int64_t i = 0; i < height; ++i)  // whatever the order of the sums
            for (std::int64_t j = 0; j < i; ++j)
                values[(first + i) * A.n + first + j] = values[(first + j) * A.n + first + i];
    });
}

}  // namespace cutsvm
