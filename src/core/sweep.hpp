// The two sweeps over the data: scores of all rows, and sums of rows per shard.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "core/rows.hpp"

namespace cutsvm {

// out[i] = x_i . w + b.
// requires: w has d entries, out has n.
template <class Rows>
void scores(const Rows& rows, const double* w, double b, std::span<double> out, int threads) {
    for_blocks(rows.n, threads, [&](std::int64_t begin, std::int64_t end) {
        double* piece = out.data() + begin;
        rows.dots(begin, end, w, piece);
        for (std::int64_t i = 0; i < end - begin; ++i) piece[i] += b;
    });
}

// out[i] = (1 - k) from[i] + k to[i]; out may be one of the two.
inline void blend(std::span<const double> from, std::span<const double> to, double k, std::span<double> out,
                  int threads) {
    for_blocks(static_cast<std::int64_t>(out.size()), threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const auto s = static_cast<std::size_t>(i);
            out[s] = from[s] + k * (to[s] - from[s]);
        }
    });
}

// A piece of a shard, small enough that the pieces keep all threads busy.
struct Piece {
    std::int64_t shard, begin, end;
};

// Cuts every shard into the same number of pieces; how many depends on the shards alone.
inline std::vector<Piece> cut_shards(std::span<const std::int64_t> bounds) {
    constexpr std::int64_t PIECES = 16;
    const auto shards = static_cast<std::int64_t>(bounds.size()) - 1;
    const std::int64_t each = std::max<std::int64_t>(1, PIECES / shards);
    std::vector<Piece> pieces;
    for (std::int64_t p = 0; p < shards; ++p) {
        const std::int64_t first = bounds[static_cast<std::size_t>(p)];
        const std::int64_t size = bounds[static_cast<std::size_t>(p) + 1] - first;
        for (std::int64_t q = 0; q < each; ++q)
            pieces.push_back({p, first + size * q / each, first + size * (q + 1) / each});
    }
    return pieces;
}

// sums[p] += sum over the rows i of shard p of (fresh[i] - old[i]) (x_i, 1); then old = fresh.
// Only rows whose coefficient changed are read. The last column, for the constant feature, is there when
// width == d + 1. moved[p] += sum over shard p of |fresh[i] - old[i]|.
// requires: sums is P x width, row-major; bounds has P + 1 entries, from 0 to n, never falling.
// ensures: returns the number of rows read.
template <class Rows>
std::int64_t accumulate(const Rows& rows, std::span<double> old, std::span<const double> fresh,
                        std::span<const std::int64_t> bounds, double* sums, std::int64_t width,
                        std::span<double> moved, int threads) {
    const std::vector<Piece> pieces = cut_shards(bounds);
    const auto count = static_cast<std::int64_t>(pieces.size());
    const auto size = static_cast<std::size_t>(width);
    std::vector<double> partial(pieces.size() * size);
    std::vector<std::int64_t> read(pieces.size());
    std::vector<double> travel(pieces.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (std::int64_t q = 0; q < count; ++q) {
        const Piece piece = pieces[static_cast<std::size_t>(q)];
        double* out = partial.data() + static_cast<std::size_t>(q) * size;
        std::array<double, BLOCK> change;
        double total = 0.0, far = 0.0;
        std::int64_t changed = 0;
        for (std::int64_t from = piece.begin; from < piece.end; from += BLOCK) {
            const std::int64_t to = std::min(piece.end, from + BLOCK);
            for (std::int64_t i = from; i < to; ++i) {
                const auto s = static_cast<std::size_t>(i);
                const double delta = fresh[s] - old[s];
                change[static_cast<std::size_t>(i - from)] = delta;
                total += delta;
                far += std::abs(delta);
                changed += delta != 0.0;
                old[s] = fresh[s];
            }
            rows.add(from, to, change.data(), out);
        }
        if (width > rows.d) out[rows.d] += total;
        read[static_cast<std::size_t>(q)] = changed;
        travel[static_cast<std::size_t>(q)] = far;
    }
    std::int64_t all = 0;
    for (std::size_t q = 0; q < pieces.size(); ++q) {
        double* sum = sums + pieces[q].shard * width;
        const double* part = partial.data() + q * size;
        for (std::size_t j = 0; j < size; ++j) sum[j] += part[j];
        moved[static_cast<std::size_t>(pieces[q].shard)] += travel[q];
        all += read[q];
    }
    return all;
}

}  // namespace cutsvm
