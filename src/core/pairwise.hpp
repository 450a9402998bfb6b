// The hinge loss over pairs of one query, and its slopes; no pair is ever made.
//
// T. Joachims: Training linear SVMs in linear time, KDD 2006, Algorithm 2, with any number of levels in O(n log n).
//
// Row i has a score f_i, a level y_i (0, 1, ...; only their order counts) and a weight s_i >= 0. Over all pairs of a query
// with y_i > y_j the loss is  sum of s_i s_j max(0, 1 - (f_i - f_j)).  A pair counts if f_i - f_j < 1. With
//   above_i = weight of the rows j of lower level with f_i - f_j < 1     (the paper's c+)
//   below_j = weight of the rows i of higher level with f_i - f_j < 1    (the paper's c-)
// row i's slope is g_i = s_i (below_i - above_i), the weight of the pairs that count is sum_i s_i above_i, and the loss is
// that weight + g.f.
//
//   sort the rows by score
//   sweep i down from the highest score: add every row j with f_i - f_j < 1 to sums by level; above_i = sum of the levels < y_i
//   sweep j up from the lowest score:    add every row i with f_i - f_j < 1;                  below_j = sum of the levels > y_j
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"

namespace cutsvm {

// Weights by level: add one, ask for the sum of all levels below one. A tree of WIDE branches whose nodes hold the sums of
// the branches before each branch, side by side: a question reads one number per depth, and four depths are a million.
class LevelSums {
  public:
    explicit LevelSums(std::int64_t levels) {
        for (std::int64_t size = levels;; size = (size + WIDE - 1) / WIDE) {
            depths_.emplace_back(static_cast<std::size_t>((size + WIDE - 1) / WIDE * WIDE));
            if (size <= WIDE) break;
        }
    }

    void add(std::int32_t level, double weight) {
        total_ += weight;
        auto at = static_cast<std::size_t>(level);
        for (auto& sums : depths_) {
            const std::size_t end = (at / WIDE + 1) * WIDE;
            for (std::size_t k = at + 1; k < end; ++k) sums[k] += weight;
            at /= WIDE;
        }
    }
    double below(std::int32_t level) const {
        double sum = 0.0;
        auto at = static_cast<std::size_t>(level);
        for (const auto& sums : depths_) {
            sum += sums[at];
            at /= WIDE;
        }
        return sum;
    }
    double total() const { return total_; }

  private:
    static constexpr std::int64_t WIDE = 32;
    std::vector<std::vector<double>> depths_;  // the leaves first
    double total_ = 0.0;
};

// Rows that stand query by query: query q has the rows starts[q]..starts[q + 1] and levels 0..levels[q] - 1.
struct Pairs {
    std::span<const std::int32_t> y;
    std::span<const double> s;
    std::span<const std::int64_t> starts;
    std::span<const std::int64_t> levels;

    std::int64_t queries() const { return static_cast<std::int64_t>(levels.size()); }
};

struct Ranked {
    double score;
    std::int32_t row;  // within its query
    bool operator<(const Ranked& other) const { return score < other.score || (score == other.score && row < other.row); }
};

// Sorts on several threads: pieces first, then pairs of them are merged. The order is one and the same for any number.
inline void sort_ranked(std::vector<Ranked>& rows, int threads) {
    const auto n = static_cast<std::int64_t>(rows.size());
    if (threads <= 1 || n < 2 * BLOCK) {
        std::sort(rows.begin(), rows.end());
        return;
    }
    std::int64_t pieces = 1;
    while (pieces < threads) pieces *= 2;
    const auto edge = [&](std::int64_t k) { return rows.begin() + n * k / pieces; };
#pragma omp parallel for schedule(static) num_threads(threads)
    for (std::int64_t k = 0; k < pieces; ++k) std::sort(edge(k), edge(k + 1));
    for (std::int64_t width = 1; width < pieces; width *= 2)
#pragma omp parallel for schedule(static) num_threads(threads)
        for (std::int64_t k = 0; k < pieces; k += 2 * width)
            std::inplace_merge(edge(k), edge(k + width), edge(k + 2 * width));
}

// One query: its rows' slopes g and the weight of the pairs that count.
inline double query_slopes(const Pairs& p, std::int64_t q, const double* f, double* g, int threads) {
    const std::int64_t begin = p.starts[static_cast<std::size_t>(q)], end = p.starts[static_cast<std::size_t>(q) + 1];
    const auto n = static_cast<std::size_t>(end - begin);
    const std::int64_t levels = p.levels[static_cast<std::size_t>(q)];
    if (levels < 2) {
        std::fill(g + begin, g + end, 0.0);
        return 0.0;
    }
    const std::int32_t* y = p.y.data() + begin;
    const double* s = p.s.data() + begin;
    std::vector<Ranked> rows(n);
    for (std::size_t k = 0; k < n; ++k) rows[k] = {f[begin + static_cast<std::int64_t>(k)], static_cast<std::int32_t>(k)};
    sort_ranked(rows, threads);
    double weight = 0.0;
    std::vector<double> above(n);
#pragma omp parallel sections num_threads(2) if (threads > 1)
    {
#pragma omp section
        {
            LevelSums sums(levels);
            std::size_t next = n;
            for (std::size_t k = n; k-- > 0;) {
                while (next > 0 && rows[k].score - rows[next - 1].score < 1.0) {
                    --next;
                    sums.add(y[rows[next].row], s[rows[next].row]);
                }
                const std::int32_t row = rows[k].row;
                above[static_cast<std::size_t>(row)] = sums.below(y[row]);
                weight += s[row] * above[static_cast<std::size_t>(row)];
            }
        }
#pragma omp section
        {
            LevelSums sums(levels + 1);
            std::size_t next = 0;
            for (std::size_t k = 0; k < n; ++k) {
                while (next < n && rows[next].score - rows[k].score < 1.0) {
                    sums.add(y[rows[next].row], s[rows[next].row]);
                    ++next;
                }
                const std::int32_t row = rows[k].row;
                g[begin + row] = sums.total() - sums.below(y[row] + 1);
            }
        }
    }
    for (std::size_t k = 0; k < n; ++k) g[begin + static_cast<std::int64_t>(k)] = s[k] * (g[begin + static_cast<std::int64_t>(k)] - above[k]);
    return weight;
}

// g = slopes of all rows; weights[q] = the weight of query q's pairs that count. Many queries run side by side, of few each
// one runs on all threads.
inline void pair_slopes(const Pairs& p, std::span<const double> f, std::span<double> g, std::span<double> weights,
                        int threads) {
    const bool side_by_side = p.queries() >= 4 * threads;
    const int inside = side_by_side ? 1 : threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (side_by_side && threads > 1)
    for (std::int64_t q = 0; q < p.queries(); ++q)
        weights[static_cast<std::size_t>(q)] = query_slopes(p, q, f.data(), g.data(), inside);
}

}  // namespace cutsvm
