// Rows in the order of their scores, smallest first; equal scores by row. The same for any number of threads.
//
// Long lists: three rounds of counting (radix sort) on the upper 32 bits of each score, then the short runs that share
// them are sorted by the whole score. That takes linear time, a third of that of std::sort; the standard library has no
// such sort, and the libraries that have one sort keys alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/large_pages.hpp"
#include "core/parallel.hpp"

namespace cutsvm {

// A row in its place among the others.
struct Ranked {
    double score;
    std::int32_t row, level;
    bool operator<(const Ranked& other) const {
        return score < other.score || (score == other.score && row < other.row);
    }
};

class ScoreOrder {
  public:
    // requires: finite scores, fewer than 2^31 rows, in the order of `row`.
    void operator()(LargeVector<Ranked>& rows, int threads) {
        const std::size_t n = rows.size();
        if (n < SHORT) {
            std::sort(rows.begin(), rows.end());
            return;
        }
        spare_.resize(n);
        for (unsigned shift = 0; shift < 32; shift += DIGIT) round(rows, shift, threads);
        const auto at = [&](std::size_t k) { return rows.begin() + static_cast<std::ptrdiff_t>(k); };
        for (std::size_t begin = 0, end; begin < n; begin = end) {
            const std::uint32_t bits = upper_bits(rows[begin].score);
            for (end = begin + 1; end < n && upper_bits(rows[end].score) == bits;) ++end;
            if (end - begin > 1 && !std::is_sorted(at(begin), at(end))) std::sort(at(begin), at(end));
        }
    }

  private:
    static constexpr unsigned DIGIT = 11;  // bits a round
    static constexpr std::size_t VALUES = std::size_t{1} << DIGIT;
    static constexpr std::size_t SHORT = 2048;

    // Unsigned numbers in the order of the scores; -0 is 0.
    static std::uint32_t upper_bits(double score) {
        const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);
        const std::uint64_t flips = (0 - (bits >> 63)) | std::uint64_t{1} << 63;  // all if negative, else the sign
        return static_cast<std::uint32_t>((bits ^ flips) >> 32);
    }

    // Puts the rows in the order of one digit; those with the same stay in the order that they have.
    void round(LargeVector<Ranked>& rows, unsigned shift, int threads) {
        const auto n = static_cast<std::int64_t>(rows.size()), pieces = static_cast<std::int64_t>(std::max(1, threads));
        const auto edge = [&](std::int64_t t) { return static_cast<std::size_t>(n * t / pieces); };
        const auto digit = [&](const Ranked& row) { return upper_bits(row.score) >> shift & (VALUES - 1); };
        places_.assign(static_cast<std::size_t>(pieces), {});
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (std::int64_t t = 0; t < pieces; ++t)
            for (std::size_t k = edge(t); k < edge(t + 1); ++k) ++places_[static_cast<std::size_t>(t)][digit(rows[k])];
        std::uint32_t next = 0;
        for (std::size_t value = 0; value < VALUES; ++value)
            for (auto& piece : places_) {
                const std::uint32_t many = piece[value];
                piece[value] = next;
                next += many;
            }
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (std::int64_t t = 0; t < pieces; ++t) {
            auto& place = places_[static_cast<std::size_t>(t)];
            for (std::size_t k = edge(t); k < edge(t + 1); ++k) spare_[place[digit(rows[k])]++] = rows[k];
        }
        rows.swap(spare_);
    }

    LargeVector<Ranked> spare_;
    std::vector<std::array<std::uint32_t, VALUES>> places_;  // by piece: how many of each digit, then where they go
};

}  // namespace cutsvm
