// A long loop that can be ended from outside, as by Ctrl-C.
//
// The loops of core/parallel.hpp ask it before each task and throw after the parallel region; tasks that take long ask it,
// too, and return early:
//
//   Interrupt interrupt;
//   for_tasks(count, threads, [&](std::int64_t task) { for (...) if (interrupt.requested()) break; }, interrupt);
//
// The kernels know no Python: the bindings install a hook that says whether work is to end. A loop may also have a limit
// in seconds, after which it ends without an exception.
#pragma once

#include <omp.h>

#include <atomic>
#include <chrono>
#include <limits>

namespace cutsvm {

// Thrown by a loop that was ended; what it was to write is incomplete.
struct Interrupted {};

// Whether work is to end. It may have to wait for a lock, so it is not called often.
inline std::atomic<bool (*)()> interrupt_hook{nullptr};

// One for each loop, shared by its threads. A loop within a parallel region of another one never asks: nothing may be
// thrown out of such a region, and the outer loop asks anyway.
class Interrupt {
  public:
    explicit Interrupt(double seconds = std::numeric_limits<double>::infinity()) : seconds_(seconds) {}

    // True once the loop is to end. Only the thread that began the loop asks, a few times a second: signals are its own.
    bool requested() {
        if (requested_.load(std::memory_order_relaxed)) return true;
        if (!asks_ || omp_get_thread_num() != 0) return false;
        const auto now = Clock::now();
        if (now - asked_ < PERIOD) return false;
        asked_ = now;
        const auto hook = interrupt_hook.load(std::memory_order_relaxed);
        interrupted_ = hook != nullptr && hook();
        const bool late = std::chrono::duration<double>(now - began_).count() > seconds_;
        if (interrupted_ || late) requested_.store(true, std::memory_order_relaxed);
        return interrupted_ || late;
    }

    // After the loop.
    void rethrow() const {
        if (interrupted_) throw Interrupted{};
    }

    // In a loop of one thread.
    void check() {
        requested();
        rethrow();
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr auto PERIOD = std::chrono::milliseconds(50);
    bool asks_ = omp_get_level() == 0;
    double seconds_;
    Clock::time_point began_ = Clock::now(), asked_ = began_;
    bool interrupted_ = false;  // written by the thread that asks, read after the loop
    std::atomic<bool> requested_{false};
};

}  // namespace cutsvm
