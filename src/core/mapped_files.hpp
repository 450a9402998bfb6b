// Files mapped for reading whose loss does not end the process.
//
// A page of a mapped file that is beyond the end of the file, because another process has truncated it since, or that
// the disk cannot read, raises SIGBUS in whichever thread touches it: a worker of the kernels, NumPy, a checksum. By
// default that kills the process. Here the handler of SIGBUS puts anonymous pages of zeros in the place of the faulting
// page and of all pages behind it in the mapping, notes the loss in the mapping's group, and returns; the load is then
// repeated and finds a zero. Whoever uses the mapping asks `lost()` after each block, and raises.
//
// Why this and not the alternatives: jumping out of the handler would leave OpenMP's threads and the interpreter's lock
// in an undefined state; copying blocks with pread() would double the memory traffic of every pass and count as private
// memory; a look at the file's size before each block only narrows the window. The handler calls nothing but mmap(),
// sigaction() and raise(), touches only atomics, and takes no lock. Faults elsewhere go to the handler that was there.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace cutsvm {

// What the mappings of one group (a store) share.
struct MappedGroup {
    std::atomic<bool> lost{false};
};

namespace mapped {

// A node of the list that the handler searches. Nodes are never freed, only used again.
struct Range {
    std::atomic<std::uintptr_t> begin{0}, end{0};  // whole pages; begin == end: free
    std::atomic<std::atomic<bool>*> lost{nullptr};
    Range* next = nullptr;
};

inline std::atomic<Range*> ranges{nullptr};
inline std::mutex changing;  // of whoever changes the list or the handler; never of the handler itself
inline struct sigaction before_ours;
inline std::uintptr_t page_size = 4096;

inline void on_bus_error(int signal, siginfo_t* info, void*) {
    const int saved = errno;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const bool is_fault = info->si_code > 0;  // else somebody has sent the signal
    for (Range* range = ranges.load(std::memory_order_acquire); is_fault && range != nullptr; range = range->next) {
        const std::uintptr_t end = range->end.load();
        if (address < range->begin.load() || address >= end) continue;
        const std::uintptr_t page = address & ~(page_size - 1);
        void* zeros = mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        if (zeros == MAP_FAILED) break;
        range->lost.load()->store(true);
        errno = saved;
        return;
    }
    // Not ours: the handler before is put back. A fault happens again on return, a signal that was sent is sent again.
    sigaction(signal, &before_ours, nullptr);
    if (!is_fault) raise(signal);
    errno = saved;
}

// requires: `changing` is held
// ensures: ours is the handler; it may have been replaced since the last call (faulthandler.enable() does)
inline void ensure_handler() {
    struct sigaction now{};
    sigaction(SIGBUS, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_bus_error) return;
    page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    before_ours = now;
    struct sigaction ours{};
    ours.sa_sigaction = &on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace mapped

// The first `size` bytes of an open file, to be read only.
class MappedFile {
  public:
    // requires: size > 0
    // throws: std::system_error; ERANGE if the file is shorter by now
    MappedFile(int descriptor, std::size_t size, std::shared_ptr<MappedGroup> group)
        : group_(std::move(group)), size_(size) {
        const std::lock_guard lock(mapped::changing);
        mapped::ensure_handler();
        struct stat status{};
        if (fstat(descriptor, &status) != 0) throw std::system_error(errno, std::generic_category());
        if (status.st_size < static_cast<off_t>(size)) throw std::system_error(ERANGE, std::generic_category());
        void* found = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (found == MAP_FAILED) throw std::system_error(errno, std::generic_category());
        data_ = static_cast<const std::uint8_t*>(found);
        range_ = free_range();
        const auto begin = reinterpret_cast<std::uintptr_t>(found);
        range_->lost.store(&group_->lost);
        range_->end.store((begin + size + mapped::page_size - 1) & ~(mapped::page_size - 1));
        range_->begin.store(begin);
    }

    ~MappedFile() {
        const std::lock_guard lock(mapped::changing);
        range_->begin.store(0);
        range_->end.store(0);
        munmap(const_cast<std::uint8_t*>(data_), size_);
    }

    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::uint8_t* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    static mapped::Range* free_range() {
        for (mapped::Range* range = mapped::ranges.load(); range != nullptr; range = range->next)
            if (range->end.load() == 0) return range;
        auto* fresh = new mapped::Range;
        fresh->next = mapped::ranges.load();
        mapped::ranges.store(fresh, std::memory_order_release);
        return fresh;
    }

    std::shared_ptr<MappedGroup> group_;
    const std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
    mapped::Range* range_ = nullptr;
};

}  // namespace cutsvm
