// The planes of the reduced problem (core/reduced.hpp) sorted by shard, the settings and the result of the method.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/cholesky.hpp"

namespace cutsvm {

// The constants of the method; cutsvm/qp/settings.py has their meanings and values.
struct InteriorPointSettings {
    int max_steps = 0;
    double fraction_to_boundary = 0.0, min_centrality = 0.0, centrality_decrease = 0.0, backtracking = 0.0;
    int max_backtracks = 0;
    double min_step_length = 0.0, max_mu_ratio = 0.0, recentering_mu_ratio = 0.0, stalled_step_length = 0.0;
    double rounding_error = 0.0, compensated_rounding_error = 0.0, regularization = 0.0;
    int max_projections = 0;
    double min_initial_weight = 0.0, initial_slack = 0.0, min_initial_slack = 0.0;
};

// Planes as the caller holds them, in any order.
struct PlanesView {
    const double* slopes;  // one row (a_k, c_k) per plane, `stride` apart
    std::size_t stride, features, free;
    std::span<const double> offsets;
    std::span<const std::int64_t> shard;
    const double* gram;  // a_k.a_l, rows `gram_stride` apart; or null
    std::size_t gram_stride;
    double intercept_bound = INFINITY;  // |b_j| <= intercept_bound; used if free > 1
};

struct ReducedResult {
    double lower, value, risk;
    int steps;
};

// The planes sorted by shard; shards without planes are left out.
struct SortedPlanes {
    const PlanesView& given;
    std::size_t m, shards = 0;
    std::vector<std::size_t> order, starts;      // starts: one more than shards
    std::vector<std::size_t> active_intercepts;  // those with a nonzero slope in some plane; the others stay 0
    std::size_t free = 0, width = 0;             // their number; the length of a row of c, padded with zeros
    bool boxed = false;                          // whether |b_j| <= intercept_bound is a constraint
    std::vector<double> o, c;

    explicit SortedPlanes(const PlanesView& planes) : given(planes), m(planes.offsets.size()), order(m), o(m) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (!std::is_sorted(given.shard.begin(), given.shard.end()))
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t k, std::size_t l) { return given.shard[k] < given.shard[l]; });
        std::vector<bool> active(given.free, false);
        for (std::size_t i = 0; i < m; ++i) {
            if (i == 0 || given.shard[order[i]] != given.shard[order[i - 1]]) starts.push_back(i);
            o[i] = given.offsets[order[i]];
            for (std::size_t j = 0; j < given.free; ++j)
                if (slope(i)[given.features + j] != 0.0) active[j] = true;
        }
        shards = starts.size();
        starts.push_back(m);
        for (std::size_t j = 0; j < given.free; ++j)
            if (active[j]) active_intercepts.push_back(j);
        free = active_intercepts.size();
        boxed = given.free > 1 && free > 0;
        width = boxed ? padded(free) : free;
        c.resize(m * width);
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < free; ++j) c[i * width + j] = slope(i)[given.features + active_intercepts[j]];
    }

    const double* slope(std::size_t i) const { return given.slopes + order[i] * given.stride; }
    const double* intercept_slopes(std::size_t i) const { return c.data() + i * width; }

    // out += c b
    void add_intercepts(const double* b, double* out) const {
        if (!boxed) {
            if (free > 0) add_multiple(b[0], c.data(), out, m);
            return;
        }
        for (std::size_t i = 0; i < m; ++i) out[i] += dot(intercept_slopes(i), b, free);
    }

    // out = c'x
    void intercept_sums(const double* x, double* out) const {
        if (!boxed) {
            if (free > 0) out[0] = dot(x, c.data(), m);
            return;
        }
        std::fill(out, out + width, 0.0);
        add_rows(x, [&](std::size_t i) { return intercept_slopes(i); }, 0, m, out, width);
    }

    // term(i), summed over the planes i of shard p.
    template <class Term>
    double sum(std::size_t p, const Term& term) const {
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) total += term(i);
        return total;
    }

    // max(0, maximum over the planes of shard p)
    double shard_risk(std::size_t p, const double* plane_values) const {
        double risk = 0.0;
#pragma omp simd reduction(max : risk)
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) risk = std::max(risk, plane_values[i]);
        return risk;
    }

    // combined = A'x, block by block: a slope may be larger than the cache.
    void combine(const double* x, std::span<double> combined) const {
        constexpr std::size_t WIDTH = 1024;
        std::fill(combined.begin(), combined.end(), 0.0);
        for (std::size_t j = 0; j < combined.size(); j += WIDTH) {
            const auto row = [&](std::size_t i) { return slope(i) + j; };
            add_rows(x, row, 0, m, combined.data() + j, std::min(WIDTH, combined.size() - j));
        }
    }
};

// Increases the diagonal from row `first` on by this fraction per row of H; `added` gets what was added.
// requires: first <= H.n, regularization >= 0.
inline void regularize_diagonal(Symmetric& H, std::size_t first, double regularization, std::vector<double>& added) {
    for (std::size_t j = first; j < H.n; ++j) {
        double& at = H.row(j)[j];
        added[j - first] = at > 0.0 ? regularization * static_cast<double>(H.n) * at : 1.0;
        at += added[j - first];
    }
}

}  // namespace cutsvm
