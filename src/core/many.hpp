// Sweeps over the data for several outputs at once: scores of all classes, and sums of rows per shard and class.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/lanes.hpp"
#include "core/parallel.hpp"
#include "core/rows.hpp"
#include "core/sweep.hpp"
#include "core/view.hpp"

namespace cutsvm {

template <class Rows>
inline constexpr bool DENSE = requires(const Rows& rows) { rows.stride; };

template <int N>
using Count = std::integral_constant<int, N>;

// Rows that are worked on together: with so many groups of BATCH outputs their sums fill eight registers.
template <int GROUPS>
inline constexpr int ROWS = LANES / GROUPS;

// use(Count<MANY>, i) for the rows from i on, MANY of them at a time, and Count<1> for the rest.
// ensures: every row of begin .. end - 1 once, in order.
template <int MANY, class Use>
void few_at_a_time(std::int64_t begin, std::int64_t end, const Use& use) {
    std::int64_t i = begin;
    for (; i + MANY <= end; i += MANY) use(Count<MANY>{}, i);
    for (; i < end; ++i) use(Count<1>{}, i);
}

// W transposed, so that what a feature adds to all outputs is contiguous; columns filled up with 0 to whole lanes.
struct Transposed {
    std::int64_t d, width;
    std::vector<double> values;

    Transposed(const double* W, std::int64_t outputs, std::int64_t features)
        : d(features), width((outputs + BATCH - 1) / BATCH * BATCH), values(d * width) {
        for (std::int64_t k = 0; k < outputs; ++k)
            for (std::int64_t j = 0; j < d; ++j) values[j * width + k] = W[k * d + j];
    }
    const double* row(std::int64_t j) const { return values.data() + j * width; }
};

// GROUPS x BATCH outputs, from `column` on, of MANY rows: sums[r][g] = sum over j of x_(first + r, j) W[column.., j].
// requires: rows first .. first + MANY - 1 exist; column + GROUPS BATCH <= W.width.
template <int MANY, int GROUPS>
void tile(const DenseRows<double>& rows, std::int64_t first, const Transposed& W, std::int64_t column,
          Batch (&sums)[MANY][GROUPS]) {
    Batch own[MANY][GROUPS];
    for (int r = 0; r < MANY; ++r)
        for (int g = 0; g < GROUPS; ++g) own[r][g] = broadcast(0.0);
    const double* x = rows.data + first * rows.stride;
    for (std::int64_t j = 0; j < rows.d; ++j) {
        Batch w[GROUPS];
        for (int g = 0; g < GROUPS; ++g) w[g] = load(W.row(j) + column + g * BATCH);
        for (int r = 0; r < MANY; ++r)
            for (int g = 0; g < GROUPS; ++g) own[r][g] += x[r * rows.stride + j] * w[g];
    }
    for (int r = 0; r < MANY; ++r)
        for (int g = 0; g < GROUPS; ++g) sums[r][g] = own[r][g];
}
// requires: as above.
template <int MANY, int GROUPS, class T, class I>
void tile(const SparseRows<T, I>& rows, std::int64_t first, const Transposed& W, std::int64_t column,
          Batch (&sums)[MANY][GROUPS]) {
    for (int r = 0; r < MANY; ++r) {
        // Two sums each: the additions of one chain wait for each other.
        Batch even[GROUPS] = {}, odd[GROUPS] = {};
        const auto add = [&](std::int64_t k, Batch* to) {
            const double* row = W.row(static_cast<std::int64_t>(rows.columns[k])) + column;
            const auto value = static_cast<double>(rows.values[k]);
            for (int g = 0; g < GROUPS; ++g) to[g] += value * load(row + g * BATCH);
        };
        std::int64_t k = rows.pointers[first + r];
        const std::int64_t last = rows.pointers[first + r + 1];
        for (; k + 1 < last; k += 2) {
            add(k, even);
            add(k + 1, odd);
        }
        if (k < last) add(k, even);
        for (int g = 0; g < GROUPS; ++g) sums[r][g] = even[g] + odd[g];
    }
}

// A few rows in the form that `tile` is fast on: CSR as it is, dense ones as contiguous doubles.
template <class Rows>
struct FewRows {
    const Rows& rows;
    explicit FewRows(const Rows& all) : rows(all) {}
    const Rows& from(std::int64_t&, std::int64_t) { return rows; }
};
template <class Rows>
    requires DENSE<Rows>
struct FewRows<Rows> {
    const Rows& rows;
    std::vector<double> values;
    DenseRows<double> copy{};
    explicit FewRows(const Rows& all) : rows(all) {}
    const DenseRows<double>& from(std::int64_t& first, std::int64_t many) {
        values.resize(many * rows.d);
        for (std::int64_t r = 0; r < many; ++r) rows.copy(first + r, values.data() + r * rows.d);
        copy = {values.data(), many, rows.d, rows.d};
        first = 0;
        return copy;
    }
};

// out[i, k] = x_i . W[k] + b[k].
// requires: W is outputs x d, out is n x outputs, both row-major; b has one entry per output.
template <class Rows>
void scores_many(const Rows& rows, const double* W, View<const double> b, double* out, int threads) {
    // In narrow registers two groups of dense rows took half as long again as one after the other: g++ keeps no weights.
    constexpr int MOST = DENSE<Rows> && LANES < 8 ? 1 : 2;
    const auto outputs = std::ssize(b);
    const Transposed transposed(W, outputs, rows.d);
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        FewRows<Rows> few(rows);
        const auto use = [&]<int MANY>(Count<MANY>, std::int64_t i) {
            std::int64_t first = i;
            const auto& near = few.from(first, MANY);
            const auto from = [&]<int GROUPS>(Count<GROUPS>, std::int64_t column) {
                Batch sums[MANY][GROUPS];
                tile(near, first, transposed, column, sums);
                const std::int64_t last = std::min(outputs - column, GROUPS * BATCH);
                for (int r = 0; r < MANY; ++r) {
                    double own[GROUPS * BATCH];
                    for (int g = 0; g < GROUPS; ++g) store(sums[r][g], own + g * BATCH);
                    for (std::int64_t k = 0; k < last; ++k)
                        out[(i + r) * outputs + column + k] = own[k] + b[column + k];
                }
            };
            for (std::int64_t column = 0; column < outputs; column += MOST * BATCH)
                outputs - column > BATCH ? from(Count<MOST>{}, column) : from(Count<1>{}, column);
        };
        outputs > BATCH ? few_at_a_time<ROWS<MOST>>(begin, end, use) : few_at_a_time<ROWS<1>>(begin, end, use);
    });
}

// A row that goes into a sum, and by how much.
struct Item {
    std::int64_t row;
    double by;
};

// Every row i stands for s_i (x_i in the class that it chose, -x_i in its own), or for nothing if it chose its own.
// sums[p, k] += what the rows of shard p add to class k by choosing `fresh` and no more `old`; then old = fresh.
// moved[p] += the weight of the rows of shard p that changed. Only rows that changed are read.
// requires: sums is P rows of `width` >= classes d, each classes x d row-major; labels and choices in 0..classes-1;
//           bounds has P + 1 entries, from 0 to n, never falling.
// ensures: returns the number of rows that changed.
template <class Rows>
std::int64_t accumulate_choices(const Rows& rows, std::int64_t classes, View<const std::int32_t> y,
                                View<const double> s, View<std::int32_t> old, View<const std::int32_t> fresh,
                                View<const std::int64_t> bounds, double* sums, std::int64_t width, View<double> moved,
                                int threads) {
    const std::vector<std::int64_t> edges = cut_shards(bounds);
    const auto count = std::ssize(edges) - 1;
    const auto shards = std::ssize(bounds) - 1;
    // What each piece adds to each class, in the order of the rows.
    std::vector<std::vector<std::vector<Item>>> items(edges.size() - 1);
    std::vector<std::int64_t> changed(edges.size() - 1);
    std::vector<double> travel(edges.size() - 1);
    Interrupt interrupt;
    for_tasks(count, threads, [&](std::int64_t q) {
        auto& mine = items[q];
        mine.resize(classes);
        for (std::int64_t i = edges[q]; i < edges[q + 1]; ++i) {
            const std::int32_t from = old[i], to = fresh[i], own = y[i];
            if (from == to) continue;
            const double w = s[i];
            if (from == own) mine[own].push_back({i, -w});
            if (to == own) mine[own].push_back({i, w});
            if (from != own) mine[from].push_back({i, -w});
            if (to != own) mine[to].push_back({i, w});
            ++changed[q];
            travel[q] += w;
            old[i] = to;
        }
    });
    const std::int64_t each = count / shards;
    for_tasks(
        shards * classes, threads,
        [&](std::int64_t task) {
            const std::int64_t p = task / classes, k = task % classes;
            double* sum = sums + p * width + k * rows.d;
            for (std::int64_t q = p * each; q < (p + 1) * each; ++q) {
                const auto& mine = items[q][k];
                for (std::size_t m = 0; m < mine.size(); ++m) {
                    if (m % BLOCK == 0 && interrupt.requested()) break;
                    if (m + 4 < mine.size()) rows.prefetch(mine[m + 4].row);
                    rows.axpy(mine[m].row, mine[m].by, sum);
                }
            }
        },
        interrupt);
    std::int64_t all = 0;
    for (std::int64_t q = 0; q < count; ++q) {
        moved[q / each] += travel[q];
        all += changed[q];
    }
    return all;
}

// Pieces of n rows, each with sums of its own: as many as keep all threads busy, unless their sums take too much memory.
// ensures: edges from 0 to n, never falling; they depend on n, groups and d alone.
inline std::vector<std::int64_t> group_edges(std::int64_t n, std::int64_t groups, std::int64_t d) {
    constexpr std::int64_t PIECES = 16, MOST = 1 << 22;  // pieces, and entries of all their sums
    const std::int64_t count = std::clamp<std::int64_t>(MOST / std::max<std::int64_t>(1, groups * (d + 1)), 1, PIECES);
    std::vector<std::int64_t> edges;
    for (std::int64_t q = 0; q <= count; ++q) edges.push_back(n * q / count);
    return edges;
}

// partial[q, g] += sum of |s_i| (x_i, 1) over the rows of piece q and group g, row after row; rows of a group below 0 are
// left out.
// requires: partial is Q x groups x (d + 1), row-major; group[i] < groups; edges as in `add_pieces`.
// ensures: returns the number of rows read.
template <class Rows>
std::int64_t add_groups(const Rows& rows, View<const double> s, View<const std::int32_t> group, std::int64_t groups,
                        View<const std::int64_t> edges, double* partial, int threads) {
    const std::int64_t size = rows.d + 1, count = std::ssize(edges) - 1;
    std::vector<std::int64_t> read(count);
    Interrupt interrupt;
    for_tasks(
        count, threads,
        [&](std::int64_t q) {
            double* out = partial + q * groups * size;
            for (std::int64_t i = edges[q]; i < edges[q + 1]; ++i) {
                if (i % BLOCK == 0 && interrupt.requested()) break;
                if (group[i] < 0 || s[i] == 0.0) continue;
                double* sum = out + group[i] * size;
                const double weight = std::abs(s[i]);
                rows.axpy(i, weight, sum);
                sum[rows.d] += weight;
                ++read[q];
            }
        },
        interrupt);
    std::int64_t all = 0;
    for (const std::int64_t some : read) all += some;
    return all;
}

// sums[g] += sum of |s_i| (x_i, 1) over the rows of group g; rows of a group below 0 are left out.
// requires: sums is groups x (d + 1), row-major; group[i] < groups.
// ensures: returns the number of rows read.
template <class Rows>
std::int64_t group_sums(const Rows& rows, View<const double> s, View<const std::int32_t> group, std::int64_t groups,
                        double* sums, int threads) {
    const std::vector<std::int64_t> edges = group_edges(rows.n, groups, rows.d);
    const std::int64_t each = groups * (rows.d + 1);
    std::vector<double> partial((edges.size() - 1) * each);
    const std::int64_t read = add_groups(rows, s, group, groups, edges, partial.data(), threads);
    for (std::int64_t first = 0; first < std::ssize(partial); first += each)
        for (std::int64_t j = 0; j < each; ++j) sums[j] += partial[first + j];
    return read;
}

}  // namespace cutsvm
