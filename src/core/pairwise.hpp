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
#include <vector>

#include "core/parallel.hpp"
#include "core/score_order.hpp"
#include "core/view.hpp"

namespace cutsvm {

inline constexpr std::int64_t FEW_ROWS = 96;
inline constexpr double SHIFTED = 1e-3;  // a margin that a score can be moved by and not lose much to round-off
inline constexpr std::int64_t MANY_ROWS = 32 * BLOCK;  // of one query: up to here waking threads takes what they bring

// Weights by level: add one, ask for the sum of all levels below one. Only what is asked for is ever added up: as a
// difference of sums over all levels it would be lost beside a heavy row of another level. Each has cache lines of its
// own, as another thread writes to the next one.

// Few levels: the sums below each.
class alignas(128) FewLevels {
  public:
    static constexpr std::int64_t MOST = 15;

    void clear(std::int64_t) { below_.fill(0.0); }
    void add(std::int32_t level, double weight) {  // all of them, always: two vectors, and no branch
#pragma omp simd
        for (std::int32_t k = 0; k <= MOST; ++k) below_[k] += k > level ? weight : 0.0;
    }
    void prefetch(std::int32_t) const {}
    double below(std::int32_t level) const { return below_[level]; }

  private:
    alignas(64) std::array<double, MOST + 1> below_{};
};

// Any number of levels: a tree of WIDE branches whose nodes hold the sums of the branches before each branch. A node is
// one line of a cache and one vector, a query reads one number per depth; seven depths are a million.
class alignas(128) ManyLevels {
  public:
    void clear(std::int64_t levels) {
        starts_.clear();
        std::size_t end = 0;
        for (auto nodes = static_cast<std::size_t>(levels) / WIDE + 1;; nodes = (nodes + WIDE - 1) / WIDE) {
            starts_.push_back(end);
            end += nodes * WIDE;
            if (nodes == 1) break;
        }
        sums_.assign(end, 0.0);
    }
    void add(std::int32_t level, double weight) {
        auto at = static_cast<std::size_t>(level);
        for (const std::size_t start : starts_) {
            double* node = sums_.data() + start + at / WIDE * WIDE;
            const std::size_t branch = at % WIDE;
#pragma omp simd
            for (std::size_t k = 0; k < WIDE; ++k) node[k] += k > branch ? weight : 0.0;
            at /= WIDE;
        }
    }
    // requires: more levels than branches. The leaf and what it hangs on; the rest is small enough to be near.
    void prefetch(std::int32_t level) const {
        const auto at = static_cast<std::size_t>(level);
        __builtin_prefetch(sums_.data() + at, 1);
        __builtin_prefetch(sums_.data() + starts_[1] + at / WIDE, 1);
    }
    double below(std::int32_t level) const {
        double sum = 0.0;
        auto at = static_cast<std::size_t>(level);
        for (const std::size_t start : starts_) {
            sum += sums_[start + at];
            at /= WIDE;
        }
        return sum;
    }

  private:
    static constexpr std::size_t WIDE = 8;
    LargeVector<double> sums_;         // the leaves first
    std::vector<std::size_t> starts_;  // of each depth
};

// Rows that stand query by query: query q has the rows starts[q]..starts[q + 1] and levels 0..levels[q] - 1.
struct Pairs {
    View<const std::int32_t> y;
    View<const double> s;
    View<const std::int64_t> starts;
    View<const std::int64_t> levels;
    double margin;

    std::int64_t queries() const { return std::ssize(levels); }
};

// Memory that one query after the other uses.
struct PairWorkspace {
    ScoreOrder put_in_order;
    LargeVector<Ranked> rows;
    LargeVector<double> weights, above, below;  // in the order of the rows
    std::array<FewLevels, 2> few;
    std::array<ManyLevels, 2> many;
    // Of a second sum, which core/pair_squares.hpp needs.
    LargeVector<double> values, above_values, below_values;
    std::array<FewLevels, 2> few_values;
    std::array<ManyLevels, 2> many_values;
};

// A workspace for each thread.
struct PairMemory {
    std::vector<PairWorkspace> of_threads;
};

struct PairSums {
    double weight = 0.0;  // of the pairs that count
    double loss = 0.0;
};

// Weights that are all the same: no array is needed.
struct SameWeights {
    double weight;
    double operator[](std::size_t) const { return weight; }
};

inline constexpr std::size_t AHEAD = 16;  // rows whose memory is asked for before it is needed

// above, in the order of the rows; returns the weight of the pairs that count.
// requires: rows in the order of ByScore; weights in that order; above as long as rows.
template <class Weights, class Sums>
double sweep_down(PairWorkspace& workspace, const Weights& weights, std::int64_t levels, double margin, Sums& sums) {
    const auto& rows = workspace.rows;
    sums.clear(levels);
    double weight = 0.0;
    std::size_t next = rows.size();
    for (std::size_t k = rows.size(); k-- > 0;) {
        for (; next > 0 && rows[k].score - rows[next - 1].score < margin; --next) {
            if (next > AHEAD) sums.prefetch(rows[next - 1 - AHEAD].level);
            sums.add(rows[next - 1].level, weights[next - 1]);
        }
        if (k >= AHEAD) sums.prefetch(rows[k - AHEAD].level);
        workspace.above[k] = sums.below(rows[k].level);
        weight += weights[k] * workspace.above[k];
    }
    return weight;
}

// below, in the order of the rows; levels are counted from the highest, so that those above are those below.
// requires: rows in the order of ByScore; weights in that order; below as long as rows.
template <class Weights, class Sums>
void sweep_up(PairWorkspace& workspace, const Weights& weights, std::int64_t levels, double margin, Sums& sums) {
    const auto& rows = workspace.rows;
    const std::size_t n = rows.size();
    const auto turned = [&rows, highest = static_cast<std::int32_t>(levels - 1)](std::size_t k) {
        return highest - rows[k].level;
    };
    sums.clear(levels);
    std::size_t next = 0;
    for (std::size_t k = 0; k < n; ++k) {
        for (; next < n && rows[next].score - rows[k].score < margin; ++next) {
            if (next + AHEAD < n) sums.prefetch(turned(next + AHEAD));
            sums.add(turned(next), weights[next]);
        }
        if (k + AHEAD < n) sums.prefetch(turned(k + AHEAD));
        workspace.below[k] = sums.below(turned(k));
    }
}

// The same for two levels, where the rows of the higher one stand in order by score - margin: a pair counts if its
// lower row stands behind. Nothing to compare and no branch, so this is fast. One way: the slopes of the higher rows
// (DOWN) or of the lower ones, their weight, and slopes . scores, added up by blocks for more digits.
// requires: rows in the order of ByScoreAndLevel, levels 0 and 1; g has one entry per row.
template <bool DOWN, class Weights>
PairSums sweep_two(const LargeVector<Ranked>& rows, const Weights& weights, double middle, double* g) {
    const auto n = std::ssize(rows);
    double sum = 0.0, unused = 0.0;
    PairSums total;
    for (std::int64_t first = 0; first < n; first += BLOCK) {
        PairSums part;
        for (std::int64_t m = first; m < std::min(n, first + BLOCK); ++m) {
            const std::int64_t k = DOWN ? n - 1 - m : m;
            const bool asks = (rows[k].level != 0) == DOWN;
            const double weight = asks ? weights[k] * sum : 0.0, slope = DOWN ? 0.0 - weight : weight;
            *(asks ? g + rows[k].row : &unused) = slope;
            part.weight += weight;
            part.loss += slope * (rows[k].score - middle);
            sum += asks ? 0.0 : weights[k];
        }
        total.weight += part.weight;
        total.loss += part.loss;
    }
    return total;
}

// Both sweeps, which are independent of each other: one thread each.
// requires: down and up write to different memory.
template <class Down, class Up>
void sweep(const Down& down, const Up& up, int threads) {
    if (threads <= 1) {
        down();
        up();
        return;
    }
    for_equal_tasks(2, 2, [&](std::int64_t task) { task == 0 ? down() : up(); });
}

// The same for few rows, for which it is faster to compare every pair than to sort. The loss is a sum of numbers above
// 0, exact to the last digits.
// requires: n <= FEW_ROWS; y, s, f and g have n entries.
inline PairSums few_slopes(const std::int32_t* y, const double* s, const double* f, double* g, std::int64_t n,
                           double margin) {
    // Whole vectors: the rows that fill them up weigh nothing.
    const std::int64_t padded = (n + 7) / 8 * 8;
    std::array<double, FEW_ROWS> level, score, mass;
    for (auto* values : {&level, &score, &mass}) std::fill(values->begin() + n, values->begin() + padded, 0.0);
    std::copy(y, y + n, level.begin());
    std::copy(f, f + n, score.begin());
    std::copy(s, s + n, mass.begin());
    PairSums total;
    for (std::int64_t i = 0; i < n; ++i) {
        double above = 0.0, below = 0.0, loss = 0.0;
#pragma omp simd reduction(+ : above, below, loss)
        for (std::int64_t j = 0; j < padded; ++j) {
            const double short_by = margin - (score[i] - score[j]);
            const bool counts = (level[j] < level[i]) & (short_by > 0.0);
            above += counts ? mass[j] : 0.0;
            loss += counts ? mass[j] * short_by : 0.0;
            below += (level[j] > level[i]) & (margin - (score[j] - score[i]) > 0.0) ? mass[j] : 0.0;
        }
        g[i] = mass[i] * (below - above);
        total.weight += mass[i] * above;
        total.loss += mass[i] * loss;
    }
    return total;
}

// The slopes g of rows in order, and the sums. The slopes sum to 0, so scores may be counted from any place; from their
// middle the sum is exact to more digits.
// requires: rows in the order of ByScore; weights in that order; g has one entry per row.
template <class Weights, class Levels>
PairSums sorted_slopes(PairWorkspace& workspace, const Weights& weights, std::int64_t levels, double margin,
                       std::array<Levels, 2>& by_level, double* g, int threads) {
    const auto& rows = workspace.rows;
    const std::size_t n = rows.size();
    for (auto* sums : {&workspace.above, &workspace.below}) sums->resize(n);
    double weight = 0.0;
    sweep([&] { weight = sweep_down(workspace, weights, levels, margin, by_level[0]); },
          [&] { sweep_up(workspace, weights, levels, margin, by_level[1]); }, threads);
    const double middle = rows[n / 2].score;
    const auto dot = sum_blocks<1>(static_cast<std::int64_t>(n), threads, [&](std::int64_t first, std::int64_t last) {
        double sum = 0.0;
        for (std::int64_t k = first; k < last; ++k) {
            const double slope = weights[k] * (workspace.below[k] - workspace.above[k]);
            g[rows[k].row] = slope;
            sum += slope * (rows[k].score - middle);
        }
        return std::array{sum};
    });
    return {weight, std::max(0.0, margin * weight + dot[0])};
}

// The same for two levels, where the scores of the higher rows, and so the sum, have the margin in them.
// requires: as `sweep_two`.
template <class Weights>
PairSums sorted_slopes_of_two(const LargeVector<Ranked>& rows, const Weights& weights, double* g, int threads) {
    const double middle = rows[rows.size() / 2].score;
    PairSums down, up;
    sweep([&] { down = sweep_two<true>(rows, weights, middle, g); },
          [&] { up = sweep_two<false>(rows, weights, middle, g); }, threads);
    return {down.weight, std::max(0.0, down.loss + up.loss)};
}

// One query: its rows' slopes g, the weight of the pairs that count, and the loss; NaN if a score is not finite.
// requires: 0 <= q < queries; f and g have one entry per row of all queries.
inline PairSums query_slopes(const Pairs& p, std::int64_t q, const double* f, double* g, PairWorkspace& workspace,
                             int threads) {
    const std::int64_t begin = p.starts[q], end = p.starts[q + 1];
    const std::int64_t n = end - begin, levels = p.levels[q];
    f += begin;
    g += begin;
    const bool pairs = n > 1 && levels > 1;
    if (!pairs || !std::all_of(f, f + n, [](double score) { return std::isfinite(score); })) {
        std::fill(g, g + n, 0.0);
        return {0.0, pairs ? std::numeric_limits<double>::quiet_NaN() : 0.0};
    }
    const std::int32_t* y = p.y.data() + begin;
    const double* s = p.s.data() + begin;
    if (n <= FEW_ROWS) return few_slopes(y, s, f, g, n, p.margin);
    if (n <= MANY_ROWS) threads = 1;
    auto& rows = workspace.rows;
    const bool two = levels == 2 && p.margin >= SHIFTED;
    if (two) {  // the lower row before an upper one at the same place: such a pair does not count
        const std::array<double, 2> less{0.0, p.margin};
        const auto row = [&](std::int64_t i) { return Ranked{f[i] - less[y[i]], static_cast<std::int32_t>(i), y[i]}; };
        workspace.put_in_order(n, row, ByScoreAndLevel{}, rows, threads);
    } else {
        const auto row = [&](std::int64_t i) { return Ranked{f[i], static_cast<std::int32_t>(i), y[i]}; };
        workspace.put_in_order(n, row, ByScore{}, rows, threads);
    }
    const auto with = [&](const auto& weights) {
        if (two) return sorted_slopes_of_two(rows, weights, g, threads);
        if (levels > FewLevels::MOST)
            return sorted_slopes(workspace, weights, levels, p.margin, workspace.many, g, threads);
        return sorted_slopes(workspace, weights, levels, p.margin, workspace.few, g, threads);
    };
    if (std::all_of(s, s + n, [&](double weight) { return weight == s[0]; })) return with(SameWeights{s[0]});  // mostly
    workspace.weights.resize(rows.size());
    for_blocks(n, threads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t k = first; k < last; ++k) workspace.weights[k] = s[rows[k].row];
    });
    return with(workspace.weights);
}

// Calls one(q, workspace, threads) for every query. Many queries run in parallel; of few each one runs on all threads.
// requires: one writes only to what belongs to its query; `memory` is kept for the next call.
template <class One>
void for_queries(const Pairs& p, PairMemory& memory, int threads, const One& one) {
    const bool enough = std::ssize(p.y) > 2 * BLOCK;
    const bool in_parallel = threads > 1 && enough && p.queries() >= 4 * threads;
    const std::size_t size = in_parallel ? threads : 1;
    auto& workspace = memory.of_threads;
    if (workspace.size() < size) workspace.resize(size);
    Interrupt interrupt;
    if (!in_parallel) {
        for (std::int64_t q = 0; q < p.queries(); ++q) {
            if (q % 64 == 0) interrupt.check();
            one(q, workspace[0], threads);
        }
        return;
    }
    const auto next = [&](std::int64_t q) { one(q, workspace[omp_get_thread_num()], 1); };
    for_tasks(p.queries(), threads, next, interrupt, 4);
}

// g = slopes of all rows; weights[q] and losses[q] = those of query q.
// requires: f and g have one entry per row, weights and losses one per query; 0 <= y < levels[q] in query q;
//           a query has fewer than 2^31 rows.
// ensures: the same bits for any number of threads.
inline void pair_slopes(const Pairs& p, View<const double> f, View<double> g, View<double> weights, View<double> losses,
                        PairMemory& memory, int threads) {
    for_queries(p, memory, threads, [&](std::int64_t q, PairWorkspace& own, int inside) {
        const PairSums sums = query_slopes(p, q, f.data(), g.data(), own, inside);
        weights[q] = sums.weight;
        losses[q] = sums.loss;
    });
}

}  // namespace cutsvm
