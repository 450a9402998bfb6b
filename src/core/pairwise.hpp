// The hinge loss over pairs of one query, and its slopes; no pair is ever made.
//
// T. Joachims: Training linear SVMs in linear time, KDD 2006, Algorithm 2, with any number of levels in O(n log n).
//
// Row i has a score f_i, a level y_i (0, 1, ...; only their order counts) and a weight s_i >= 0. The loss is the sum over
// all pairs of a query with y_i > y_j of  s_i s_j max(0, margin - (f_i - f_j)); a pair counts if f_i - f_j < margin. With
//   above_i = weight of the rows j of lower level with f_i - f_j < margin     (the paper's c+)
//   below_j = weight of the rows i of higher level with f_i - f_j < margin    (the paper's c-)
// row i's slope is g_i = s_i (below_i - above_i), the weight of the pairs that count is sum_i s_i above_i, and the loss
// is margin times that weight + g.f.
//
//   sort the rows by score
//   sweep i down from the highest: every row j with f_i - f_j < margin joins sums by level; above_i = sum of levels < y_i
//   sweep j up from the lowest:    every row i with f_i - f_j < margin joins;               below_j = sum of levels > y_j
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/parallel.hpp"

namespace cutsvm {

// Weights by level: add one, ask for the sum of all levels below one. A tree of WIDE branches whose nodes hold the sums
// of the branches before each branch, side by side: a question reads one number per depth; four depths are a million.
class LevelSums {
  public:
    void clear(std::int64_t levels) {
        std::size_t depth = 0;
        for (std::int64_t size = levels;; size = (size + WIDE - 1) / WIDE) {
            if (depth == depths_.size()) depths_.emplace_back();
            depths_[depth++].assign(static_cast<std::size_t>(size), 0.0);
            if (size <= WIDE) break;
        }
        depths_.resize(depth);
        total_ = 0.0;
    }

    void add(std::int32_t level, double weight) {
        total_ += weight;
        auto at = static_cast<std::size_t>(level);
        for (auto& sums : depths_) {
            const std::size_t end = std::min((at / WIDE + 1) * WIDE, sums.size());
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

    double above(std::int32_t level) const {
        const auto next = static_cast<std::size_t>(level) + 1;
        return next < depths_.front().size() ? total_ - below(level + 1) : 0.0;
    }

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
    double margin;

    std::int64_t queries() const { return static_cast<std::int64_t>(levels.size()); }
};

struct Ranked {
    double score;
    std::int32_t row, level;  // the row within its query
    bool operator<(const Ranked& other) const {
        return score < other.score || (score == other.score && row < other.row);
    }
};

// Memory that one query after the other uses.
struct PairScratch {
    std::vector<Ranked> rows;
    std::vector<double> above;
    LevelSums down, up;
};

struct PairSums {
    double weight = 0.0;  // of the pairs that count
    double loss = 0.0;
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
    for (std::int64_t width = 1; width < pieces; width *= 2) {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (std::int64_t k = 0; k < pieces; k += 2 * width)
            std::inplace_merge(edge(k), edge(k + width), edge(k + 2 * width));
    }
}

// above, by row; returns the weight of the pairs that count.
inline double sweep_down(const std::vector<Ranked>& rows, const double* s, std::int64_t levels, double margin,
                         LevelSums& sums, std::vector<double>& above) {
    sums.clear(levels);
    double weight = 0.0;
    std::size_t next = rows.size();
    for (std::size_t k = rows.size(); k-- > 0;) {
        const auto [score, row, level] = rows[k];
        for (; next > 0 && score - rows[next - 1].score < margin; --next)
            sums.add(rows[next - 1].level, s[rows[next - 1].row]);
        above[static_cast<std::size_t>(row)] = sums.below(level);
        weight += s[row] * above[static_cast<std::size_t>(row)];
    }
    return weight;
}

// below, by row.
inline void sweep_up(const std::vector<Ranked>& rows, const double* s, std::int64_t levels, double margin,
                     LevelSums& sums, double* below) {
    sums.clear(levels);
    std::size_t next = 0;
    for (const auto& [score, row, level] : rows) {
        for (; next < rows.size() && rows[next].score - score < margin; ++next)
            sums.add(rows[next].level, s[rows[next].row]);
        below[row] = sums.above(level);
    }
}

// One query: its rows' slopes g, the weight of the pairs that count, and the loss; NaN if a score is not finite.
inline PairSums query_slopes(const Pairs& p, std::int64_t q, const double* f, double* g, PairScratch& scratch,
                             int threads) {
    const std::int64_t begin = p.starts[static_cast<std::size_t>(q)], end = p.starts[static_cast<std::size_t>(q) + 1];
    const std::int64_t n = end - begin, levels = p.levels[static_cast<std::size_t>(q)];
    f += begin;
    g += begin;
    std::fill(g, g + n, 0.0);
    if (levels < 2) return {};
    const std::int32_t* y = p.y.data() + begin;
    const double* s = p.s.data() + begin;
    auto& rows = scratch.rows;
    rows.resize(static_cast<std::size_t>(n));
    bool finite = true;
    for (std::int64_t i = 0; i < n; ++i) {
        finite &= std::isfinite(f[i]);
        rows[static_cast<std::size_t>(i)] = {f[i], static_cast<std::int32_t>(i), y[i]};
    }
    if (!finite) return {0.0, std::numeric_limits<double>::quiet_NaN()};
    sort_ranked(rows, threads);
    scratch.above.resize(static_cast<std::size_t>(n));
    PairSums sums;
    // The two sweeps are apart from each other: one thread each.
#pragma omp parallel sections num_threads(2) if (threads > 1)
    {
#pragma omp section
        sums.weight = sweep_down(rows, s, levels, p.margin, scratch.down, scratch.above);
#pragma omp section
        sweep_up(rows, s, levels, p.margin, scratch.up, g);
    }
    // The slopes sum to 0, so scores may be counted from any place; from their middle the sum is exact to more digits.
    const double middle = rows[rows.size() / 2].score;
    double dot = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
        g[i] = s[i] * (g[i] - scratch.above[static_cast<std::size_t>(i)]);
        dot += g[i] * (f[i] - middle);
    }
    sums.loss = std::max(0.0, p.margin * sums.weight + dot);
    return sums;
}

// g = slopes of all rows; weights[q] and losses[q] = those of query q. Many queries run side by side; of few each one
// runs on all threads.
inline void pair_slopes(const Pairs& p, std::span<const double> f, std::span<double> g, std::span<double> weights,
                        std::span<double> losses, int threads) {
    const auto one = [&](std::int64_t q, PairScratch& scratch, int inside) {
        const PairSums sums = query_slopes(p, q, f.data(), g.data(), scratch, inside);
        weights[static_cast<std::size_t>(q)] = sums.weight;
        losses[static_cast<std::size_t>(q)] = sums.loss;
    };
    if (threads <= 1 || p.queries() < 4 * threads) {
        PairScratch scratch;
        for (std::int64_t q = 0; q < p.queries(); ++q) one(q, scratch, threads);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        PairScratch scratch;
#pragma omp for schedule(dynamic, 4)
        for (std::int64_t q = 0; q < p.queries(); ++q) one(q, scratch, 1);
    }
}

}  // namespace cutsvm
