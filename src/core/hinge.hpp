// The weighted hinge loss of scores, and its behaviour along a line of scores.
//
// A row's label and weight come as one number, a_i = y_i s_i (y_i = -1 or 1, s_i >= 0), so that its loss is
//   s_i max(0, 1 - y_i f_i) = max(0, |a_i| - a_i f_i).
// Along a line f_i(k) = f_i + k t_i it is max(0, c_i + k r_i) with c_i = |a_i| - a_i f_i and r_i = -a_i t_i: its
// slope jumps by |r_i| at the breakpoint k_i = -c_i / r_i.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/lanes.hpp"
#include "core/parallel.hpp"
#include "core/view.hpp"

namespace cutsvm {

// sum_i max(0, |a_i| - a_i f_i)
// requires: f and a have one length.
// ensures: the same bits for any number of threads.
inline double hinge_value(View<const double> f, View<const double> a, int threads) {
    const auto block = [=](std::int64_t begin, std::int64_t end) {
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = begin; i < end; ++i) {
            const double loss = std::abs(a[i]) - a[i] * f[i];
            sum += loss > 0.0 ? loss : 0.0;
        }
        return std::array{sum};
    };
    return sum_blocks<1>(std::ssize(f), threads, block, LIGHT)[0];
}

// Rows whose loss has its breakpoint at their score, up to round-off, count as tied: |1 - y_i f_i| <= TIE (1 + |f_i|).
inline constexpr double TIE = 1e-12;

inline double slack(double f, double a) { return 1.0 - std::copysign(1.0, a) * f; }

inline bool tied(double slack, double f) { return std::abs(slack) <= TIE * (1.0 + std::abs(f)); }

// {sum of a_i inside the margin, sum of the positive a_i that are tied, the same of the negative ones}
// requires: f and a have one length.
// ensures: the same bits for any number of threads.
inline std::array<double, 3> hinge_balance(View<const double> f, View<const double> a, int threads) {
    return sum_blocks<3>(std::ssize(f), threads, [=](std::int64_t begin, std::int64_t end) {
        double inside = 0.0, positive = 0.0, negative = 0.0;
#pragma omp simd reduction(+ : inside, positive, negative)
        for (std::int64_t i = begin; i < end; ++i) {
            const double fi = f[i], ai = a[i], s = slack(fi, ai), up = ai > 0.0 ? ai : 0.0;
            const double within = s > 0.0 ? ai : 0.0;
            const bool tie = tied(s, fi);
            inside += tie ? 0.0 : within;
            positive += tie ? up : 0.0;
            negative += tie ? ai - up : 0.0;
        }
        return std::array{inside, positive, negative};
    });
}

// g[i] = slope of row i's loss in its score: -a_i inside the margin, 0 outside, and on a tie -a_i times
// shares[0] (positive rows) or shares[1] (negative rows); offsets[p] = sum of |g_i| over shard p.
// With these, loss_p(f') >= g . f' + offsets[p] for all scores f' when both shares lie in [0, 1].
// requires: f, a and g have one length; bounds has one entry more than offsets, from 0 to n, never falling.
inline void hinge_slopes(View<const double> f, View<const double> a, std::array<double, 2> shares,
                         View<const std::int64_t> bounds, View<double> g, View<double> offsets, int threads) {
    const auto shards = std::ssize(offsets);
    const auto block = [=](std::int64_t begin, std::int64_t end) {
        const double up = shares[0], down = shares[1];
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
            const double fi = f[i], ai = a[i], s = slack(fi, ai);
            const double on_tie = ai > 0.0 ? up : down, off = s > 0.0 ? 1.0 : 0.0;
            const double share = tied(s, fi) ? on_tie : off;
            g[i] = -ai * share;
        }
    };
    for_blocks(std::ssize(f), threads, block, LIGHT);
    for_equal_tasks(shards, threads, [=](std::int64_t p) {
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = bounds[p]; i < bounds[p + 1]; ++i) sum += std::abs(g[i]);
        offsets[p] = sum;
    });
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

// Puts every row in its place: KEPT if |1 - y_i f_i| <= band, else OUTSIDE the margin, or inside it: in group 0 if it is
// positive, 1 if it is negative. Returns the rows kept.
// requires: f, a and group have one length; band >= 0.
// ensures: the rows rise.
inline std::vector<std::int64_t> hinge_sift(View<const double> f, View<const double> a, double band,
                                            View<std::int32_t> group, int threads) {
    return find_rows(std::ssize(f), threads, [=](std::int64_t i) {
        const double ai = a[i], s = slack(f[i], ai);
        const int counts = ai != 0.0, near_margin = std::abs(s) <= band, within = s > 0.0, negative = ai < 0.0;
        const int kept = counts & near_margin, inside = counts & within & (1 - kept);
        group[i] = KEPT * kept + inside * negative + OUTSIDE * (1 - kept) * (1 - inside);
        return static_cast<std::uint8_t>(kept);
    });
}

// The rows that are not where they were put: inside with a slack below 0, or OUTSIDE with one above.
// requires: f, a and group have one length; group is of hinge_sift.
// ensures: the rows rise.
inline std::vector<std::int64_t> hinge_violators(View<const double> f, View<const double> a,
                                                 View<const std::int32_t> group, int threads) {
    return find_rows(std::ssize(f), threads, [=](std::int64_t i) {
        const double ai = a[i], s = slack(f[i], ai);
        const int counts = ai != 0.0, left = s < 0.0, entered = s > 0.0, at = group[i];
        return static_cast<std::uint8_t>(counts & ((left & (at >= 0)) | (entered & (at == OUTSIDE))));
    });
}

// A line of scores f + k t: towards other scores (t = to - f), or all of them up by k (t = 1, `to` empty).
struct Line {
    View<const double> f, to, a;
};

// A few rows of a line at a time, small enough to stay in the first cache.
struct Chunk {
    static constexpr std::int64_t SIZE = 256;
    std::int64_t size;
    std::array<double, SIZE> c, r, breakpoint;
    std::array<std::int64_t, SIZE> falls;  // -1 if r < 0: positive up to the breakpoint, not beyond it; else 0

    // The rows from `from` on, not beyond `end`.
    Chunk(const Line& line, std::int64_t from, std::int64_t end) : size(std::min(SIZE, end - from)) {
        constexpr double INF = std::numeric_limits<double>::infinity();
        const double *f = line.f.data() + from, *a = line.a.data() + from;
#pragma omp simd
        for (std::int64_t j = 0; j < size; ++j) c[j] = std::abs(a[j]) - a[j] * f[j];
        if (line.to.empty())
#pragma omp simd
            for (std::int64_t j = 0; j < size; ++j) r[j] = -a[j];
        else
#pragma omp simd
            for (std::int64_t j = 0; j < size; ++j) r[j] = -a[j] * (line.to[from + j] - f[j]);
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

// At each k: constant = sum of c_i and slope = sum of r_i over the rows with positive loss just right of k, and the
// number of breakpoints up to k. So the loss at k is constant + k slope, and its slope to the right is slope.
// requires: f, a and, unless it is empty, to have one length.
// ensures: the same bits for any number of threads.
inline LineValues hinge_evaluate(const Line& line, const std::array<double, LINE_POINTS>& ks, int threads) {
    const auto n = std::ssize(line.f);
    const Batch at = load(ks.data());
    const auto sums = sum_blocks<3 * LINE_POINTS>(n, threads, [&](std::int64_t begin, std::int64_t end) {
        Batch constant{}, slope{}, breakpoints{};
        for (std::int64_t from = begin; from < end; from += Chunk::SIZE) {
            const Chunk chunk(line, from, end);
            for (std::int64_t j = 0; j < chunk.size; ++j) {
                const Mask passed = at >= broadcast(chunk.breakpoint[j]), active = passed ^ broadcast(chunk.falls[j]);
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
// requires: low <= high.
// ensures: jumps > 0.
inline std::vector<Breakpoint> hinge_breakpoints(const Line& line, double low, double high, int threads) {
    const auto n = std::ssize(line.f);
    std::vector<std::vector<Breakpoint>> found(count_blocks(n));
    for_blocks(n, threads, [&](std::int64_t begin, std::int64_t end) {
        auto& mine = found[begin / BLOCK];
        for (std::int64_t from = begin; from < end; from += Chunk::SIZE) {
            const Chunk chunk(line, from, end);
            for (std::int64_t j = 0; j < chunk.size; ++j) {
                const bool inside = (low < chunk.breakpoint[j]) & (chunk.breakpoint[j] <= high) & (chunk.r[j] != 0.0);
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
