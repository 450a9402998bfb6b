// The multi-class hinge loss of Crammer and Singer, and its behaviour along a line of scores.
//
// Row i has a score f_ik for each of K classes, a label y_i and a weight s_i >= 0. Its heights are
//   h_ik = [k != y_i] + f_ik - f_iy,    0 for its own class,
// and its loss is s_i max_k h_ik. It chooses the class with the largest height; of equal ones its own first, then the
// next ones after its own, in a circle. Along a line of scores every height is a straight line in k, the loss their
// upper envelope: its slope jumps where the row changes its choice.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/hinge.hpp"
#include "core/many.hpp"
#include "core/parallel.hpp"
#include "core/view.hpp"

namespace cutsvm {

// Scores, labels and weights of all rows.
struct ClassScores {
    const double* f;  // n x classes, row-major
    std::int64_t n, classes;
    View<const std::int32_t> y;
    View<const double> s;

    const double* row(std::int64_t i) const { return f + i * classes; }
};

// The largest height of a row, the class that has it, and the largest height of all other classes.
struct Top {
    double height, next;
    std::int32_t choice;
};

// requires: f has `classes` entries, 0 <= y < classes.
// ensures: height >= 0, height >= next.
inline Top top(const double* f, std::int64_t classes, std::int32_t y) {
    const double own = f[y] - 1.0;
    Top top{0.0, -std::numeric_limits<double>::infinity(), y};
    const auto see = [&](std::int64_t k) {
        const double h = f[k] - own;
        if (h > top.height) {
            top.next = top.height;
            top.height = h;
            top.choice = static_cast<std::int32_t>(k);
        } else if (h > top.next) {
            top.next = h;
        }
    };
    for (std::int64_t k = y + 1; k < classes; ++k) see(k);
    for (std::int64_t k = 0; k < y; ++k) see(k);
    return top;
}

// sum_i s_i max_k h_ik
// requires: labels in 0..classes-1.
// ensures: the same bits for any number of threads.
inline double multi_value(const ClassScores& scores, int threads) {
    return sum_blocks<1>(scores.n, threads, [&](std::int64_t begin, std::int64_t end) {
        double sum = 0.0;
        for (std::int64_t i = begin; i < end; ++i) {
            const double* f = scores.row(i);
            const double own = f[scores.y[i]];
            double height = own - 1.0;  // its own class, lowered by the 1 that the others are given
            for (std::int64_t k = 0; k < scores.classes; ++k) {
                const double h = k == scores.y[i] ? own - 1.0 : f[k];
                height = h > height ? h : height;
            }
            sum += scores.s[i] * (height - own + 1.0);
        }
        return std::array{sum};
    })[0];
}

// choice[i] = the class that row i chooses, its own if it has no weight. For each shard p: offsets[p] = the weight of the
// rows that chose another class, pulls[p, k] = the weight of those that chose k less those that left k for another.
// With these, loss_p(f') >= offsets[p] + sum over its rows of s_i (f'_i,choice - f'_iy) for all scores f'.
// requires: bounds has P + 1 entries, from 0 to n; pulls is P x classes, row-major.
inline void multi_choose(const ClassScores& scores, View<const std::int64_t> bounds, View<std::int32_t> choice,
                         View<double> offsets, double* pulls, int threads) {
    for_blocks(scores.n, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            choice[i] = scores.s[i] > 0.0 ? top(scores.row(i), scores.classes, scores.y[i]).choice : scores.y[i];
        }
    });
    const auto shards = std::ssize(offsets);
    for_equal_tasks(shards, threads, [&](std::int64_t p) {
        double* pull = pulls + p * scores.classes;
        std::fill_n(pull, scores.classes, 0.0);
        double offset = 0.0;
        for (std::int64_t i = bounds[p]; i < bounds[p + 1]; ++i) {
            if (choice[i] == scores.y[i]) continue;
            pull[choice[i]] += scores.s[i];
            pull[scores.y[i]] -= scores.s[i];
            offset += scores.s[i];
        }
        offsets[p] = offset;
    });
}

// A line of scores f + k (to - f).
struct ClassLine {
    ClassScores from;
    const double* to;
};

// The heights of one row along a line: at[j] + k rise[j]; the first is its own class's, 0 everywhere.
struct Fan {
    std::vector<double> at, rise;

    explicit Fan(std::int64_t classes) : at(classes), rise(at.size()) {}

    void read(const ClassLine& line, std::int64_t i) {
        const std::int64_t classes = line.from.classes;
        const std::int32_t y = line.from.y[i];
        const double* f = line.from.row(i);
        const double* to = line.to + i * classes;
        const double own = f[y], ahead = to[y] - f[y];
        at[0] = rise[0] = 0.0;
        std::size_t j = 1;
        for (std::int64_t k = 0; k < classes; ++k) {
            if (k == y) continue;
            at[j] = 1.0 + f[k] - own;
            rise[j++] = to[k] - f[k] - ahead;
        }
    }

    // The line that is highest at k and just right of it.
    std::size_t highest(double k) const {
        std::size_t best = 0;
        double height = 0.0;
        for (std::size_t j = 1; j < at.size(); ++j) {
            const double h = at[j] + k * rise[j];
            if (h > height || (h == height && rise[j] > rise[best])) {
                best = j;
                height = h;
            }
        }
        return best;
    }

    // Where the line `now`, highest at `low`, is overtaken next, and by which line; infinity if by none.
    std::pair<double, std::size_t> overtaken(std::size_t now, double low) const {
        double where = std::numeric_limits<double>::infinity();
        std::size_t by = now;
        for (std::size_t j = 0; j < at.size(); ++j) {
            if (!(rise[j] > rise[now])) continue;
            const double k = std::max(low, (at[now] - at[j]) / (rise[j] - rise[now]));
            if (k < where || (k == where && rise[j] > rise[by])) {
                where = k;
                by = j;
            }
        }
        return {where, by};
    }
};

// At each k, rising: constant and slope of the loss just right of k (the loss is constant + k slope there), and how many
// rows changed their slope between one k and the next, up to k.
// requires: ks rise; line.to is n x classes.
// ensures: the same bits for any number of threads.
inline LineValues multi_evaluate(const ClassLine& line, const std::array<double, LINE_POINTS>& ks, int threads) {
    const ClassScores& from = line.from;
    const Batch at = load(ks.data());
    const auto sums = sum_blocks<3 * LINE_POINTS>(from.n, threads, [&](std::int64_t begin, std::int64_t end) {
        Batch constant = {}, slope = {}, breakpoints = {};
        Fan fan(from.classes);
        for (std::int64_t i = begin; i < end; ++i) {
            const double s = from.s[i];
            if (s == 0.0) continue;
            fan.read(line, i);
            Batch height = {}, rise = {}, base = {};
            for (std::size_t j = 1; j < fan.at.size(); ++j) {
                const Batch own = broadcast(fan.rise[j]), start = broadcast(fan.at[j]), h = start + at * own;
                const Mask better = (h > height) | ((h == height) & (own > rise));
                height = select(better, h, height);
                rise = select(better, own, rise);
                base = select(better, start, base);
            }
            constant += s * base;
            slope += s * rise;
            double rises[LINE_POINTS + 1];  // the first one twice
            store(rise, rises + 1);
            rises[0] = rises[1];
            const Batch before = load(rises);
            breakpoints += select(rise == before, Batch{}, broadcast(1.0));
        }
        LineValues::Sums sum = LineValues::packed(constant, slope, breakpoints);
        for (std::size_t m = 2 * LINE_POINTS + 1; m < 3 * LINE_POINTS; ++m) sum[m] += sum[m - 1];
        return sum;
    });
    return LineValues(sums);
}

// The breakpoints of all rows in (low, high], in the order of the rows: where the slope of a row's envelope changes, and
// by how much. A row has at most classes - 1 of them: nothing is sorted.
// requires: low <= high; line.to is n x classes.
// ensures: jumps > 0.
inline std::vector<Breakpoint> multi_breakpoints(const ClassLine& line, double low, double high, int threads) {
    const ClassScores& from = line.from;
    std::vector<std::vector<Breakpoint>> found(count_blocks(from.n));
    for_blocks(from.n, threads, [&](std::int64_t begin, std::int64_t end) {
        auto& mine = found[begin / BLOCK];
        Fan fan(from.classes);
        for (std::int64_t i = begin; i < end; ++i) {
            const double s = from.s[i];
            if (s == 0.0) continue;
            fan.read(line, i);
            std::size_t now = fan.highest(low);
            if (now == fan.highest(high)) continue;  // highest at both ends: highest in between
            double here = low;
            while (true) {
                const auto [where, by] = fan.overtaken(now, here);
                if (!(where <= high)) break;
                mine.push_back({where, s * (fan.rise[by] - fan.rise[now])});
                now = by;
                here = where;
            }
        }
    });
    return joined(found);
}

// group[i] = label x classes + choice of row i, or KEPT if the choice is not clear: another class is within `band` of the
// one chosen; OUTSIDE if it has no weight. Returns the rows kept.
// requires: group has n entries; band >= 0; classes^2 < 2^31.
// ensures: the rows rise.
inline std::vector<std::int64_t> multi_sift(const ClassScores& scores, double band, View<std::int32_t> group,
                                            int threads) {
    return find_rows(scores.n, threads, [=](std::int64_t i) {
        const Top best = top(scores.row(i), scores.classes, scores.y[i]);
        const bool counts = scores.s[i] > 0.0, kept = counts & (best.height - best.next <= band);
        const auto clear = static_cast<std::int32_t>(scores.y[i] * scores.classes + best.choice);
        group[i] = kept ? KEPT : (counts ? clear : OUTSIDE);
        return static_cast<std::uint8_t>(kept);
    });
}

// The rows that do not choose as their group says.
// requires: group is of multi_sift.
// ensures: the rows rise.
inline std::vector<std::int64_t> multi_violators(const ClassScores& scores, View<const std::int32_t> group,
                                                 int threads) {
    return find_rows(scores.n, threads, [=](std::int64_t i) {
        if (group[i] < 0) return std::uint8_t{0};
        const Top best = top(scores.row(i), scores.classes, scores.y[i]);
        const auto now = static_cast<std::int32_t>(scores.y[i] * scores.classes + best.choice);
        return static_cast<std::uint8_t>(now != group[i]);
    });
}

}  // namespace cutsvm
