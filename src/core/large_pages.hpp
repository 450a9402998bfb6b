// Vectors whose memory is asked for in large pages, where the system has them: loops that jump about in many megabytes
// spend half of their time on finding small ones.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace cutsvm {

template <class T>
struct LargePages {
    using value_type = T;
    static constexpr std::size_t PAGE = std::size_t{1} << 21;
    static constexpr std::align_val_t LINE{64};  // of a cache, and a whole vector

    LargePages() = default;
    template <class U>
    LargePages(const LargePages<U>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < 2 * PAGE) return static_cast<T*>(::operator new(bytes, LINE));
        const std::size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
        void* memory = std::aligned_alloc(PAGE, whole);
        if (!memory) throw std::bad_alloc();
#ifdef __linux__
        madvise(memory, whole, MADV_HUGEPAGE);  // a wish: where it is not granted nothing changes
#endif
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t count) {
        if (count * sizeof(T) < 2 * PAGE)
            ::operator delete(memory, LINE);
        else
            std::free(memory);
    }
    // New elements are left as they are: whoever makes such a vector fills it.
    template <class U>
    void construct(U* place) {
        ::new (static_cast<void*>(place)) U;
    }
    template <class U, class... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) U(static_cast<Arguments&&>(arguments)...);
    }
    bool operator==(const LargePages&) const { return true; }
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace cutsvm
