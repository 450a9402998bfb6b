// The hinge loss over pairs of one query, and its slopes; no pair is ever made.
//
// T. Joachims: Training linear SVMs in linear time, KDD 2006, Algorithm 2, with any number of levels in O(n log n).
//
// Row i has a score f_i, a level y_i (0, 1, ...; only their order counts) and a weight s_i >= 0. The loss is the sum
// over all pairs of a query with y_i > y_j of  s_i s_j max(0, margin - (f_i - f_j)); a pair counts if
// f_i - f_j < margin. With
//   above_i = weight of the rows j of lower level with f_i - f_j < margin     (the paper's c+)
//   below_j = weight of the rows i of higher level with f_i - f_j < margin    (the paper's c-)
// row i's slope is g_i = s_i (below_i - above_i), the weight of the pairs that count is sum_i s_i above_i, and the loss
// is margin times that weight + g.f.
//
//   sort the rows by score
//   sweep i down from the highest: rows j with f_i - f_j < margin join sums by level; above_i = sum of levels < y_i
//   sweep j up from the lowest:    rows i with f_i - f_j < margin join;               below_j = sum of levels > y_j
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "core/score_order.hpp"

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

// A row in its place among the sorted ones.
struct Ranked {
    double score, weight;
    std::int32_t row, level;  // the row within its query
};

// Memory that one query after the other uses.
struct PairScratch {
    ScoreOrder order;
    std::vector<Ranked> rows;
    std::vector<double> above, below;
    LevelSums down, up;
};

struct PairSums {
    double weight = 0.0;  // of the pairs that count
    double loss = 0.0;
};

// above, in the order of the rows; returns the weight of the pairs that count.
inline double sweep_down(const std::vector<Ranked>& rows, std::int64_t levels, double margin, LevelSums& sums,
                         std::vector<double>& above) {
    sums.clear(levels);
    double weight = 0.0;
    std::size_t next = rows.size();
    for (std::size_t k = rows.size(); k-- > 0;) {
        for (; next > 0 && rows[k].score - rows[next - 1].score < margin; --next)
            sums.add(rows[next - 1].level, rows[next - 1].weight);
        above[k] = sums.below(rows[k].level);
        weight += rows[k].weight * above[k];
    }
    return weight;
}

// below, in the order of the rows.
inline void sweep_up(const std::vector<Ranked>& rows, std::int64_t levels, double margin, LevelSums& sums,
                     std::vector<double>& below) {
    sums.clear(levels);
    std::size_t next = 0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        for (; next < rows.size() && rows[next].score - rows[k].score < margin; ++next)
            sums.add(rows[next].level, rows[next].weight);
        below[k] = sums.above(rows[k].level);
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
    if (!std::all_of(f, f + n, [](double score) { return std::isfinite(score); }))
        return {0.0, std::numeric_limits<double>::quiet_NaN()};
    const std::int32_t* y = p.y.data() + begin;
    const double* s = p.s.data() + begin;
    const auto size = static_cast<std::size_t>(n);
    auto& rows = scratch.rows;
    rows.resize(size);
    scratch.above.resize(size);
    scratch.below.resize(size);
    const auto& order = scratch.order({f, size}, threads);
    for_blocks(n, threads, [&](std::int64_t first, std::int64_t last) {
        for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k)
            rows[k] = {f[order[k]], s[order[k]], order[k], y[order[k]]};
    });
    PairSums sums;
    // The two sweeps are apart from each other: one thread each.
#pragma omp parallel sections num_threads(2) if (threads > 1 && n > BLOCK)
    {
#pragma omp section
        sums.weight = sweep_down(rows, levels, p.margin, scratch.down, scratch.above);
#pragma omp section
        sweep_up(rows, levels, p.margin, scratch.up, scratch.below);
    }
    // The slopes sum to 0, so scores may be counted from any place; from their middle the sum is exact to more digits.
    const double middle = rows[size / 2].score;
    const auto dot = sum_blocks<1>(n, threads, [&](std::int64_t first, std::int64_t last) {
        double sum = 0.0;
        for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
            const double slope = rows[k].weight * (scratch.below[k] - scratch.above[k]);
            g[rows[k].row] = slope;
            sum += slope * (rows[k].score - middle);
        }
        return std::array{sum};
    });
    sums.loss = std::max(0.0, p.margin * sums.weight + dot[0]);
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
