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
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "core/score_order.hpp"

namespace cutsvm {

inline constexpr std::int64_t FEW_ROWS = 96;
inline constexpr double SHIFTED = 1e-3;  // a margin that a score can be moved by and not lose much to round-off
inline constexpr std::int64_t MANY_ROWS = 32 * BLOCK;  // of one query: up to here waking threads takes what they bring

// Weights by level: add one, ask for the sums of all levels below and above one. Few levels: the sums below each.
class FewLevels {
  public:
    static constexpr std::int64_t MOST = 16;

    void clear(std::int64_t levels) {
        levels_ = static_cast<std::size_t>(levels);
        below_.fill(0.0);
    }
    void add(std::int32_t level, double weight) {
        for (auto k = static_cast<std::size_t>(level) + 1; k <= levels_; ++k) below_[k] += weight;
    }
    double below(std::int32_t level) const { return below_[static_cast<std::size_t>(level)]; }
    double above(std::int32_t level) const { return below_[levels_] - below_[static_cast<std::size_t>(level) + 1]; }

  private:
    std::size_t levels_ = 0;
    std::array<double, MOST + 1> below_{};  // the last: all of them
};

// Any number of levels: a tree of WIDE branches whose nodes hold the sums of the branches before each branch, side by
// side: a question reads one number per depth; four depths are a million.
class ManyLevels {
  public:
    void clear(std::int64_t levels) {
        std::size_t depth = 0;
        for (std::int64_t size = levels + 1;; size = (size + WIDE - 1) / WIDE) {
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
    double above(std::int32_t level) const { return total_ - below(level + 1); }

  private:
    static constexpr std::int64_t WIDE = 32;
    std::vector<LargeVector<double>> depths_;  // the leaves first
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

// Memory that one query after the other uses.
struct PairScratch {
    ScoreOrder put_in_order;
    LargeVector<Ranked> rows;
    LargeVector<double> weights, above, below;  // in the order of the rows
    std::array<FewLevels, 2> few;
    std::array<ManyLevels, 2> many;
};

// A scratch for each thread.
struct PairMemory {
    std::vector<PairScratch> of_threads;
};

struct PairSums {
    double weight = 0.0;  // of the pairs that count
    double loss = 0.0;
};

// above, in the order of the rows; returns the weight of the pairs that count.
template <class Sums>
double sweep_down(PairScratch& scratch, std::int64_t levels, double margin, Sums& sums) {
    const auto& rows = scratch.rows;
    const auto& weights = scratch.weights;
    sums.clear(levels);
    double weight = 0.0;
    std::size_t next = rows.size();
    for (std::size_t k = rows.size(); k-- > 0;) {
        for (; next > 0 && rows[k].score - rows[next - 1].score < margin; --next)
            sums.add(rows[next - 1].level, weights[next - 1]);
        scratch.above[k] = sums.below(rows[k].level);
        weight += weights[k] * scratch.above[k];
    }
    return weight;
}

// below, in the order of the rows.
template <class Sums>
void sweep_up(PairScratch& scratch, std::int64_t levels, double margin, Sums& sums) {
    const auto& rows = scratch.rows;
    const auto& weights = scratch.weights;
    sums.clear(levels);
    std::size_t next = 0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        for (; next < rows.size() && rows[next].score - rows[k].score < margin; ++next)
            sums.add(rows[next].level, weights[next]);
        scratch.below[k] = sums.above(rows[k].level);
    }
}

// The same for two levels, where the rows of the higher one stand in order by score - margin: a pair counts if its lower
// row stands behind. Nothing to compare and no branch, so this is fast.
inline double sweep_two(PairScratch& scratch) {
    const auto& rows = scratch.rows;
    double sum = 0.0, weight = 0.0;
    for (std::size_t k = rows.size(); k-- > 0;) {
        const bool upper = rows[k].level != 0;
        scratch.above[k] = upper ? sum : 0.0;
        weight += scratch.weights[k] * scratch.above[k];
        sum += upper ? 0.0 : scratch.weights[k];
    }
    sum = 0.0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        const bool upper = rows[k].level != 0;
        scratch.below[k] = upper ? 0.0 : sum;
        sum += upper ? scratch.weights[k] : 0.0;
    }
    return weight;
}

// Both sweeps, which are apart from each other: one thread each. Returns what the first returns.
template <class Down, class Up>
double sweep(const Down& down, const Up& up, int threads) {
    double weight = 0.0;
    if (threads <= 1) {
        weight = down();
        up();
        return weight;
    }
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        weight = down();
#pragma omp section
        up();
    }
    return weight;
}

// above and below of all rows, by the way that is the fastest for so many levels; returns the weight.
inline double sweep(PairScratch& scratch, std::int64_t levels, double margin, int threads) {
    const auto with = [&](auto& sums) {
        return sweep([&] { return sweep_down(scratch, levels, margin, sums[0]); },
                     [&] { sweep_up(scratch, levels, margin, sums[1]); }, threads);
    };
    if (levels > FewLevels::MOST) return with(scratch.many);
    return with(scratch.few);
}

// The same for few rows, for which it is faster to look at every pair than to sort.
inline PairSums few_slopes(const std::int32_t* y, const double* s, const double* f, double* g, std::int64_t n,
                           double margin) {
    // Whole vectors: the rows that fill them up weigh nothing.
    const auto size = static_cast<std::size_t>(n), padded = (size + 7) / 8 * 8;
    std::array<double, FEW_ROWS> level, score, mass;
    for (auto* values : {&level, &score, &mass}) std::fill(values->begin() + n, values->begin() + padded, 0.0);
    std::copy(y, y + n, level.begin());
    std::copy(f, f + n, score.begin());
    std::copy(s, s + n, mass.begin());
    double weight = 0.0, dot = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
        double above = 0.0, below = 0.0;
#pragma omp simd reduction(+ : above, below)
        for (std::size_t j = 0; j < padded; ++j) {
            above += (level[j] < level[i]) & (score[i] - score[j] < margin) ? mass[j] : 0.0;
            below += (level[j] > level[i]) & (score[j] - score[i] < margin) ? mass[j] : 0.0;
        }
        g[i] = mass[i] * (below - above);
        weight += mass[i] * above;
        dot += g[i] * (score[i] - score[0]);
    }
    return {weight, std::max(0.0, margin * weight + dot)};
}

// One query: its rows' slopes g, the weight of the pairs that count, and the loss; NaN if a score is not finite.
inline PairSums query_slopes(const Pairs& p, std::int64_t q, const double* f, double* g, PairScratch& scratch,
                             int threads) {
    const std::int64_t begin = p.starts[static_cast<std::size_t>(q)], end = p.starts[static_cast<std::size_t>(q) + 1];
    const std::int64_t n = end - begin, levels = p.levels[static_cast<std::size_t>(q)];
    f += begin;
    g += begin;
    std::fill(g, g + n, 0.0);
    if (n < 2 || levels < 2) return {};
    if (!std::all_of(f, f + n, [](double score) { return std::isfinite(score); }))
        return {0.0, std::numeric_limits<double>::quiet_NaN()};
    const std::int32_t* y = p.y.data() + begin;
    const double* s = p.s.data() + begin;
    if (n <= FEW_ROWS) return few_slopes(y, s, f, g, n, p.margin);
    if (n <= MANY_ROWS) threads = 1;
    auto& rows = scratch.rows;
    rows.resize(static_cast<std::size_t>(n));
    for (auto* sorted : {&scratch.weights, &scratch.above, &scratch.below}) sorted->resize(static_cast<std::size_t>(n));
    const bool two = levels == 2 && p.margin >= SHIFTED;
    if (two) {  // the lower rows first, so that they stand before an upper one at the same place: such a pair is not one
        std::array<std::int64_t, 2> next{0, std::count(y, y + n, 0)};
        for (std::int64_t i = 0; i < n; ++i)
            rows[static_cast<std::size_t>(next[static_cast<std::size_t>(y[i])]++)] = {
                f[i] - (y[i] != 0 ? p.margin : 0.0), static_cast<std::int32_t>(i), y[i]};
    } else {
        for (std::int64_t i = 0; i < n; ++i)
            rows[static_cast<std::size_t>(i)] = {f[i], static_cast<std::int32_t>(i), y[i]};
    }
    scratch.put_in_order(rows, threads);
    if (std::all_of(s, s + n, [&](double weight) { return weight == s[0]; }))  // mostly so: nothing to look up
        std::fill(scratch.weights.begin(), scratch.weights.end(), s[0]);
    else
        for_blocks(n, threads, [&](std::int64_t first, std::int64_t last) {
            for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k)
                scratch.weights[k] = s[rows[k].row];
        });
    PairSums sums;
    sums.weight = two ? sweep_two(scratch) : sweep(scratch, levels, p.margin, threads);
    // The slopes sum to 0, so scores may be counted from any place; from their middle the sum is exact to more digits.
    const double middle = rows[static_cast<std::size_t>(n / 2)].score;
    const auto dot = sum_blocks<1>(n, threads, [&](std::int64_t first, std::int64_t last) {
        double sum = 0.0;
        for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
            const double slope = scratch.weights[k] * (scratch.below[k] - scratch.above[k]);
            g[rows[k].row] = slope;
            sum += slope * (rows[k].score - middle);
        }
        return std::array{sum};
    });
    sums.loss = std::max(0.0, two ? dot[0] : p.margin * sums.weight + dot[0]);  // moved scores have the margin in them
    return sums;
}

// g = slopes of all rows; weights[q] and losses[q] = those of query q. Many queries run side by side; of few each one
// runs on all threads. `memory` is kept for the next call.
inline void pair_slopes(const Pairs& p, std::span<const double> f, std::span<double> g, std::span<double> weights,
                        std::span<double> losses, PairMemory& memory, int threads) {
    const auto one = [&](std::int64_t q, PairScratch& own, int inside) {
        const PairSums sums = query_slopes(p, q, f.data(), g.data(), own, inside);
        weights[static_cast<std::size_t>(q)] = sums.weight;
        losses[static_cast<std::size_t>(q)] = sums.loss;
    };
    const bool enough = static_cast<std::int64_t>(f.size()) > 2 * BLOCK;
    const bool side_by_side = threads > 1 && enough && p.queries() >= 4 * threads;
    const auto size = static_cast<std::size_t>(side_by_side ? threads : 1);
    auto& scratch = memory.of_threads;
    if (scratch.size() < size) scratch.resize(size);
    if (!side_by_side) {
        for (std::int64_t q = 0; q < p.queries(); ++q) one(q, scratch[0], threads);
        return;
    }
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (std::int64_t q = 0; q < p.queries(); ++q) one(q, scratch[static_cast<std::size_t>(omp_get_thread_num())], 1);
}

}  // namespace cutsvm
