// Losses that are sums of hinges (core/row_losses.hpp) over all rows, and their behaviour along a line of scores: the
// hinge loss, with one hinge for each row, and the losses of residuals with two.
//
// Along a line f_i(k) = f_i + k t_i a hinge is max(0, c + k r) with c its height at f_i and r = -a t_i, a its steepness:
// its slope jumps by |r| at the breakpoint -c / r.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/lanes.hpp"
#include "core/parallel.hpp"
#include "core/row_losses.hpp"
#include "core/smooth.hpp"
#include "core/view.hpp"

namespace cutsvm {

// Hinges whose breakpoint is at the score of their row, up to round-off, count as tied: |gap| <= TIE scale.
inline constexpr double TIE = 1e-12;

inline bool tied(double gap, double scale) { return std::abs(gap) <= TIE * scale; }

// {sum of the steepness of hinges above 0, sum of the positive ones that are tied, the same of the negative ones}
// requires: f has one entry per row.
// ensures: the same bits for any number of threads.
template <class Loss>
std::array<double, 3> hinge_balance(const Loss& loss, View<const double> f, int threads) {
    return sum_blocks<3>(loss.size(), threads, [=](std::int64_t begin, std::int64_t end) {
        double inside = 0.0, positive = 0.0, negative = 0.0;
#pragma omp simd reduction(+ : inside, positive, negative)
        for (std::int64_t i = begin; i < end; ++i) {
            const double fi = f[i], scale = loss.scale(i, fi);
            for (int b = 0; b < Loss::HINGES; ++b) {
                const double a = loss.steepness(i, b), gap = loss.gap(i, b, fi), up = a > 0.0 ? a : 0.0;
                const double within = gap > 0.0 ? a : 0.0;
                const bool tie = tied(gap, scale);
                inside += tie ? 0.0 : within;
                positive += tie ? up : 0.0;
                negative += tie ? a - up : 0.0;
            }
        }
        return std::array{inside, positive, negative};
    });
}

// g[i] = slope of row i's loss in its score: the sum over its hinges of -a where they are above 0, 0 where they are not,
// and on a tie -a times shares[0] (a > 0) or shares[1] (a < 0). With the offsets of the highest planes with these slopes:
// loss_p(f') >= g . f' + offsets[p] for all scores f' when both shares lie in [0, 1].
// requires: f and g have one entry per row; bounds one more than the sums, from 0 to n, never falling.
// ensures: the same bits for any number of threads.
template <class Loss>
void hinge_slopes(const Loss& loss, View<const double> f, std::array<double, 2> shares, View<const std::int64_t> bounds,
                  View<double> g, const ShardSums& sums, int threads) {
    const auto block = [=](std::int64_t begin, std::int64_t end) {
        const Loss own = loss;  // numbers that are written may be any memory but this
        const double up = shares[0], down = shares[1];
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
            const double fi = f[i], scale = own.scale(i, fi);
            double slope = -0.0;
            for (int b = 0; b < Loss::HINGES; ++b) {
                const double a = own.steepness(i, b), gap = own.gap(i, b, fi);
                const double on_tie = a > 0.0 ? up : down, off = gap > 0.0 ? 1.0 : 0.0;
                slope += -a * (tied(gap, scale) ? on_tie : off);
            }
            g[i] = slope;
        }
    };
    for_blocks(loss.size(), threads, block, LIGHT);
    dual_heights(loss, View<const double>(g), bounds, sums, threads);
}

// Groups of sifting besides those of rows with a loss: rows kept, and rows without loss or weight.
enum Place : std::int32_t { KEPT = -1, OUTSIDE = -2 };

// What the blocks have found, in their order.
// ensures: the order of the blocks, and within them theirs.
template <class Found>
std::vector<Found> joined(const std::vector<std::vector<Found>>& of_blocks) {
    std::vector<Found> all;
    std::size_t count = 0;
    for (const auto& part : of_blocks) count += part.size();
    all.reserve(count);
    for (const auto& part : of_blocks) all.insert(all.end(), part.begin(), part.end());
    return all;
}

// The rows that pass a test, in order. The test is made for a whole block first, without branches, into `passed`.
// requires: test(i) writes only to what belongs to row i.
// ensures: the rows rise.
template <class Test>
std::vector<std::int64_t> find_rows(std::int64_t n, int threads, const Test& test) {
    std::vector<std::vector<std::int64_t>> found(count_blocks(n));
    for_blocks(n, threads, [&](std::int64_t begin, std::int64_t end) {
        const Test own = test;  // bytes that it writes may be any memory but this
        std::array<std::uint8_t, BLOCK> passed;
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) passed[i - begin] = own(i);
        auto& mine = found[begin / BLOCK];
        for (std::int64_t i = begin; i < end; ++i)
            if (passed[i - begin]) mine.push_back(i);
    });
    return joined(found);
}

// Puts every row in its place: KEPT if one of its gaps is within the band, else in the group of its hinge that is above
// 0, or OUTSIDE if none is. Returns the rows kept.
// requires: f and group have one entry per row; band >= 0.
// ensures: the rows rise.
template <class Loss>
std::vector<std::int64_t> hinge_sift(const Loss& loss, View<const double> f, double band, View<std::int32_t> group,
                                     int threads) {
    return find_rows(loss.size(), threads, [=](std::int64_t i) {
        const int counts = loss.weight(i) != 0.0;
        int near = 0, above = 0, place = 0;
        for (int b = 0; b < Loss::HINGES; ++b) {
            const double gap = loss.gap(i, b, f[i]);
            const int positive = gap > 0.0;
            near |= std::abs(gap) <= band;
            above |= positive;
            place += positive * loss.group(i, b);
        }
        const int kept = counts & near, inside = counts & above & (1 - kept);
        group[i] = KEPT * kept + inside * place + OUTSIDE * (1 - kept) * (1 - inside);
        return static_cast<std::uint8_t>(kept);
    });
}

// The rows that are not where they were put: in a group whose hinge has a gap below 0, or OUTSIDE with a gap above.
// requires: f and group have one entry per row; group is of hinge_sift.
// ensures: the rows rise.
template <class Loss>
std::vector<std::int64_t> hinge_violators(const Loss& loss, View<const double> f, View<const std::int32_t> group,
                                          int threads) {
    return find_rows(loss.size(), threads, [=](std::int64_t i) {
        const int counts = loss.weight(i) != 0.0, at = group[i];
        int left = 0, entered = 0;
        for (int b = 0; b < Loss::HINGES; ++b) {
            const double gap = loss.gap(i, b, f[i]);
            const int falls = gap < 0.0, rises = gap > 0.0, mine = loss.group(i, b) == at;
            left |= falls & mine;
            entered |= rises;
        }
        return static_cast<std::uint8_t>(counts & (left | (entered & (at == OUTSIDE))));
    });
}

// A line of scores f + k t: towards other scores (t = to - f), or all of them up by k (t = 1, `to` empty).
struct Line {
    View<const double> f, to;
};

// One hinge of a few rows of a line at a time, small enough to stay in the first cache.
struct Chunk {
    static constexpr std::int64_t SIZE = 256;
    std::int64_t size;
    std::array<double, SIZE> c, r, breakpoint;
    std::array<std::int64_t, SIZE> falls;  // -1 if r < 0: positive up to the breakpoint, not beyond it; else 0

    // The hinge b of the rows from `from` on, not beyond `end`.
    template <class Loss>
    Chunk(const Loss& given, int b, const Line& line, std::int64_t from, std::int64_t end)
        : size(std::min(SIZE, end - from)) {
        constexpr double INF = std::numeric_limits<double>::infinity();
        const Loss loss = given;  // what is written here may be any memory but this
        const double* f = line.f.data() + from;
#pragma omp simd
        for (std::int64_t j = 0; j < size; ++j) c[j] = loss.height(from + j, b, f[j]);
        if (line.to.empty())
#pragma omp simd
            for (std::int64_t j = 0; j < size; ++j) r[j] = -loss.steepness(from + j, b);
        else
#pragma omp simd
            for (std::int64_t j = 0; j < size; ++j) r[j] = -loss.steepness(from + j, b) * (line.to[from + j] - f[j]);
#pragma omp simd
        for (std::int64_t j = 0; j < size; ++j) breakpoint[j] = -c[j] / r[j];
#pragma omp simd
        for (std::int64_t j = 0; j < size; ++j) {
            const double flat = c[j] > 0.0 ? -INF : INF;  // r = 0: the loss is positive everywhere or nowhere
            breakpoint[j] = r[j] != 0.0 ? breakpoint[j] : flat;
        }
#pragma omp simd
        for (std::int64_t j = 0; j < size; ++j) falls[j] = r[j] < 0.0 ? -1 : 0;
    }
};

// Points of a line that one pass evaluates.
inline constexpr std::size_t LINE_POINTS = 8;

struct LineValues {
    std::array<double, LINE_POINTS> constant, slope, breakpoints;

    // As one array, in which blocks are added up.
    using Sums = std::array<double, 3 * LINE_POINTS>;
    static Sums packed(const Batch& constant, const Batch& slope, const Batch& breakpoints) {
        static_assert(LINE_POINTS == BATCH);
        Sums sums;
        store(constant, sums.data());
        store(slope, sums.data() + LINE_POINTS);
        store(breakpoints, sums.data() + 2 * LINE_POINTS);
        return sums;
    }
    explicit LineValues(const Sums& sums) {
        std::copy_n(sums.begin(), LINE_POINTS, constant.begin());
        std::copy_n(sums.begin() + LINE_POINTS, LINE_POINTS, slope.begin());
        std::copy_n(sums.begin() + 2 * LINE_POINTS, LINE_POINTS, breakpoints.begin());
    }
};

// At each k: constant = sum of c and slope = sum of r over the hinges that are positive just right of k, and the number
// of breakpoints up to k. So the loss at k is constant + k slope, and its slope to the right is slope.
// requires: f and, unless it is empty, to have one entry per row.
// ensures: the same bits for any number of threads.
template <class Loss>
LineValues hinge_evaluate(const Loss& loss, const Line& line, const std::array<double, LINE_POINTS>& ks, int threads) {
    const Batch at = load(ks.data());
    const auto sums = sum_blocks<3 * LINE_POINTS>(loss.size(), threads, [&](std::int64_t begin, std::int64_t end) {
        Batch constant{}, slope{}, breakpoints{};
        for (std::int64_t from = begin; from < end; from += Chunk::SIZE)
            for (int b = 0; b < Loss::HINGES; ++b) {
                const Chunk chunk(loss, b, line, from, end);
                for (std::int64_t j = 0; j < chunk.size; ++j) {
                    const Mask passed = at >= broadcast(chunk.breakpoint[j]),
                               active = passed ^ broadcast(chunk.falls[j]);
                    constant += select(active, broadcast(chunk.c[j]), Batch{});
                    slope += select(active, broadcast(chunk.r[j]), Batch{});
                    breakpoints += select(passed, broadcast(1.0), Batch{});
                }
            }
        return LineValues::packed(constant, slope, breakpoints);
    });
    return LineValues(sums);
}

struct Breakpoint {
    double at, jump;
};

// The breakpoints in (low, high], in the order of the rows.
// requires: as of hinge_evaluate; low <= high.
// ensures: jumps > 0.
template <class Loss>
std::vector<Breakpoint> hinge_breakpoints(const Loss& loss, const Line& line, double low, double high, int threads) {
    std::vector<std::vector<Breakpoint>> found(count_blocks(loss.size()));
    for_blocks(loss.size(), threads, [&](std::int64_t begin, std::int64_t end) {
        auto& mine = found[begin / BLOCK];
        for (std::int64_t from = begin; from < end; from += Chunk::SIZE)
            for (int b = 0; b < Loss::HINGES; ++b) {
                const Chunk chunk(loss, b, line, from, end);
                for (std::int64_t j = 0; j < chunk.size; ++j) {
                    const bool inside =
                        (low < chunk.breakpoint[j]) & (chunk.breakpoint[j] <= high) & (chunk.r[j] != 0.0);
                    if (inside) mine.push_back({chunk.breakpoint[j], std::abs(chunk.r[j])});
                }
            }
    });
    return joined(found);
}

// The smallest k in (low, high] at which slope + curvature k + (sum of the jumps up to k) reaches `level`;
// `high` when it never does. By selection: expected time is linear in the number of breakpoints, which it reorders.
// requires: breakpoints in (low, high], jumps >= 0, curvature >= 0, and slope + curvature low < level.
inline double crossing(View<Breakpoint> breakpoints, double slope, double curvature, double level, double low,
                       double high) {
    std::size_t begin = 0, end = breakpoints.size();
    while (begin < end) {
        // Three parts: below the pivot, equal to it, above it.
        const double a = breakpoints[begin].at, b = breakpoints[begin + (end - begin) / 2].at,
                     c = breakpoints[end - 1].at;
        const double pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
        std::size_t less = begin, i = begin, more = end;
        double below = 0.0, equal = 0.0;
        while (i < more) {
            if (breakpoints[i].at < pivot) {
                below += breakpoints[i].jump;
                std::swap(breakpoints[i++], breakpoints[less++]);
            } else if (breakpoints[i].at > pivot) {
                std::swap(breakpoints[i], breakpoints[--more]);
            } else {
                equal += breakpoints[i++].jump;
            }
        }
        if (slope + below + curvature * pivot >= level) {  // reached before the pivot's own jump
            high = pivot;
            end = less;
        } else if (slope + below + equal + curvature * pivot >= level) {
            return pivot;
        } else {
            slope += below + equal;
            low = pivot;
            begin = more;
        }
    }
    if (curvature > 0.0) return std::clamp((level - slope) / curvature, low, high);
    return high;
}

}  // namespace cutsvm
