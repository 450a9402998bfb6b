// Parallel loops whose result does not depend on the number of threads.
//
// Rows are cut into blocks that are fixed by n alone. Each block is worked on by one thread and its partial
// sums are added up in the order of the blocks, so every sum is the same to the last bit for any thread count.
//
// All parallel regions of the package are in this file. An exception that leaves one (std::bad_alloc, say) would end the
// process: here it is caught where it is thrown, and thrown again after the region.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "core/interrupt.hpp"

namespace cutsvm {

inline constexpr std::int64_t BLOCK = 4096;

// Waking another thread takes as long as a light loop over this many blocks.
inline constexpr std::int64_t LIGHT = 16;

inline std::int64_t count_blocks(std::int64_t n) { return (n + BLOCK - 1) / BLOCK; }

// The first exception of a parallel region.
class FirstException {
  public:
    // Calls work() unless a call before has failed.
    template <class Work>
    void guard(const Work& work) noexcept {
        if (failed_.load(std::memory_order_relaxed)) return;
        try {
            work();
        } catch (...) {
            if (!failed_.exchange(true)) first_ = std::current_exception();
        }
    }
    // After the region: throws what was caught.
    void rethrow() const {
        if (first_) std::rethrow_exception(first_);
    }

  private:
    std::atomic<bool> failed_ = false;
    std::exception_ptr first_;
};

// Calls work(task) for the tasks 0..count-1: in equal runs, one for each thread.
// requires: work writes only to what belongs to its task. What it throws is thrown again here.
// throws: Interrupted, between tasks; `interrupt`: one that long tasks ask, too.
template <class Work>
void for_equal_tasks(std::int64_t count, int threads, const Work& work, Interrupt& interrupt) {
    FirstException failure;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && count > 1)
    for (std::int64_t task = 0; task < count; ++task)
        if (!interrupt.requested()) failure.guard([&] { work(task); });
    failure.rethrow();
    interrupt.rethrow();
}
template <class Work>
void for_equal_tasks(std::int64_t count, int threads, const Work& work) {
    Interrupt interrupt;
    for_equal_tasks(count, threads, work, interrupt);
}

// The same for tasks of different length: each thread takes the next ones, `chunk` at a time.
template <class Work>
void for_tasks(std::int64_t count, int threads, const Work& work, Interrupt& interrupt, int chunk = 1) {
    FirstException failure;
#pragma omp parallel for schedule(dynamic, chunk) num_threads(threads) if (threads > 1 && count > 1)
    for (std::int64_t task = 0; task < count; ++task)
        if (!interrupt.requested()) failure.guard([&] { work(task); });
    failure.rethrow();
    interrupt.rethrow();
}
template <class Work>
void for_tasks(std::int64_t count, int threads, const Work& work, int chunk = 1) {
    Interrupt interrupt;
    for_tasks(count, threads, work, interrupt, chunk);
}

// The same with memory that a thread keeps from task to task: work(task, own) with own = make(), made with its first.
template <class Make, class Work>
void for_tasks_with(std::int64_t count, int threads, const Make& make, const Work& work, Interrupt& interrupt) {
    FirstException failure;
#pragma omp parallel num_threads(threads) if (threads > 1 && count > 1)
    {
        std::optional<decltype(make())> own;
#pragma omp for schedule(dynamic)
        for (std::int64_t task = 0; task < count; ++task) {
            if (interrupt.requested()) continue;
            failure.guard([&] {
                if (!own) own.emplace(make());
                work(task, *own);
            });
        }
    }
    failure.rethrow();
    interrupt.rethrow();
}
template <class Make, class Work>
void for_tasks_with(std::int64_t count, int threads, const Make& make, const Work& work) {
    Interrupt interrupt;
    for_tasks_with(count, threads, make, work, interrupt);
}

// Calls work(begin, end) for every block of rows [begin, end); on one thread if there are no more than `few` blocks.
// requires: work writes only to what belongs to its rows. What it throws is thrown again here.
template <class Work>
void for_blocks(std::int64_t n, int threads, const Work& work, std::int64_t few = 1) {
    const std::int64_t blocks = count_blocks(n);
    if (blocks == 1) return work(0, n);  // without a team of threads, which takes longer to call than few rows
    for_equal_tasks(blocks, blocks > few ? threads : 1,
                    [&](std::int64_t b) { work(b * BLOCK, std::min(n, (b + 1) * BLOCK)); });
}

// Sum over the blocks of work(begin, end) -> std::array<double, K>, added up in the order of the blocks.
template <std::size_t K, class Work>
std::array<double, K> sum_blocks(std::int64_t n, int threads, const Work& work, std::int64_t few = 1) {
    const std::int64_t blocks = count_blocks(n);
    if (blocks == 1) return work(0, n);
    std::vector<std::array<double, K>> partial(blocks);
    for_equal_tasks(blocks, blocks > few ? threads : 1,
                    [&](std::int64_t b) { partial[b] = work(b * BLOCK, std::min(n, (b + 1) * BLOCK)); });
    std::array<double, K> total{};
    for (const auto& part : partial)
        for (std::size_t k = 0; k < K; ++k) total[k] += part[k];
    return total;
}

}  // namespace cutsvm
