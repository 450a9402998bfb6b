// The planes of the reduced problem (core/reduced.hpp) side by side by shard, and what its parts share.
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

// The constants of the method; reduced.py says what each is for, and has their values.
struct ReducedRules {
    int max_steps;
    double to_the_wall, lag, sink, shorter;
    int times;
    double too_short, less, back, stuck, round_off, floor, headroom, least_room, fine, guard;
    int polish;
};

// Planes as the caller holds them, in any order.
struct PlanesView {
    const double* slopes;  // one row (a_k, c_k) per plane, `stride` apart
    std::size_t stride, features, free;
    std::span<const double> offsets;
    std::span<const std::int64_t> shard;
    const double* gram;  // a_k.a_l, rows `gram_stride` apart; or null
    std::size_t gram_stride;
    double radius = INFINITY;  // |b_j| <= radius; heeded if free > 1
};

struct ReducedResult {
    double lower, value, risk;
    int steps;
};

// The planes side by side by shard; shards without planes say nothing.
struct SortedPlanes {
    const PlanesView& given;
    std::size_t m, shards = 0;
    std::vector<std::size_t> order, starts;  // starts: one more than shards
    std::vector<std::size_t> leaning;        // the free coordinates that planes know; the others stay 0
    std::size_t free = 0, width = 0;         // how many those are; the length of a row of c, zeros at its end
    bool boxed = false;                      // whether they keep to the radius
    std::vector<double> o, c;

    explicit SortedPlanes(const PlanesView& planes) : given(planes), m(planes.offsets.size()), order(m), o(m) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (!std::is_sorted(given.shard.begin(), given.shard.end()))
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t k, std::size_t l) { return given.shard[k] < given.shard[l]; });
        std::vector<bool> known(given.free, false);
        for (std::size_t i = 0; i < m; ++i) {
            if (i == 0 || given.shard[order[i]] != given.shard[order[i - 1]]) starts.push_back(i);
            o[i] = given.offsets[order[i]];
            for (std::size_t j = 0; j < given.free; ++j)
                if (slope(i)[given.features + j] != 0.0) known[j] = true;
        }
        shards = starts.size();
        starts.push_back(m);
        for (std::size_t j = 0; j < given.free; ++j)
            if (known[j]) leaning.push_back(j);
        free = leaning.size();
        boxed = given.free > 1 && free > 0;
        width = boxed ? padded(free) : free;
        c.resize(m * width);
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < free; ++j) c[i * width + j] = slope(i)[given.features + leaning[j]];
    }

    const double* slope(std::size_t i) const { return given.slopes + order[i] * given.stride; }
    const double* lean(std::size_t i) const { return c.data() + i * width; }

    // out += c b
    void add_leaning(const double* b, double* out) const {
        if (!boxed) {
            if (free > 0) add_multiple(b[0], c.data(), out, m);
            return;
        }
        for (std::size_t i = 0; i < m; ++i) out[i] += dot(lean(i), b, free);
    }

    // out = c'x
    void weigh(const double* x, double* out) const {
        if (!boxed) {
            if (free > 0) out[0] = dot(x, c.data(), m);
            return;
        }
        std::fill(out, out + width, 0.0);
        add_rows(x, [&](std::size_t i) { return lean(i); }, 0, m, out, width);
    }

    // term(i), summed over the planes i of shard p.
    template <class Term>
    double sum(std::size_t p, const Term& term) const {
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) total += term(i);
        return total;
    }

    // What the planes say of shard p's risk.
    double top(std::size_t p, const double* heights) const {
        double top = 0.0;
#pragma omp simd reduction(max : top)
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) top = std::max(top, heights[i]);
        return top;
    }

    // pull = A'x, from the slopes themselves. Block by block: slopes may be far wider than a cache.
    void combine(const double* x, std::span<double> pull) const {
        constexpr std::size_t WIDTH = 1024;
        std::fill(pull.begin(), pull.end(), 0.0);
        for (std::size_t j = 0; j < pull.size(); j += WIDTH) {
            const auto row = [&](std::size_t i) { return slope(i) + j; };
            add_rows(x, row, 0, m, pull.data() + j, std::min(WIDTH, pull.size() - j));
        }
    }
};

// Makes the diagonal larger from row `first` on, where rows may depend on each other; `added` has one entry for each.
inline void guard_diagonal(Symmetric& H, std::size_t first, double guard, std::vector<double>& added) {
    for (std::size_t j = first; j < H.n; ++j) {
        double& at = H.row(j)[j];
        added[j - first] = at > 0.0 ? guard * static_cast<double>(H.n) * at : 1.0;
        at += added[j - first];
    }
}

}  // namespace cutsvm
