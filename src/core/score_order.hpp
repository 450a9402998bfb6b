// Rows in the order of their scores, smallest first; equal scores stay in the order that they have. The same for any number of threads.
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
    bool operator<(const Ranked& other) const { return score < other.score; }
};

class ScoreOrder {
  public:
    // requires: finite scores, fewer than 2^31 rows.
    void operator()(LargeVector<Ranked>& rows, int threads) {
        const std::size_t n = rows.size();
        if (n < SHORT) {
            std::stable_sort(rows.begin(), rows.end());
            return;
        }
        spare_.resize(n);
        const std::int64_t pieces = std::max(1, threads);
        for (unsigned r = 0; r < ROUNDS; ++r) {
            // The pieces of several threads hold other rows in each round; one piece is counted once and for all.
            if (pieces > 1 || r == 0) count(rows, r, pieces > 1 ? r + 1 : ROUNDS, pieces);
            put(rows, r, pieces);
        }
        const auto at = [&](std::size_t k) { return rows.begin() + static_cast<std::ptrdiff_t>(k); };
        for (std::size_t begin = 0, end; begin < n; begin = end) {
            const std::uint32_t bits = upper_bits(rows[begin].score);
            for (end = begin + 1; end < n && upper_bits(rows[end].score) == bits;) ++end;
            if (end - begin > 1 && !std::is_sorted(at(begin), at(end))) std::stable_sort(at(begin), at(end));
        }
    }

  private:
    static constexpr unsigned DIGIT = 11, ROUNDS = 3;  // bits a round
    static constexpr std::size_t VALUES = std::size_t{1} << DIGIT;
    using Counts = std::array<std::array<std::uint32_t, VALUES>, ROUNDS>;
    static constexpr std::size_t SHORT = 512;

    // Unsigned numbers in the order of the scores; -0 is 0.
    static std::uint32_t upper_bits(double score) {
        const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);
        const std::uint64_t flips = (0 - (bits >> 63)) | std::uint64_t{1} << 63;  // all if negative, else the sign
        return static_cast<std::uint32_t>((bits ^ flips) >> 32);
    }

    static std::size_t digit(const Ranked& row, unsigned r) {
        return upper_bits(row.score) >> r * DIGIT & (VALUES - 1);
    }

    // How many rows of each piece have each digit, for some of the rounds.
    void count(const LargeVector<Ranked>& rows, unsigned first, unsigned last, std::int64_t pieces) {
        places_.assign(static_cast<std::size_t>(pieces), {});
        over_pieces(rows, pieces, [&](std::size_t t, std::size_t k) {
            for (unsigned r = first; r < last; ++r) ++places_[t][r][digit(rows[k], r)];
        });
    }

    // Puts the rows in the order of one digit; those with the same stay in the order that they have.
    void put(LargeVector<Ranked>& rows, unsigned r, std::int64_t pieces) {
        std::uint32_t next = 0;
        for (std::size_t value = 0; value < VALUES; ++value)
            for (auto& piece : places_) {
                const std::uint32_t many = piece[r][value];
                piece[r][value] = next;
                next += many;
            }
        over_pieces(rows, pieces, [&](std::size_t t, std::size_t k) {
            spare_[places_[t][r][digit(rows[k], r)]++] = rows[k];
        });
        rows.swap(spare_);
    }

    // Calls work(t, k) for all rows k of piece t, each piece on a thread of its own.
    template <class Work>
    static void over_pieces(const LargeVector<Ranked>& rows, std::int64_t pieces, const Work& work) {
        const auto n = static_cast<std::int64_t>(rows.size());
        const auto piece = [&](std::int64_t t) {
            for (std::int64_t k = n * t / pieces; k < n * (t + 1) / pieces; ++k)
                work(static_cast<std::size_t>(t), static_cast<std::size_t>(k));
        };
        if (pieces == 1) return piece(0);
#pragma omp parallel for schedule(static) num_threads(static_cast<int>(pieces))
        for (std::int64_t t = 0; t < pieces; ++t) piece(t);
    }

    LargeVector<Ranked> spare_;
    std::vector<Counts> places_;  // by piece and round: how many rows have each digit, then where they go
};

}  // namespace cutsvm
