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
#include <vector>

#include "core/machines.hpp"
#include "core/parallel.hpp"
#include "core/view.hpp"

namespace cutsvm {

struct ClassPairs {
    View<const std::int32_t> low, high;
};

// scores[p * step], decisions and trust: one number per class. Classes that no pair names get minus infinity.
// requires: classes of pairs below decisions.size() == trust.size().
inline void decide(const ClassPairs& pairs, const double* scores, std::int64_t step, View<double> decisions,
                   View<double> trust) {
    std::fill(decisions.begin(), decisions.end(), -std::numeric_limits<double>::infinity());
    std::fill(trust.begin(), trust.end(), 0.0);
    for (std::int64_t p = 0; p < pairs.low.size(); ++p) {
        decisions[pairs.low[p]] = 0.0;
        decisions[pairs.high[p]] = 0.0;
    }
    for (std::int64_t p = 0; p < pairs.low.size(); ++p) {
        const std::int32_t low = pairs.low[p], high = pairs.high[p];
        const double score = scores[p * step];
        decisions[score > 0.0 ? high : low] += 1.0;
        trust[high] += score;
        trust[low] -= score;
    }
    for (std::int64_t k = 0; k < decisions.size(); ++k) decisions[k] += trust[k] / (3.0 * (std::abs(trust[k]) + 1.0));
}

// The class with the largest decision, the first of several.
// requires: at least one class.
inline std::int64_t winner(View<const double> decisions) {
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < decisions.size(); ++k)
        if (decisions[k] > decisions[best]) best = k;
    return best;
}

// How many rows the machines' vote puts into their class, for each version.
// requires: rows and labels have one length; rows and columns within gram; one pair per machine.
template <std::size_t W>
std::array<std::int64_t, W> count_hits(const Gram& gram, const Machines& machines, const ClassPairs& pairs,
                                       View<const std::int32_t> rows, View<const std::int32_t> labels,
                                       std::int64_t classes, int threads) {
    const auto n = std::ssize(rows), tiles = (n + TILE - 1) / TILE;
    const std::int64_t width = machines.count() * static_cast<std::int64_t>(W);
    std::vector<std::array<std::int64_t, W>> hits(tiles);
    struct Own {
        std::vector<double> scores, decisions, trust;
    };
    const auto make = [&] {
        const auto zeros = [](std::int64_t size) { return std::vector<double>(size); };
        return Own{zeros(TILE * width), zeros(classes), zeros(classes)};
    };
    for_tasks_with(tiles, threads, make, [&](std::int64_t number, Own& own) {
        const std::int64_t begin = number * TILE;
        const std::int64_t tile = std::min(TILE, n - begin);
        score_tile<W>(gram, machines, rows.part(begin, tile), own.scores.data());
        for (std::int64_t i = 0; i < tile; ++i)
            for (std::size_t c = 0; c < W; ++c) {
                const double* scores = own.scores.data() + i * width + c;
                decide(pairs, scores, static_cast<std::int64_t>(W), own.decisions, own.trust);
                hits[number][c] += winner(own.decisions) == labels[begin + i];
            }
    });
    std::array<std::int64_t, W> total{};
    for (const auto& of_tile : hits)
        for (std::size_t c = 0; c < W; ++c) total[c] += of_tile[c];
    return total;
}

}  // namespace cutsvm
