// One-vs-one voting: machine p decides between the classes low[p] < high[p], for the latter where its score is above 0.
//
//   decision_k = votes_k + c / (3 (|c| + 1)),    c = the sum of the scores for class k, those against it negative
//
// The second part is below 1/3: it only tells apart classes with as many votes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/machines.hpp"
#include "core/parallel.hpp"

namespace cutsvm {

struct ClassPairs {
    std::span<const std::int32_t> low, high;
};

// scores[p * step], decisions and trust: one number per class. Classes that no pair names get minus infinity.
inline void decide(const ClassPairs& pairs, const double* scores, std::int64_t step, std::span<double> decisions,
                   std::span<double> trust) {
    std::fill(decisions.begin(), decisions.end(), -std::numeric_limits<double>::infinity());
    std::fill(trust.begin(), trust.end(), 0.0);
    for (std::size_t p = 0; p < pairs.low.size(); ++p) {
        decisions[static_cast<std::size_t>(pairs.low[p])] = 0.0;
        decisions[static_cast<std::size_t>(pairs.high[p])] = 0.0;
    }
    for (std::size_t p = 0; p < pairs.low.size(); ++p) {
        const auto low = static_cast<std::size_t>(pairs.low[p]), high = static_cast<std::size_t>(pairs.high[p]);
        const double score = scores[static_cast<std::int64_t>(p) * step];
        decisions[score > 0.0 ? high : low] += 1.0;
        trust[high] += score;
        trust[low] -= score;
    }
    for (std::size_t k = 0; k < decisions.size(); ++k) decisions[k] += trust[k] / (3.0 * (std::abs(trust[k]) + 1.0));
}

// The class with the largest decision, the first of several.
inline std::int64_t winner(std::span<const double> decisions) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < decisions.size(); ++k)
        if (decisions[k] > decisions[best]) best = k;
    return static_cast<std::int64_t>(best);
}

// How many rows the machines' vote puts into their class, for each version.
template <std::size_t W>
std::array<std::int64_t, W> count_hits(const Gram& gram, const Machines& machines, const ClassPairs& pairs,
                                       std::span<const std::int32_t> rows, std::span<const std::int32_t> labels,
                                       std::size_t classes, int threads) {
    const auto n = static_cast<std::int64_t>(rows.size()), tiles = (n + TILE - 1) / TILE;
    const std::size_t width = machines.count() * W;
    std::vector<std::array<std::int64_t, W>> hits(static_cast<std::size_t>(tiles));
    struct Own {
        std::vector<double> scores, decisions, trust;
    };
    const auto make = [&] {
        const auto zeros = [](std::size_t size) { return std::vector<double>(size); };
        return Own{zeros(static_cast<std::size_t>(TILE) * width), zeros(classes), zeros(classes)};
    };
    for_tasks_with(tiles, threads, make, [&](std::int64_t number, Own& own) {
        const std::int64_t begin = number * TILE;
        const auto first = static_cast<std::size_t>(begin);
        const auto tile = static_cast<std::size_t>(std::min(TILE, n - begin));
        score_tile<W>(gram, machines, rows.subspan(first, tile), own.scores.data());
        for (std::size_t i = 0; i < tile; ++i)
            for (std::size_t c = 0; c < W; ++c) {
                const double* scores = own.scores.data() + i * width + c;
                decide(pairs, scores, static_cast<std::int64_t>(W), own.decisions, own.trust);
                hits[static_cast<std::size_t>(number)][c] += winner(own.decisions) == labels[first + i];
            }
    });
    std::array<std::int64_t, W> total{};
    for (const auto& of_tile : hits)
        for (std::size_t c = 0; c < W; ++c) total[c] += of_tile[c];
    return total;
}

}  // namespace cutsvm
