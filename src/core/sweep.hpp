// The two sweeps over the data: scores of all rows, and sums of rows per shard.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/parallel.hpp"
#include "core/rows.hpp"
#include "core/view.hpp"

namespace cutsvm {

// out[i] = x_i . w + b.
// requires: w has d entries, out has n.
template <class Rows>
void scores(const Rows& rows, const double* w, double b, View<double> out, int threads) {
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        double* piece = out.data() + begin;
        rows.dots(begin, end, w, piece);
        for (std::int64_t i = 0; i < end - begin; ++i) piece[i] += b;
    });
}

// Whether all values are finite.
// ensures: true if there are no values.
template <class T>
bool all_finite(View<const T> values, int threads) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits EXPONENT = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
    const auto n = std::ssize(values);
    return sum_blocks<1>(n, threads, [&](std::int64_t begin, std::int64_t end) {
               Bits bad = 0;  // by bits: the compiler must not assume that there are no infinities
               for (std::int64_t i = begin; i < end; ++i)
                   bad |= static_cast<Bits>((std::bit_cast<Bits>(values[i]) & EXPONENT) == EXPONENT);
               return std::array{static_cast<double>(bad)};
           })[0] == 0.0;
}

// Whether row pointers rise from 0 to at most `stored`, and columns lie in 0..d-1. `sorted`: and rise within each row.
// requires: pointers has n + 1 entries, n >= 0.
template <class I>
bool valid_csr(View<const I> columns, View<const I> pointers, std::int64_t d, bool& sorted, int threads) {
    const auto n = std::ssize(pointers) - 1;
    const auto stored = std::ssize(columns);
    if (pointers[0] != 0) return false;
    for (std::int64_t i = 0; i < n; ++i)
        if (pointers[i] > pointers[i + 1]) return false;
    if (static_cast<std::int64_t>(pointers[n]) > stored) return false;
    const auto wrong = sum_blocks<2>(n, threads, [&](std::int64_t begin, std::int64_t end) {
        std::array<std::int64_t, 2> bad{};
        for (std::int64_t i = begin; i < end; ++i) {
            std::int64_t before = -1;
            for (auto k = pointers[i]; k < pointers[i + 1]; ++k) {
                const auto j = static_cast<std::int64_t>(columns[k]);
                bad[0] += (j < 0) | (j >= d);
                bad[1] += j <= before;
                before = j;
            }
        }
        return std::array{static_cast<double>(bad[0]), static_cast<double>(bad[1])};
    });
    sorted = wrong[1] == 0.0;
    return wrong[0] == 0.0;
}

// counts[i] = how many values of row i are not 0.
// requires: counts has n entries.
template <class Rows>
void count_nonzeros(const Rows& rows, View<std::int64_t> counts, int threads) {
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            std::int64_t count = 0;
            rows.each(i, [&](std::int64_t, double x) { count += x != 0.0; });
            counts[i] = count;
        }
    });
}

// The values that are not 0, as CSR.
// requires: pointers are the sums of counts, from 0; columns and values have room for them all.
template <class Rows, class T, class I>
void compress(const Rows& rows, View<const I> pointers, View<T> values, View<I> columns, int threads) {
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            std::int64_t next = pointers[i];
            const std::int64_t last = pointers[i + 1];
            rows.each(i, [&](std::int64_t j, double x) {
                if (x == 0.0 || next == last) return;
                values[next] = static_cast<T>(x);
                columns[next++] = static_cast<I>(j);
            });
        }
    });
}

// low[j] = min over i of x_ij, high[j] = max over i of x_ij, for dense rows.
// requires: n > 0, no value is NaN; low and high have d entries.
// ensures: low[j] <= x_ij <= high[j], both attained.
template <class Rows>
void column_ranges(const Rows& rows, View<double> low, View<double> high, int threads) {
    using T = typename Rows::Value;
    const std::int64_t d = rows.d;
    const std::int64_t runs = std::max<std::int64_t>(1, std::min<std::int64_t>(threads, count_blocks(rows.n)));
    std::vector<T> ends(2 * runs * d);
    for_equal_tasks(runs, threads, [&](std::int64_t run) {
        T* least = ends.data() + 2 * run * d;
        rows.ranges(rows.n * run / runs, rows.n * (run + 1) / runs, least, least + d);
    });
    for (std::int64_t j = 0; j < d; ++j) {
        T least = ends[j], most = ends[d + j];
        for (std::int64_t run = 1; run < runs; ++run) {
            least = std::min(least, ends[2 * run * d + j]);
            most = std::max(most, ends[(2 * run + 1) * d + j]);
        }
        low[j] = static_cast<double>(least);
        high[j] = static_cast<double>(most);
    }
}

// A sum in twice the digits of a double (T. Ogita, S. Rump, S. Oishi: Accurate sum and dot product, 2005).
struct CompensatedSum {
    double sum = 0.0, lost = 0.0;

    void add(double term) {
        const double next = sum + term, share = next - sum;
        lost += (sum - (next - share)) + (term - share);
        sum = next;
    }
    // fma(x, y, 0) is the rounded product, which the compiler must not fuse with the sum.
    void add_product(double x, double y) {
        const double product = std::fma(x, y, 0.0);
        lost += std::fma(x, y, -product);
        add(product);
    }
    double value() const { return sum + lost; }
    // What rounding takes from the value.
    double rest() const {
        CompensatedSum both{sum};
        both.add(lost);
        return both.lost;
    }
};

// out[i] + rest[i] = x_i . w + b in twice the digits: for scores that are small differences of large numbers, or whose
// distance from 1 is what counts. Five to ten times the work of `scores`.
// requires: w has d entries, out and rest have n.
template <class Rows>
void compensated_scores(const Rows& rows, const double* w, double b, View<double> out, View<double> rest, int threads) {
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            CompensatedSum sum{b};
            rows.each(i, [&](std::int64_t j, double x) { sum.add_product(x, w[j]); });
            out[i] = sum.value();
            rest[i] = sum.rest();
        }
    });
}

// A number that tells feature j with the value x from any other: the finalizer of splitmix64.
// ensures: depends on j and the bits of x alone.
inline std::uint64_t value_hash(std::int64_t j, double x) {
    std::uint64_t z = std::bit_cast<std::uint64_t>(x) ^ (static_cast<std::uint64_t>(j + 1) * 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// out[i] = sum over j with x_ij != 0 of value_hash(j, x_ij), modulo 2^64: every value counts with its place, and rows have
// the same number whether they are dense or sparse, float or double.
// requires: out has n entries.
template <class Rows>
void row_hashes(const Rows& rows, View<std::uint64_t> out, int threads) {
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            std::uint64_t sum = 0;
            rows.each(i, [&](std::int64_t j, double x) { sum += x != 0.0 ? value_hash(j, x) : 0; });
            out[i] = sum;
        }
    });
}

// out[i] = |x_i|^2.
// requires: out has n entries.
template <class Rows>
void squares(const Rows& rows, View<double> out, int threads) {
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) out[i] = rows.square(i);
    });
}

// out[i] = (1 - k) from[i] + k to[i]; out may be one of the two.
// requires: all three have one length.
inline void blend(View<const double> from, View<const double> to, double k, View<double> out, int threads) {
    const auto block = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            out[i] = from[i] + k * (to[i] - from[i]);
        }
    };
    for_blocks(std::ssize(out), threads, block, LIGHT);
}

// Cuts every shard into the same number of pieces, small enough that they keep all threads busy; how many depends on the
// shards alone. Piece q has the rows edges[q]..edges[q + 1].
// requires: bounds has at least two entries and never falls.
// ensures: edges never fall; those of shard p are edges[p each] .. edges[(p + 1) each], each = pieces / shards.
inline std::vector<std::int64_t> cut_shards(View<const std::int64_t> bounds) {
    constexpr std::int64_t PIECES = 16;
    const auto shards = std::ssize(bounds) - 1;
    const std::int64_t each = std::max<std::int64_t>(1, PIECES / shards);
    std::vector<std::int64_t> edges;
    for (std::int64_t p = 0; p < shards; ++p) {
        const std::int64_t first = bounds[p];
        const std::int64_t size = bounds[p + 1] - first;
        for (std::int64_t q = 0; q < each; ++q) edges.push_back(first + size * q / each);
    }
    edges.push_back(bounds.back());
    return edges;
}

// partial[q] += sum over the rows i of piece q of (fresh[i] - old[i]) (x_i, 1), row after row; then old = fresh.
// travel[q] += sum over piece q of |fresh[i] - old[i]|. Sums continued over the next rows are the same to the last
// bit as those over all rows at once.
// requires: partial is Q x width, row-major; edges has Q + 1 entries, from 0 to n, never falling.
// ensures: returns the number of rows read: those whose coefficient changed.
template <class Rows>
std::int64_t add_pieces(const Rows& rows, View<double> old, View<const double> fresh, View<const std::int64_t> edges,
                        double* partial, std::int64_t width, View<double> travel, int threads) {
    const auto count = std::ssize(edges) - 1;
    std::vector<std::int64_t> read(count);
    Interrupt interrupt;
    for_tasks(
        count, threads,
        [&](std::int64_t q) {
            double* out = partial + q * width;
            std::array<double, BLOCK> change;
            double total = width > rows.d ? out[rows.d] : 0.0, far = travel[q];
            std::int64_t changed = 0;
            for (std::int64_t from = edges[q]; from < edges[q + 1]; from += BLOCK) {
                if (interrupt.requested()) break;
                const std::int64_t to = std::min(edges[q + 1], from + BLOCK);
                for (std::int64_t i = from; i < to; ++i) {
                    const double delta = fresh[i] - old[i];
                    change[i - from] = delta;
                    total += delta;
                    far += std::abs(delta);
                    changed += delta != 0.0;
                    old[i] = fresh[i];
                }
                rows.add(from, to, change.data(), out);
            }
            if (width > rows.d) out[rows.d] = total;
            read[q] = changed;
            travel[q] = far;
        },
        interrupt);
    std::int64_t all = 0;
    for (const std::int64_t some : read) all += some;
    return all;
}

// sums[p] += sum over the rows i of shard p of (fresh[i] - old[i]) (x_i, 1); then old = fresh.
// Only rows whose coefficient changed are read. The last column, for the constant feature, is there when
// width == d + 1. moved[p] += sum over shard p of |fresh[i] - old[i]|.
// requires: sums is P x width, row-major; bounds has P + 1 entries, from 0 to n, never falling.
// ensures: returns the number of rows read.
template <class Rows>
std::int64_t accumulate(const Rows& rows, View<double> old, View<const double> fresh, View<const std::int64_t> bounds,
                        double* sums, std::int64_t width, View<double> moved, int threads) {
    const std::vector<std::int64_t> edges = cut_shards(bounds);
    const std::int64_t count = std::ssize(edges) - 1, each = count / (bounds.size() - 1);
    std::vector<double> partial(count * width), travel(count);
    const std::int64_t read = add_pieces(rows, old, fresh, edges, partial.data(), width, travel, threads);
    for (std::int64_t q = 0; q < count; ++q) {
        double* sum = sums + q / each * width;
        const double* part = partial.data() + q * width;
        for (std::int64_t j = 0; j < width; ++j) sum[j] += part[j];
        moved[q / each] += travel[q];
    }
    return read;
}

// Copies rows one after the other: out is rows.size() x d, row-major.
// requires: 0 <= which[k] < n; out has which.size() d entries.
template <class Rows, class T>
void take(const Rows& rows, View<const std::int64_t> which, T* out, int threads) {
    for_blocks(std::ssize(which), threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
            if (k + 4 < end) rows.prefetch(which[k + 4]);
            T* to = out + k * rows.d;
            rows.each(which[k], [&](std::int64_t j, double x) { to[j] = static_cast<T>(x); });
        }
    });
}

// The same for CSR. requires: pointers of the copy are filled in, values and columns have room.
template <class T, class I>
void take(const SparseRows<T, I>& rows, View<const std::int64_t> which, View<const I> pointers, View<T> values,
          View<I> columns, int threads) {
    for_blocks(std::ssize(which), threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t row = which[k];
            const std::int64_t first = rows.pointers[row], last = rows.pointers[row + 1];
            const std::int64_t to = pointers[k];
            std::copy(rows.values + first, rows.values + last, values.begin() + to);
            std::copy(rows.columns + first, rows.columns + last, columns.begin() + to);
        }
    });
}

}  // namespace cutsvm
