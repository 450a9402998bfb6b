// The rows x_i of a data matrix, read in place: dense with any strides, or CSR.
//
// Every kind has the same two verbs, each over a range of rows:
//   dots(begin, end, w, out)     out[i - begin] = x_i . w
//   add(begin, end, g, out)      out += sum of g[i - begin] x_i over the rows with g[i - begin] != 0
// and the same for one row, with hints for the rows that come next:
//   dot(i, w), axpy(i, g, out), square(i) = |x_i|^2, each(i, use): use(j, x_ij), prefetch_place(i), prefetch(i)
// and for dense ones copy(i, out): out = x_i as doubles, and ranges(begin, end, low, high): the least and the largest
// value of each feature among these rows, of which there is at least one.
// Values are float or double; all sums are double.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/parallel.hpp"

namespace cutsvm {

// Asks for the memory of `count` values.
template <class T>
void fetch(const T* values, std::int64_t count) {
    constexpr auto LINE = static_cast<std::int64_t>(64 / sizeof(T));
    for (std::int64_t j = 0; j < count; j += LINE) __builtin_prefetch(values + j);
}

// Row-major: the features of a row are contiguous.
template <class T>
struct DenseRows {
    using Value = T;
    const T* data;
    std::int64_t n, d, stride;  // stride: from one row to the next

    std::int64_t entries() const { return n * d; }

    void dots(std::int64_t begin, std::int64_t end, const double* w, double* out) const {
        for (std::int64_t i = begin; i < end; ++i) {
            const T* x = data + i * stride;
            double sum = 0.0;
#pragma omp simd reduction(+ : sum)
            for (std::int64_t j = 0; j < d; ++j) sum += static_cast<double>(x[j]) * w[j];
            out[i - begin] = sum;
        }
    }

    void add(std::int64_t begin, std::int64_t end, const double* g, double* out) const {
        for (std::int64_t i = begin; i < end; ++i) {
            const double gi = g[i - begin];
            if (gi == 0.0) continue;
            const T* x = data + i * stride;
#pragma omp simd
            for (std::int64_t j = 0; j < d; ++j) out[j] += gi * static_cast<double>(x[j]);
        }
    }

    double dot(std::int64_t i, const double* w) const {
        double sum = 0.0;
        dots(i, i + 1, w, &sum);
        return sum;
    }
    void axpy(std::int64_t i, double g, double* out) const { add(i, i + 1, &g, out); }
    template <class Use>
    void each(std::int64_t i, const Use& use) const {
        for (std::int64_t j = 0; j < d; ++j) use(j, static_cast<double>(data[i * stride + j]));
    }
    void copy(std::int64_t i, double* out) const { std::copy_n(data + i * stride, d, out); }
    void ranges(std::int64_t begin, std::int64_t end, T* low, T* high) const {
        std::copy_n(data + begin * stride, d, low);
        std::copy_n(data + begin * stride, d, high);
        for (std::int64_t i = begin + 1; i < end; ++i) {
            const T* x = data + i * stride;
#pragma omp simd
            for (std::int64_t j = 0; j < d; ++j) {
                low[j] = x[j] < low[j] ? x[j] : low[j];
                high[j] = x[j] > high[j] ? x[j] : high[j];
            }
        }
    }
    double square(std::int64_t i) const {
        const T* x = data + i * stride;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = 0; j < d; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
        return sum;
    }
    void prefetch_place(std::int64_t) const {}
    void prefetch(std::int64_t i) const { fetch(data + i * stride, d); }
};

// Column-major: the rows of a feature are contiguous.
template <class T>
struct ColumnRows {
    using Value = T;
    const T* data;
    std::int64_t n, d, stride;  // stride: from one feature to the next

    std::int64_t entries() const { return n * d; }

    void dots(std::int64_t begin, std::int64_t end, const double* w, double* out) const {
        const std::int64_t size = end - begin;
        std::fill(out, out + size, 0.0);
        for (std::int64_t j = 0; j < d; ++j) {
            const T* x = data + j * stride + begin;
            const double wj = w[j];
#pragma omp simd
            for (std::int64_t i = 0; i < size; ++i) out[i] += wj * static_cast<double>(x[i]);
        }
    }

    void add(std::int64_t begin, std::int64_t end, const double* g, double* out) const {
        std::array<std::int32_t, BLOCK> rows;  // the rows of this piece that count
        for (std::int64_t from = begin; from < end; from += BLOCK) {
            const std::int64_t size = std::min(BLOCK, end - from);
            const double* gs = g + (from - begin);
            std::int64_t used = 0;
            for (std::int64_t i = 0; i < size; ++i) {
                rows[used] = static_cast<std::int32_t>(i);
                used += gs[i] != 0.0;
            }
            if (used == 0) continue;
            for (std::int64_t j = 0; j < d; ++j) {
                const T* x = data + j * stride + from;
                double sum = 0.0;
                for (std::int64_t k = 0; k < used; ++k) {
                    const std::int32_t i = rows[k];
                    sum += gs[i] * static_cast<double>(x[i]);
                }
                out[j] += sum;
            }
        }
    }

    double dot(std::int64_t i, const double* w) const {
        double sum = 0.0;
        for (std::int64_t j = 0; j < d; ++j) sum += static_cast<double>(data[i + j * stride]) * w[j];
        return sum;
    }
    void axpy(std::int64_t i, double g, double* out) const {
        for (std::int64_t j = 0; j < d; ++j) out[j] += g * static_cast<double>(data[i + j * stride]);
    }
    void copy(std::int64_t i, double* out) const {
        for (std::int64_t j = 0; j < d; ++j) out[j] = static_cast<double>(data[i + j * stride]);
    }
    void ranges(std::int64_t begin, std::int64_t end, T* low, T* high) const {
        for (std::int64_t j = 0; j < d; ++j) {
            const T* x = data + j * stride;
            T least = x[begin], most = x[begin];
#pragma omp simd reduction(min : least) reduction(max : most)
            for (std::int64_t i = begin; i < end; ++i) {
                least = x[i] < least ? x[i] : least;
                most = x[i] > most ? x[i] : most;
            }
            low[j] = least;
            high[j] = most;
        }
    }
    template <class Use>
    void each(std::int64_t i, const Use& use) const {
        for (std::int64_t j = 0; j < d; ++j) use(j, static_cast<double>(data[i + j * stride]));
    }
    double square(std::int64_t i) const {
        double sum = 0.0;
        for (std::int64_t j = 0; j < d; ++j) {
            const auto x = static_cast<double>(data[i + j * stride]);
            sum += x * x;
        }
        return sum;
    }
    void prefetch_place(std::int64_t) const {}
    void prefetch(std::int64_t) const {}  // one line per value: too many to ask for
};

// Compressed sparse rows; I is the type of both the columns and the row pointers.
template <class T, class I>
struct SparseRows {
    using Value = T;
    const T* values;
    const I* columns;
    const I* pointers;  // n + 1 of them
    std::int64_t n, d;

    std::int64_t entries() const { return pointers[n] - pointers[0]; }

    void dots(std::int64_t begin, std::int64_t end, const double* w, double* out) const {
        for (std::int64_t i = begin; i < end; ++i) {
            // Two sums: the additions of one chain wait for each other.
            double even = 0.0, odd = 0.0;
            std::int64_t k = pointers[i];
            const std::int64_t last = pointers[i + 1];
            for (; k + 1 < last; k += 2) {
                even += static_cast<double>(values[k]) * w[columns[k]];
                odd += static_cast<double>(values[k + 1]) * w[columns[k + 1]];
            }
            if (k < last) even += static_cast<double>(values[k]) * w[columns[k]];
            out[i - begin] = even + odd;
        }
    }

    void add(std::int64_t begin, std::int64_t end, const double* g, double* out) const {
        for (std::int64_t i = begin; i < end; ++i) {
            const double gi = g[i - begin];
            if (gi == 0.0) continue;
            for (std::int64_t k = pointers[i]; k < pointers[i + 1]; ++k)
                out[columns[k]] += gi * static_cast<double>(values[k]);
        }
    }

    double dot(std::int64_t i, const double* w) const {
        double sum = 0.0;
        dots(i, i + 1, w, &sum);
        return sum;
    }
    void axpy(std::int64_t i, double g, double* out) const { add(i, i + 1, &g, out); }
    template <class Use>
    void each(std::int64_t i, const Use& use) const {
        for (std::int64_t k = pointers[i]; k < pointers[i + 1]; ++k)
            use(static_cast<std::int64_t>(columns[k]), static_cast<double>(values[k]));
    }
    double square(std::int64_t i) const {  // requires: no column twice
        double sum = 0.0;
        for (std::int64_t k = pointers[i]; k < pointers[i + 1]; ++k)
            sum += static_cast<double>(values[k]) * static_cast<double>(values[k]);
        return sum;
    }
    void prefetch_place(std::int64_t i) const { __builtin_prefetch(pointers + i); }
    void prefetch(std::int64_t i) const {
        const std::int64_t first = pointers[i], count = pointers[i + 1] - first;
        fetch(values + first, count);
        fetch(columns + first, count);
    }
};

}  // namespace cutsvm
