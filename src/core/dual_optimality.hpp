// How far a point of the dual of core/kernel_dual.hpp is from the optimum, and which variables are at fault.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/parallel.hpp"
#include "core/view.hpp"

namespace cutsvm {

// All variables: v belongs to the row row_of[v], on which f is.
struct Variables {
    View<const double> c, low, high, s, f;
    View<const std::int64_t> row_of;
    bool free_intercept;

    std::int64_t size() const { return s.size(); }
    double slope(std::int64_t v) const { return c[v] - f[row_of[v]]; }
};

// How far s is from the optimum. top: the largest slope of a variable that may rise, bottom: the least of one that may
// fall; with a free intercept no pair of steps gains once top <= bottom, without one each is compared with 0, and no step
// gains once top <= 0 <= bottom. gap: F - D at the best intercept b,
//
//   F - D = sum_v  max(high_v (g_v - b), low_v (g_v - b)) - s_v (g_v - b)
struct DualOptimality {
    double top, bottom, intercept, gap;

    double violation(bool free_intercept) const {
        return free_intercept ? top - bottom : std::max({top, -bottom, 0.0});
    }
};

// {F - D, its slope in b} at an intercept b.
// ensures: the same bits for any number of threads.
inline std::array<double, 2> gap_at(const Variables& all, double b, int threads) {
    const auto block = [&](std::int64_t begin, std::int64_t end) {
        double sum = 0.0, slope = 0.0;
        for (std::int64_t v = begin; v < end; ++v) {
            const double g = all.slope(v) - b, active = g > 0.0 ? all.high[v] : all.low[v];
            sum += (active - all.s[v]) * g;
            slope -= active - all.s[v];
        }
        return std::array{sum, slope};
    };
    return sum_blocks<2>(all.size(), threads, block, LIGHT);
}

// requires: low <= 0 <= high; f and row_of as they belong together.
// ensures: the same bits for any number of threads.
inline DualOptimality optimality(const Variables& all, int threads) {
    constexpr double INFINITE = std::numeric_limits<double>::infinity();
    constexpr int HALVINGS = 10;  // of the interval between bottom and top, in which the best intercept is
    const std::int64_t blocks = std::max<std::int64_t>(1, count_blocks(all.size()));
    std::vector<double> tops(blocks, -INFINITE), bottoms(blocks, INFINITE);
    const auto block = [&](std::int64_t begin, std::int64_t end) {
        double top = -INFINITE, bottom = INFINITE;
        for (std::int64_t v = begin; v < end; ++v) {
            const double g = all.slope(v);
            if (all.s[v] < all.high[v]) top = std::max(top, g);
            if (all.s[v] > all.low[v]) bottom = std::min(bottom, g);
        }
        tops[begin / BLOCK] = top, bottoms[begin / BLOCK] = bottom;
    };
    for_blocks(all.size(), threads, block, LIGHT);
    const double top = *std::max_element(tops.begin(), tops.end());
    const double bottom = *std::min_element(bottoms.begin(), bottoms.end());
    if (!all.free_intercept) return {top, bottom, 0.0, gap_at(all, 0.0, threads)[0]};
    if (std::isinf(top) || std::isinf(bottom)) {
        const double b = std::isinf(top) ? (std::isinf(bottom) ? 0.0 : bottom) : top;
        return {top, bottom, b, gap_at(all, b, threads)[0]};
    }
    double left = std::min(top, bottom), right = std::max(top, bottom), b = 0.5 * (left + right), best = b;
    double gap = INFINITE;
    for (int k = 0; k < HALVINGS; ++k) {
        const auto [here, slope] = gap_at(all, b, threads);
        if (here < gap) gap = here, best = b;
        (slope < 0.0 ? left : right) = b;
        b = 0.5 * (left + right);
    }
    return {top, bottom, best, gap};
}

// The variables to put into a working set besides those `taken`: up to `most` whose slopes violate the conditions most,
// one half of them variables that may rise, the other ones that may fall. Without an intercept: those with the largest
// slopes that they may follow. Ties go to the variable with the lower number.
// requires: taken has an entry per variable; seen = optimality(all).
inline std::vector<std::int64_t> violators(const Variables& all, const DualOptimality& seen,
                                           View<const std::uint8_t> taken, std::int64_t most) {
    struct Candidate {
        double key;
        std::int64_t v;
        bool operator<(const Candidate& other) const { return key != other.key ? key > other.key : v < other.v; }
    };
    const double rise = all.free_intercept ? seen.bottom : 0.0, fall = all.free_intercept ? seen.top : 0.0;
    std::vector<Candidate> up, down;
    for (std::int64_t v = 0; v < all.size(); ++v) {
        if (taken[v]) continue;
        const double g = all.slope(v);
        if (g > rise && all.s[v] < all.high[v]) up.push_back({g, v});
        if (g < fall && all.s[v] > all.low[v]) down.push_back({-g, v});
    }
    const auto best = [](std::vector<Candidate>& some, std::int64_t count) {
        count = std::min<std::int64_t>(count, std::ssize(some));
        std::nth_element(some.begin(), some.begin() + count, some.end());
        some.resize(count);
        std::sort(some.begin(), some.end());
    };
    std::vector<std::int64_t> chosen;
    if (!all.free_intercept) {
        up.insert(up.end(), down.begin(), down.end());
        best(up, most);
        down.clear();
    } else {
        const std::int64_t half = most / 2;
        const std::int64_t rising = std::max(half, most - std::ssize(down));
        best(up, rising);
        best(down, std::max(most - std::ssize(up), half));
    }
    std::vector<std::uint8_t> inside(all.size(), 0);
    for (std::size_t k = 0; k < std::max(up.size(), down.size()); ++k)  // in turn: a variable may be in both
        for (const auto* some : {&up, &down})
            if (k < some->size() && std::ssize(chosen) < most && !inside[(*some)[k].v]) {
                inside[(*some)[k].v] = 1;
                chosen.push_back((*some)[k].v);
            }
    return chosen;
}

}  // namespace cutsvm
