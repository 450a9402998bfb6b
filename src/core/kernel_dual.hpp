// The dual of a kernel machine, by working sets of some hundred variables:
//
//   max over s of  D(s) = c's - s'K s / 2,     low <= s <= high,     and, with a free intercept, sum_v s_v constant.
//
// A variable v belongs to a row; s_v is its signed coefficient, f(x) = sum_v s_v K(x_v, x), and its slope in the dual is
// g_v = c_v - f(x_v). It may rise while s_v < high_v, and fall while s_v > low_v.
//
//   repeat
//     1. W = the variables that violate the conditions of the optimum most, and a part of the last W
//     2. the kernel values of the rows of W with all rows, from the cache or computed together
//     3. SMO steps within W, the second variable of each chosen by its quadratic gain (Fan, Chen, Lin, JMLR 2005),
//        until the violation within W is a share of that of all
//     4. f = f + K (change of s)
//   until F - D is at most a share of F
//
// Working sets whose kernel rows are computed together by a product of matrices: Wen and others, ThunderSVM, JMLR 2018.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "core/dual_optimality.hpp"
#include "core/dual_steps.hpp"
#include "core/interrupt.hpp"
#include "core/kernel_values.hpp"
#include "core/machines.hpp"
#include "core/parallel.hpp"
#include "core/row_cache.hpp"
#include "core/view.hpp"

namespace cutsvm {

inline constexpr std::int64_t SMALL_SET = 96;
// From MANY_ITERATIONS on working sets have at least LARGE_SET variables: only problems whose support are most of the rows
// take that long.
inline constexpr std::int64_t LARGE_SET = 256, MANY_ITERATIONS = 12;

// How the steps on a dual are taken.
struct DualSettings {
    std::int64_t working_set = 1024;     // at most, and at least SMALL_SET; between, an eighth of the variables
    double kept = 0.5;                   // share of the last working set that stays
    double inner_share = 0.1;            // of the violation of all variables: where the steps within a working set end
    std::int64_t inner_steps = 100'000;  // within a working set, at most
    double least_violation = 1e-12;      // relative to the largest |c|: below, only rounding errors are left
};

// s and what is known at s.
struct DualState {
    std::vector<double> c, low, high, s, f;
    std::vector<std::int64_t> row_of;
    bool free_intercept = true;
    double norm = 0.0;     // |w|^2
    double outside = 0.0;  // c's of variables that are left out, but in w
    // Sums of |change of s_v| size^p, p = 0, 1, 2, over all steps, size that of the row: errors of kernel values are in f
    // that often.
    std::array<double, 3> moved = {};
    std::vector<double> sizes = {};
    std::int64_t iterations = 0, steps = 0;
    std::vector<std::int64_t> last = {};  // the last working set

    Variables view() const { return {c, low, high, s, f, row_of, free_intercept}; }
};

// Iterations that use up their steps within a working set, after which the caller may have something better to do.
inline constexpr std::int64_t SLOW_ITERATIONS = 2;

enum class DualEnd { target, iterations, stalled, interrupted };

// Iterations until the estimate of F - D is at most `target` F, where the errors of the kernel values are not counted.
// requires: state.f = K s, state.norm = s'K s; row_of within the rows of the cache, which has room for a working set.
// ensures: low <= s <= high; the sum of s changes by rounding errors only; the same bits for any number of threads.
template <class V>
DualEnd solve_dual(DualState& state, RowCache<V>& cache, const DualSettings& settings, double target,
                   std::int64_t most_iterations, int threads, Interrupt& interrupt) {
    const std::int64_t variables = std::ssize(state.s);
    const std::int64_t wanted = std::min(settings.working_set, std::max(SMALL_SET, variables / 8));
    const std::int64_t larger = std::min(settings.working_set, std::max(LARGE_SET, wanted));
    const std::int64_t q = std::min({larger, variables, cache.capacity()});
    double largest = 0.0;
    for (const double c : state.c) largest = std::max(largest, std::abs(c));
    const double least = settings.least_violation * std::max(largest, 1e-300);
    std::vector<std::uint8_t> taken(variables);
    std::vector<std::int64_t> rows, places;
    std::vector<double> low, high, s, g, change;
    std::vector<V> K(q * q), other(q * q);  // kernel values within the working set, and within the last one
    std::int64_t last_size = 0;
    std::int64_t slow = 0;  // iterations whose steps were not enough
    for (std::int64_t iteration = 0; iteration < most_iterations; ++iteration) {
        const DualOptimality seen = optimality(state.view(), threads);
        double linear = state.outside;
        for (std::int64_t v = 0; v < variables; ++v) linear += state.c[v] * state.s[v];
        const double primal = linear - 0.5 * state.norm + seen.gap;
        if (seen.gap <= target * std::abs(primal)) return DualEnd::target;
        const double violation = seen.violation(state.free_intercept);
        if (!(violation > least)) return DualEnd::stalled;
        if (interrupt.requested()) return DualEnd::interrupted;
        // 1. The working set; the first ones, when little is known of the solution, are small.
        std::vector<std::int64_t>& W = state.last;
        const std::int64_t usual = state.iterations < MANY_ITERATIONS ? std::min(q, wanted) : q;
        const std::int64_t most = std::min(usual, SMALL_SET << std::min<std::int64_t>(state.iterations, 10));
        // Two are new at least, so that the pair that violates the conditions most is in it.
        const auto share = static_cast<std::int64_t>(settings.kept * static_cast<double>(most));
        const std::int64_t stay = std::max<std::int64_t>(0, std::min({std::ssize(W), share, most - 2}));
        W.erase(W.begin(), W.end() - stay);
        std::fill(taken.begin(), taken.end(), 0);
        for (const std::int64_t v : W) taken[v] = 1;
        const auto fresh = violators(state.view(), seen, taken, most - stay);
        W.insert(W.end(), fresh.begin(), fresh.end());
        const auto size = std::ssize(W);
        // 2. Its kernel values.
        rows.resize(size), places.resize(size);
        for (std::int64_t k = 0; k < size; ++k) rows[k] = state.row_of[W[k]];
        cache.fetch(rows, places);
        // What stays of the last working set were its last variables.
        const std::int64_t known = last_size > 0 ? stay : 0;
        for (std::int64_t i = 0; i < known; ++i) {
            const V* from = K.data() + (last_size - stay + i) * last_size + (last_size - stay);
            std::copy_n(from, known, other.data() + i * size);
        }
        std::swap(K, other);
        gather_values<V>(cache.values(), cache.stride(), places, rows, known, K.data(), threads);
        last_size = size;
        // 3. Steps within.
        low.resize(size), high.resize(size), s.resize(size), g.resize(size), change.resize(size);
        for (std::int64_t k = 0; k < size; ++k) {
            const std::int64_t v = W[k];
            low[k] = state.low[v], high[k] = state.high[v], s[k] = state.s[v];
            g[k] = state.c[v] - state.f[state.row_of[v]];
        }
        const WorkingSet<V> set{K.data(), low, high, s, g};
        const double enough = std::max(settings.inner_share * violation, 0.5 * least);
        const std::int64_t steps = state.free_intercept ? pair_steps(set, enough, settings.inner_steps, interrupt)
                                                        : mixed_steps(set, enough, settings.inner_steps, interrupt);
        // 4. f at all rows.
        std::int64_t changed = 0;
        for (std::int64_t k = 0; k < size; ++k) {
            const std::int64_t v = W[k];
            const double f = state.f[state.row_of[v]], by = s[k] - state.s[v];
            state.norm += by * (f + (state.c[v] - g[k]));  // (s + by)'K (s + by) = s'K s + by'(f before + f after)
            state.s[v] = s[k];
            if (by == 0.0) continue;
            const double size = state.sizes[rows[k]];
            for (double part = std::abs(by); double& sum : state.moved) sum += part, part *= size;
            places[changed] = places[k], change[changed] = by;
            ++changed;
        }
        add_rows<V>(cache.values(), cache.stride(), View<const std::int64_t>(places).part(0, changed),
                    View<const double>(change).part(0, changed), state.f, threads);
        state.steps += steps;
        ++state.iterations;
        if (changed == 0) return DualEnd::stalled;
        slow += steps >= settings.inner_steps;
        if (slow == SLOW_ITERATIONS) break;
    }
    return DualEnd::iterations;
}

// The best multiple of s from 1 to `most`, for caps that grow by that factor: it maximises z c's - z^2 s'K s / 2.
// ensures: f and norm are those of the new s.
inline void stretch(DualState& state, double most) {
    double linear = 0.0;
    for (std::size_t v = 0; v < state.s.size(); ++v) linear += state.c[v] * state.s[v];
    const double best = state.norm > 0.0 ? linear / state.norm : 1.0, factor = std::clamp(best, 1.0, most);
    for (double& s : state.s) s *= factor;
    for (double& f : state.f) f *= factor;
    state.norm *= factor * factor;
}

// What is known at the end of a problem: F and D by the kernel values, and the best intercept.
struct DualSeen {
    double primal, dual, intercept;
};

// Where the kernel values of a problem's rows come from: a matrix of the values of all rows.
template <class V>
struct MatrixValues {
    const V* gram;
    std::int64_t stride;

    // Of the rows of one problem: fill(which, places, to) writes the values of rows[which[k]] with all of `rows` to
    // to + places[k] * rows.size().
    auto of(View<const std::int32_t> rows) const {
        return [this, rows](View<const std::int64_t> which, View<const std::int64_t> places, V* to) {
            for (std::int64_t k = 0; k < which.size(); ++k) {
                const V* from = gram + rows[which[k]] * stride;
                V* const own = to + places[k] * rows.size();
                for (std::int64_t j = 0; j < rows.size(); ++j) own[j] = from[rows[j]];
            }
        };
    }
};

// The same, computed from the rows of X when they are wanted.
template <class V>
struct ComputedValues {
    Gemm<V> gemm;
    KernelFunction kernel;
    Block<V> X;

    auto of(View<const std::int32_t> rows) const {
        return [this, own = X.some(rows)](View<const std::int64_t> which, View<const std::int64_t> places, V* to) {
            kernel_rows(gemm, kernel, own.block().some(which).block(), own.block(), places, to, own.block().n, 1);
        };
    }
};

// Problems with the hinge loss for each of Cs, which rise, on rows with kernel values of one source: each answer is the
// start of the next. alpha: (rows of all problems) x width, its first column the start of the first; seen: problems x Cs,
// whose primal is infinite where there was no time. scores: f at the rows of all problems for the last of Cs, summed afresh
// over the rows with a coefficient, SUM_ROWS at a time; NaN where there was no time. It may be empty.
// requires: rows within those of the source; Cs rising, width >= Cs.size(); 0 <= alpha <= C |a| and, with a free intercept,
// sum y alpha = 0 in the first column.
// ensures: 0 <= alpha <= C |a|; the same bits for any number of threads.
template <class V, template <class> class Source>
void solve_pairs(const Source<V>& source, const Problems& problems, View<const double> Cs, bool free_intercept,
                 const DualSettings& settings, double target, std::int64_t most_iterations, double seconds,
                 double* alpha, std::int64_t width, DualSeen* seen, View<double> scores, int threads) {
    Interrupt interrupt(seconds);
    std::fill(scores.begin(), scores.end(), std::numeric_limits<double>::quiet_NaN());
    std::fill_n(seen, problems.count() * Cs.size(), DualSeen{std::numeric_limits<double>::infinity(), 0.0, 0.0});
    const auto make = [] { return std::unique_ptr<V[]>(); };
    std::int64_t largest = 0;
    for (std::int64_t p = 0; p < problems.count(); ++p) largest = std::max(largest, problems.size(p));
    const auto solve = [&](std::int64_t p, std::unique_ptr<V[]>& room) {
        const std::int64_t begin = problems.begin(p), m = problems.size(p);
        const View<const std::int32_t> rows = problems.rows.part(begin, m);
        const View<const double> a = problems.a.part(begin, m);
        double* const own = alpha + begin * width;
        if (!room) room.reset(new V[largest * largest]);  // pages that are not used take no memory
        const auto fill = source.of(rows);
        RowCache<V> cache(room.get(), m, m, m, [&](auto which, auto places) { fill(which, places, room.get()); });
        DualState state;
        state.free_intercept = free_intercept;
        state.c.resize(m), state.low.resize(m), state.high.resize(m), state.s.resize(m), state.f.assign(m, 0.0);
        state.row_of.resize(m), state.sizes.assign(m, 1.0);
        std::iota(state.row_of.begin(), state.row_of.end(), 0);
        for (std::int64_t i = 0; i < m; ++i) {
            state.c[i] = std::copysign(1.0, a[i]);
            state.s[i] = state.c[i] * own[i * width];
        }
        const auto sum_rows = [&](View<double> f) {
            std::vector<std::int64_t> support;
            std::vector<double> coef;
            for (std::int64_t i = 0; i < m; ++i)
                if (state.s[i] != 0.0) support.push_back(i), coef.push_back(state.s[i]);
            std::vector<std::int64_t> places(support.size());
            cache.fetch(support, places);
            std::fill(f.begin(), f.end(), 0.0);
            std::vector<double> sums(m);
            for (std::int64_t first = 0; first < std::ssize(support); first += SUM_ROWS) {
                const std::int64_t count = std::min(SUM_ROWS, std::ssize(support) - first);
                std::fill(sums.begin(), sums.end(), 0.0);
                add_rows<V>(cache.values(), m, View<const std::int64_t>(places).part(first, count),
                            View<const double>(coef).part(first, count), sums, 1);
                for (std::int64_t i = 0; i < m; ++i) f[i] += sums[i];
            }
        };
        sum_rows(state.f);
        for (std::int64_t i = 0; i < m; ++i) state.norm += state.s[i] * state.f[i];
        for (std::int64_t c = 0; c < Cs.size(); ++c) {
            if (c > 0) stretch(state, Cs[c] / Cs[c - 1]);
            for (std::int64_t i = 0; i < m; ++i) {
                const double cap = Cs[c] * std::abs(a[i]);
                state.low[i] = std::signbit(a[i]) ? -cap : 0.0;
                state.high[i] = std::signbit(a[i]) ? 0.0 : cap;
                state.s[i] = std::clamp(state.s[i], state.low[i], state.high[i]);
            }
            const DualEnd end = solve_dual(state, cache, settings, target, most_iterations, 1, interrupt);
            for (std::int64_t i = 0; i < m; ++i) own[i * width + c] = std::abs(state.s[i]);
            if (end == DualEnd::interrupted) return;
            const DualOptimality found = optimality(state.view(), 1);
            double linear = 0.0;
            for (std::int64_t i = 0; i < m; ++i) linear += state.c[i] * state.s[i];
            const double dual = linear - 0.5 * state.norm;
            seen[p * Cs.size() + c] = {dual + found.gap, dual, found.intercept};
        }
        if (scores.size() > 0) sum_rows(scores.part(begin, m));
    };
    for_tasks_with(problems.count(), threads, make, solve, interrupt);
}

}  // namespace cutsvm
