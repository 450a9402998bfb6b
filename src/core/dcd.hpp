// Dual coordinate descent for any loss of row_losses.hpp: one epoch over the rows that are still active.
//
//   max over alpha within its limits of  sum_i C offset_i(-y_i alpha_i / C) - |w|^2/2,   w = sum_i alpha_i y_i x_i
//
// which for the hinge loss is sum_i alpha_i - |w|^2/2, 0 <= alpha_i <= C s_i.
//
//   for i in a random order (of runs of rows: memory likes neighbours):
//       m = y_i (w.x_i + b)                                    with targets, y_i is 1
//       slope = m less the nearest m that belongs to alpha_i   0: row i is at rest
//       leave row i out if m is well within the range of those that do            shrinking
//       change = step(alpha_i, slope, ...) - alpha_i           to the best alpha_i, q_i = |x_i|^2 + unit
//       alpha_i += change;   w += change y_i x_i;   b += change y_i unit
//
// w has d + 1 entries, b is the last.
//
// One thread does this in order, and the result is what it is. Several threads share w without locks: each goes over a
// part of the rows, updates may get lost, and the result depends on timing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/interrupt.hpp"
#include "core/parallel.hpp"
#include "core/row_losses.hpp"
#include "core/rows.hpp"
#include "core/view.hpp"

namespace cutsvm {

// splitmix64: a counter and a mixer; any seed is a good one.
struct Random {
    std::uint64_t state;

    std::uint32_t next() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
    }
    std::size_t below(std::size_t bound) {  // bound < 2^32
        return static_cast<std::size_t>((static_cast<std::uint64_t>(next()) * bound) >> 32);
    }
};

// 0..count-1 in a random order of runs of `run` neighbours: 1 is a plain permutation.
// requires: 0 < run, count < 2^32.
// ensures: the same order for the same seed.
inline std::vector<std::uint32_t> permutation(std::size_t count, std::size_t run, std::uint64_t seed) {
    std::vector<std::uint32_t> firsts((count + run - 1) / run);
    for (std::size_t r = 0; r < firsts.size(); ++r) firsts[r] = static_cast<std::uint32_t>(r * run);
    Random random{seed};
    for (std::size_t left = firsts.size(); left > 1; --left) std::swap(firsts[left - 1], firsts[random.below(left)]);
    if (run == 1) return firsts;
    std::vector<std::uint32_t> places;
    places.reserve(count);
    for (const std::uint32_t first : firsts)
        for (std::size_t k = first; k < std::min(count, first + run); ++k)
            places.push_back(static_cast<std::uint32_t>(k));
    return places;
}

// What an epoch saw.
struct Epoch {
    // Sum over the rows visited of their share of primal - dual; over all rows and for one w it is that difference.
    double gap = 0.0;
    // The largest and the smallest slope that can still be followed.
    double steepest = -NO_LIMIT, flattest = NO_LIMIT;
    std::int64_t active = 0;  // rows that stay
};

// Margins this far inside a range are safe: from its lower end `above`, from its upper end -below.
struct Safe {
    double above, below;

    bool operator()(const Range& range, double m) const { return m - range.low > above && m - range.high < below; }
};

// The dual problem, and which rows leave.
template <class Loss>
struct Dual {
    const Loss& loss;
    View<const double> q;
    double C, unit;
    View<double> alpha;
    Safe safe;
};

// Rows with a w that only this thread writes to.
template <class Rows>
struct Own {
    const Rows& rows;
    std::int64_t d;

    explicit Own(const Rows& all) : rows(all), d(all.d) {}
    static double load(double& place) { return place; }
    static void store(double& place, double value) { place = value; }
    double dot(std::int64_t i, const double* w) const { return rows.dot(i, w); }
    void axpy(std::int64_t i, double g, double* w) const { rows.axpy(i, g, w); }
    void prefetch_place(std::int64_t i) const { rows.prefetch_place(i); }
    void prefetch(std::int64_t i) const { rows.prefetch(i); }
};

// Rows whose w is shared with other threads: loads and stores one number at a time, in no order.
template <class Rows>
struct Shared {
    const Rows& rows;
    std::int64_t d;

    explicit Shared(const Rows& all) : rows(all), d(all.d) {}
    static double load(double& place) { return std::atomic_ref(place).load(std::memory_order_relaxed); }
    static void store(double& place, double value) { std::atomic_ref(place).store(value, std::memory_order_relaxed); }

    double dot(std::int64_t i, double* w) const {
        double sum = 0.0;
        rows.each(i, [&](std::int64_t j, double x) { sum += x * load(w[j]); });
        return sum;
    }
    void axpy(std::int64_t i, double g, double* w) const {
        rows.each(i, [&](std::int64_t j, double x) { store(w[j], load(w[j]) + g * x); });
    }
    void prefetch_place(std::int64_t i) const { rows.prefetch_place(i); }
    void prefetch(std::int64_t i) const { rows.prefetch(i); }
};

// Goes over the rows order[k] for the k in `places`; stays[k] says whether the row stays active.
// requires: as `descend`; places below order.size(), w has d + 1 entries.
template <class Rows, class Loss>
Epoch visit(const Rows& rows, const Dual<Loss>& dual, View<const std::int32_t> order, View<const std::uint32_t> places,
            View<std::uint8_t> stays, double* w, Interrupt& interrupt) {
    constexpr std::int64_t FAR = 16, NEAR = 6;  // how many rows ahead memory is asked for
    constexpr std::int64_t PIECE = 1024;        // rows between two checks for an interrupt
    const Loss loss = dual.loss;
    Epoch epoch;
    for (std::int64_t next = 0; next < places.size(); ++next) {
        if (next % PIECE == 0 && interrupt.requested()) break;
        if (next + FAR < places.size()) {
            const std::int32_t ahead = order[places[next + FAR]];
            __builtin_prefetch(&dual.alpha[ahead], 1);
            loss.prefetch(ahead);
            __builtin_prefetch(&dual.q[ahead]);
            rows.prefetch_place(ahead);
        }
        if (next + NEAR < places.size()) rows.prefetch(order[places[next + NEAR]]);
        const std::uint32_t k = places[next];
        const std::int64_t i = order[k];
        const double y = loss.label(i), old = dual.alpha[i];
        const double m = y * (rows.dot(i, w) + rows.load(w[rows.d]));
        const auto [gap, range] = loss.optimality(i, old, m, dual.C);
        epoch.gap += gap;
        stays[k] = !dual.safe(range, m);
        if (!stays[k]) continue;
        const double slope = m > range.high ? m - range.high : m < range.low ? m - range.low : 0.0;
        epoch.steepest = std::max(epoch.steepest, slope);
        epoch.flattest = std::min(epoch.flattest, slope);
        if (slope == 0.0) continue;
        const double now = loss.step(i, old, slope, m, dual.q[i], dual.C);
        const double change = (now - old) * y;
        if (change == 0.0) continue;
        dual.alpha[i] = now;
        rows.axpy(i, change, w);
        rows.store(w[rows.d], rows.load(w[rows.d]) + change * dual.unit);
    }
    return epoch;
}

// One epoch in a new random order, of runs of `run` rows. With several threads the epoch depends on timing, and w is
// only close to sum_i alpha_i y_i x_i.
// requires: rows in `order` once each; alpha within its limits; w belongs to alpha.
// ensures: the rows that stay come first in `order`, in the order that they had; what follows them is left over.
template <class Rows, class Loss>
Epoch descend(const Rows& rows, const Dual<Loss>& dual, View<std::int32_t> order, View<double> w, std::size_t run,
              std::uint64_t seed, int threads) {
    const std::vector<std::uint32_t> places = permutation(order.size(), run, seed);
    std::vector<std::uint8_t> stays(order.size());
    Epoch all;
    Interrupt interrupt;
    if (threads <= 1) {
        all = visit(Own(rows), dual, order, places, stays, w.data(), interrupt);
    } else {
        std::vector<Epoch> seen(threads);
        const auto begin = [&](std::int64_t p) { return std::ssize(places) * p / threads; };
        for_equal_tasks(
            threads, threads,
            [&](std::int64_t p) {
                const auto mine = View<const std::uint32_t>(places).part(begin(p), begin(p + 1) - begin(p));
                seen[p] = visit(Shared(rows), dual, order, mine, stays, w.data(), interrupt);
            },
            interrupt);
        for (const Epoch& part : seen) {
            all.gap += part.gap;
            all.steepest = std::max(all.steepest, part.steepest);
            all.flattest = std::min(all.flattest, part.flattest);
        }
    }
    interrupt.rethrow();
    std::int64_t next = 0;
    for (std::int64_t k = 0; k < order.size(); ++k)
        if (stays[k]) order[next++] = order[k];
    all.active = next;
    return all;
}

}  // namespace cutsvm
