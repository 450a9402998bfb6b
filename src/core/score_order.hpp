// The order of scores, smallest first; equal scores by their place. The same for any number of threads.
//
// Long lists: three rounds of counting (radix sort) on the upper 32 bits of each score, then the short runs that share
// them are sorted by the whole score. That takes a quarter of the time of std::sort, and linear time; the standard
// library has no such sort, and those that have are made for keys alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"

namespace cutsvm {

class ScoreOrder {
  public:
    // requires: finite scores, fewer than 2^31.
    const std::vector<std::int32_t>& operator()(std::span<const double> f, int threads) {
        const std::size_t n = f.size();
        order_.resize(n);
        if (n < SHORT) {
            for (std::size_t i = 0; i < n; ++i) order_[i] = static_cast<std::int32_t>(i);
            sort_run(f, 0, n);
            return order_;
        }
        keys_.resize(n);
        spare_.resize(n);
        for_blocks(static_cast<std::int64_t>(n), threads, [&](std::int64_t begin, std::int64_t end) {
            for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
                keys_[i] = {upper_bits(f[i]), static_cast<std::int32_t>(i)};
        });
        for (unsigned shift = 0; shift < 32; shift += DIGIT) round(shift, threads);
        for (std::size_t k = 0; k < n; ++k) order_[k] = keys_[k].row;
        for (std::size_t begin = 0, end; begin < n; begin = end) {
            for (end = begin + 1; end < n && keys_[end].bits == keys_[begin].bits;) ++end;
            if (end - begin > 1) sort_run(f, begin, end);
        }
        return order_;
    }

  private:
    struct Key {
        std::uint32_t bits;
        std::int32_t row;
    };
    static constexpr unsigned DIGIT = 11;  // bits a round
    static constexpr std::size_t VALUES = std::size_t{1} << DIGIT;
    static constexpr std::size_t SHORT = 2048;

    // Unsigned numbers in the order of the scores; -0 is 0.
    static std::uint32_t upper_bits(double score) {
        const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);
        return static_cast<std::uint32_t>((bits >> 63 ? ~bits : bits | std::uint64_t{1} << 63) >> 32);
    }

    void sort_run(std::span<const double> f, std::size_t begin, std::size_t end) {
        const auto before = [&](std::int32_t a, std::int32_t b) {
            const double left = f[static_cast<std::size_t>(a)], right = f[static_cast<std::size_t>(b)];
            return left < right || (left == right && a < b);
        };
        const auto at = [&](std::size_t k) { return order_.begin() + static_cast<std::ptrdiff_t>(k); };
        if (!std::is_sorted(at(begin), at(end), before)) std::sort(at(begin), at(end), before);
    }

    // Puts the keys in the order of one digit; those with the same stay in the order that they have.
    void round(unsigned shift, int threads) {
        const std::size_t n = keys_.size(), pieces = static_cast<std::size_t>(std::max(1, threads));
        const auto edge = [&](std::size_t t) { return n * t / pieces; };
        const auto digit = [&](const Key& key) { return key.bits >> shift & (VALUES - 1); };
        places_.assign(pieces, {});
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (std::size_t t = 0; t < pieces; ++t)
            for (std::size_t k = edge(t); k < edge(t + 1); ++k) ++places_[t][digit(keys_[k])];
        std::uint32_t next = 0;
        for (std::size_t value = 0; value < VALUES; ++value)
            for (std::size_t t = 0; t < pieces; ++t) {
                const std::uint32_t many = places_[t][value];
                places_[t][value] = next;
                next += many;
            }
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (std::size_t t = 0; t < pieces; ++t)
            for (std::size_t k = edge(t); k < edge(t + 1); ++k) spare_[places_[t][digit(keys_[k])]++] = keys_[k];
        keys_.swap(spare_);
    }

    std::vector<std::int32_t> order_;
    std::vector<Key> keys_, spare_;
    std::vector<std::array<std::uint32_t, VALUES>> places_;  // by piece: how many of each digit, then where they go
};

}  // namespace cutsvm
