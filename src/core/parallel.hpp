// Parallel loops whose result does not depend on the number of threads.
//
// Rows are cut into blocks that are fixed by n alone. Each block is worked on by one thread and its partial
// sums are added up in the order of the blocks, so every sum is the same to the last bit for any thread count.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/interrupt.hpp"

namespace cutsvm {

inline constexpr std::int64_t BLOCK = 4096;

// Waking another thread takes as long as a light loop over this many blocks.
inline constexpr std::int64_t LIGHT = 16;

inline std::int64_t count_blocks(std::int64_t n) { return (n + BLOCK - 1) / BLOCK; }

// Calls work(begin, end) for every block of rows [begin, end); on one thread if there are no more than `few` blocks.
// requires: work does not throw and writes only to what belongs to its rows.
// throws: Interrupted, between blocks.
template <class Work>
void for_blocks(std::int64_t n, int threads, const Work& work, std::int64_t few = 1) {
    const std::int64_t blocks = count_blocks(n);
    if (blocks == 1) return work(0, n);  // without a team of threads, which takes longer to call than few rows
    Interrupt interrupt;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && blocks > few)
    for (std::int64_t b = 0; b < blocks; ++b)
        if (!interrupt.requested()) work(b * BLOCK, std::min(n, (b + 1) * BLOCK));
    interrupt.rethrow();
}

// Sum over the blocks of work(begin, end) -> std::array<double, K>, added up in the order of the blocks.
template <std::size_t K, class Work>
std::array<double, K> sum_blocks(std::int64_t n, int threads, const Work& work, std::int64_t few = 1) {
    const std::int64_t blocks = count_blocks(n);
    if (blocks == 1) return work(0, n);
    std::vector<std::array<double, K>> partial(static_cast<std::size_t>(blocks));
    Interrupt interrupt;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && blocks > few)
    for (std::int64_t b = 0; b < blocks; ++b)
        if (!interrupt.requested())
            partial[static_cast<std::size_t>(b)] = work(b * BLOCK, std::min(n, (b + 1) * BLOCK));
    interrupt.rethrow();
    std::array<double, K> total{};
    for (const auto& part : partial)
        for (std::size_t k = 0; k < K; ++k) total[k] += part[k];
    return total;
}

}  // namespace cutsvm
