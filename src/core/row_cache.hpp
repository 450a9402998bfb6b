// Rows of kernel values in memory that does not hold all of them, and what is made of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/view.hpp"

namespace cutsvm {

// K[i, j] = values[places[i] * stride + columns[j]] for all i, j, where that is known for i, j < known; it is symmetric, and
// only one half of it is read: these values are far apart in memory.
// requires: K has places.size() x columns.size() entries, as many of both; each place has values for all columns.
template <class V>
void gather_values(const V* values, std::int64_t stride, View<const std::int64_t> places,
                   View<const std::int64_t> columns, std::int64_t known, V* K, int threads) {
    const std::int64_t q = columns.size();
    const bool few = (q - known) * q <= LIGHT * BLOCK;  // too few for another thread
    for_tasks(
        q - known, few ? 1 : threads,
        [&](std::int64_t task) {
            const std::int64_t i = q - 1 - task;  // the longest first
            const V* from = values + places[i] * stride;
            for (std::int64_t j = 0; j <= i; ++j) K[i * q + j] = K[j * q + i] = from[columns[j]];
        },
        16);
}

// Terms of a score that are added up before these sums are: a sum of m terms is then off by at most
// (SUM_ROWS + m / SUM_ROWS) u of their magnitude, u the rounding unit, and not by m u.
inline constexpr std::int64_t SUM_ROWS = 64;

// f[j] += sum_i change[i] values[places[i] * stride + j]
// requires: places and change have as many entries; each place has f.size() values.
// ensures: the same bits for any number of threads.
template <class V>
void add_rows(const V* values, std::int64_t stride, View<const std::int64_t> places, View<const double> change,
              View<double> f, int threads) {
    constexpr std::int64_t RUN = 2048;  // entries of f: they stay in the first cache
    const std::int64_t runs = (f.size() + RUN - 1) / RUN;
    for_equal_tasks(runs, threads, [&](std::int64_t run) {
        const std::int64_t begin = run * RUN, count = std::min(RUN, f.size() - begin);
        double* const sums = f.data() + begin;
        std::int64_t i = 0;
        for (; i + 4 <= places.size(); i += 4) {
            const V *a = values + places[i] * stride + begin, *b = values + places[i + 1] * stride + begin;
            const V *c = values + places[i + 2] * stride + begin, *d = values + places[i + 3] * stride + begin;
            const double p = change[i], r = change[i + 1], t = change[i + 2], u = change[i + 3];
#pragma omp simd
            for (std::int64_t j = 0; j < count; ++j)
                sums[j] += (p * static_cast<double>(a[j]) + r * static_cast<double>(b[j])) +
                           (t * static_cast<double>(c[j]) + u * static_cast<double>(d[j]));
        }
        for (; i < places.size(); ++i) {
            const V* a = values + places[i] * stride + begin;
            const double p = change[i];
#pragma omp simd
            for (std::int64_t j = 0; j < count; ++j) sums[j] += p * static_cast<double>(a[j]);
        }
    });
}

// Kernel values of some rows with all n rows, in memory of the caller: `capacity` places of `stride` values. Rows that
// are not there take the places that were used longest ago.
template <class V>
class RowCache {
  public:
    // Computes values: calls with rows and the places that they are to have, as many of both.
    using Fill = std::function<void(View<const std::int64_t> rows, View<const std::int64_t> places)>;

    // requires: values has room for capacity x stride numbers, stride >= n.
    RowCache(V* values, std::int64_t stride, std::int64_t capacity, std::int64_t n, Fill fill)
        : values_(values),
          stride_(stride),
          place_(n, -1),
          owner_(capacity, -1),
          used_(capacity, 0),
          asked_(n, 0),
          fill_(std::move(fill)) {}

    // All values are there: those of row i at place i.
    RowCache(V* values, std::int64_t stride, std::int64_t n) : RowCache(values, stride, n, n, nullptr) {
        std::iota(place_.begin(), place_.end(), 0);
        std::iota(owner_.begin(), owner_.end(), 0);
    }

    // places[k] = where the values of rows[k] are.
    // requires: at most `capacity` different rows, below n; places has as many entries.
    void fetch(View<const std::int64_t> rows, View<std::int64_t> places) {
        ++now_;
        std::vector<std::int64_t> missing;
        for (const std::int64_t row : rows) {
            if (asked_[row] == now_) continue;
            asked_[row] = now_;
            if (place_[row] >= 0)
                used_[place_[row]] = now_;
            else
                missing.push_back(row);
        }
        if (!missing.empty()) take_places(missing);
        for (std::int64_t k = 0; k < rows.size(); ++k) places[k] = place_[rows[k]];
        computed_ += std::ssize(missing);
    }

    // Keeps the columns `kept`, which rise, and the rows with these numbers; the places that are free by then have
    // room for more rows. requires: rows and columns have the same numbers.
    void keep(View<const std::int64_t> kept) {
        const std::int64_t n = kept.size(), room = std::ssize(owner_) * stride_;
        std::vector<std::int64_t> number(place_.size(), -1);
        for (std::int64_t k = 0; k < n; ++k) number[kept[k]] = k;
        const std::int64_t capacity = n > 0 ? std::min(n, room / n) : 0;
        std::vector<std::int64_t> place(n, -1), owner(capacity, -1), used(capacity, 0);
        std::int64_t free = 0;
        for (std::int64_t from = 0; from < std::ssize(owner_) && free < capacity; ++from) {  // places only move forward
            const std::int64_t row = owner_[from];
            if (row < 0 || number[row] < 0) continue;
            for (std::int64_t k = 0; k < n; ++k) values_[free * n + k] = values_[from * stride_ + kept[k]];
            owner[free] = number[row], used[free] = used_[from], place[number[row]] = free;
            ++free;
        }
        place_ = std::move(place), owner_ = std::move(owner), used_ = std::move(used), stride_ = n;
        asked_.assign(n, 0);
    }

    void set_fill(Fill fill) { fill_ = std::move(fill); }

    const V* values() const { return values_; }
    std::int64_t stride() const { return stride_; }
    std::int64_t size() const { return std::ssize(place_); }
    std::int64_t capacity() const { return std::ssize(owner_); }
    std::int64_t computed() const { return computed_; }  // rows, again and again

  private:
    void take_places(const std::vector<std::int64_t>& missing) {
        std::vector<std::int64_t> places(owner_.size());
        std::iota(places.begin(), places.end(), 0);
        const auto count = std::ssize(missing);
        const auto longer_ago = [&](std::int64_t a, std::int64_t b) {
            return used_[a] != used_[b] ? used_[a] < used_[b] : a < b;
        };
        std::nth_element(places.begin(), places.begin() + (count - 1), places.end(), longer_ago);
        places.resize(count);
        std::sort(places.begin(), places.end());
        for (std::int64_t k = 0; k < count; ++k) {
            const std::int64_t old = owner_[places[k]];
            if (old >= 0) place_[old] = -1;
            owner_[places[k]] = -1;
        }
        fill_(missing, places);
        for (std::int64_t k = 0; k < count; ++k) {
            owner_[places[k]] = missing[k];
            place_[missing[k]] = places[k];
            used_[places[k]] = now_;
        }
    }

    V* values_;
    std::int64_t stride_, now_ = 0, computed_ = 0;
    std::vector<std::int64_t> place_, owner_, used_, asked_;
    Fill fill_;
};

}  // namespace cutsvm
