// A team of threads: the one place that knows where threads come from.
//
// With OpenMP they are OpenMP's. Without it (_OPENMP is not defined: Apple's clang, say) they are threads of the standard
// library that wait for the next region. All else in core/ is the same either way, and so is every bit of every result:
// which thread does a task decides nothing.
#pragma once

#include <algorithm>

#ifdef _OPENMP
#include <omp.h>
#else
#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#endif

namespace cutsvm {

namespace team {

// What a thread is in the regions that it works in.
struct Place {
    int number = 0;       // in the team of the innermost one
    int depth = 0;        // how many regions there are
    bool shared = false;  // whether one of them has a team of several threads
};
inline constinit thread_local Place place;

// While it lives, this thread is member `number` of the team of a region.
class Member {
  public:
    Member(int number, int size) : before_(place) { place = {number, before_.depth + 1, before_.shared || size > 1}; }
    ~Member() { place = before_; }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

  private:
    Place before_;
};

#ifndef _OPENMP
// Threads that sleep until there is work. They are never ended: at the end of the process the system does that.
class Pool {
  public:
    static Pool& shared() {
        static Pool* const pool = new Pool;
        return *pool;
    }

    // Calls work(0) here and work(1), .., work(threads - 1) on other threads; false, with no call, if they are busy with
    // a region of another thread, or cannot be started.
    // requires: work does not throw.
    bool run(int threads, const std::function<void(int)>& work) {
        const std::unique_lock region(region_, std::try_to_lock);
        if (!region.owns_lock()) return false;
        {
            const std::lock_guard lock(mutex_);
            try {
                while (static_cast<int>(workers_.size()) < threads - 1) {
                    const int own = static_cast<int>(workers_.size()) + 1;
                    workers_.emplace_back([this, own, round = round_] { serve(own, round); });
                }
            } catch (const std::system_error&) {
                return false;
            }
            work_ = &work, wanted_ = threads - 1, left_ = threads - 1;
            ++round_;
        }
        begin_.notify_all();
        work(0);
        std::unique_lock lock(mutex_);
        end_.wait(lock, [&] { return left_ == 0; });
        return true;
    }

  private:
    void serve(int own, long seen) {
        std::unique_lock lock(mutex_);
        while (true) {
            begin_.wait(lock, [&] { return round_ != seen; });
            seen = round_;
            if (own > wanted_) continue;
            const std::function<void(int)>& work = *work_;
            lock.unlock();
            work(own);
            lock.lock();
            if (--left_ == 0) end_.notify_one();
        }
    }

    std::mutex region_, mutex_;
    std::condition_variable begin_, end_;
    std::vector<std::thread> workers_;
    const std::function<void(int)>* work_ = nullptr;
    int wanted_ = 0, left_ = 0;
    long round_ = 0;
};
#endif

}  // namespace team

// The number of this thread in its team: 0 outside of all regions, and for the thread that began it.
inline int thread_number() { return team::place.number; }

// Whether this thread works in a parallel region.
inline bool in_region() { return team::place.depth > 0; }

// Threads that a region may well have.
inline int max_threads() {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

// A parallel region: calls work(number, size of the team) once for each thread of a team of up to `threads`, from this
// thread with the number 0. Within a region of several threads the team is this thread alone.
// requires: work does not throw.
template <class Work>
void run_team(int threads, const Work& work) {
    if (threads > 1 && !team::place.shared) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
        {
            const int number = omp_get_thread_num(), size = omp_get_num_threads();
            const team::Member member(number, size);
            work(number, size);
        }
        return;
#else
        const auto own = [&](int number) {
            const team::Member member(number, threads);
            work(number, threads);
        };
        if (team::Pool::shared().run(threads, own)) return;
#endif
    }
    const team::Member member(0, 1);
    work(0, 1);
}

}  // namespace cutsvm
