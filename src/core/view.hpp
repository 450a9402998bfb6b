// Contiguous memory indexed by std::int64_t, as rows are: std::span with signed sizes.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace cutsvm {

// requires of all members: places within 0..size().
template <class T>
class View {
  public:
    constexpr View() = default;
    constexpr View(T* data, std::int64_t size) : data_(data), size_(size) {}
    template <std::ranges::contiguous_range Range>
        requires(!std::same_as<std::remove_cvref_t<Range>, View> &&
                 std::convertible_to<std::remove_reference_t<std::ranges::range_reference_t<Range>> (*)[], T (*)[]>)
    constexpr View(Range&& range) : data_(std::ranges::data(range)), size_(std::ranges::ssize(range)) {}

    constexpr T& operator[](std::int64_t i) const { return data_[i]; }
    constexpr T* data() const { return data_; }
    constexpr T* begin() const { return data_; }
    constexpr T* end() const { return data_ + size_; }
    constexpr T& front() const { return data_[0]; }
    constexpr T& back() const { return data_[size_ - 1]; }
    constexpr std::int64_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    constexpr View part(std::int64_t first, std::int64_t count) const { return {data_ + first, count}; }

  private:
    T* data_ = nullptr;
    std::int64_t size_ = 0;
};

template <std::ranges::contiguous_range Range>
View(Range&&) -> View<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

}  // namespace cutsvm

template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<cutsvm::View<T>> = true;
