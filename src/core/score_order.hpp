// Rows in the order of their scores, smallest first. The same for any number of threads.
//
//   look at some of the rows: low and high
//   cut [low, high] into cells of the same width, more of them than rows; what lies outside joins the outermost ones
//   put the rows into buckets of neighbouring cells, each so small that a cache holds it
//   in each bucket: put the rows into their cells, then sort the few that share one
// Linear time unless many different scores share a cell, then that of std::stable_sort. Only one step jumps about in all
// of the memory, and only in as many places as there are buckets.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/large_pages.hpp"
#include "core/parallel.hpp"

namespace cutsvm {

// A row in its place among the others.
struct Ranked {
    double score;
    std::int32_t row, level;
};

// Rows of the same score stay in the order that they have ...
struct ByScore {
    bool operator()(const Ranked& a, const Ranked& b) const { return a.score < b.score; }
};

// ... or those of the lower level come first.
struct ByScoreAndLevel {
    bool operator()(const Ranked& a, const Ranked& b) const {
        return a.score < b.score || (a.score == b.score && a.level < b.level);
    }
};

class ScoreOrder {
  public:
    // rows = row(0), ..., row(n - 1) in order.
    // requires: finite scores, fewer than 2^31 rows.
    template <class Row, class Before>
    void operator()(std::int64_t n, const Row& row, const Before& before, LargeVector<Ranked>& rows, int threads) {
        const auto team = static_cast<std::size_t>(std::max(1, threads));
        if (own_.size() < team) own_.resize(team);
        rows.resize(static_cast<std::size_t>(n));
        buckets_.assign(1, 0);
        top_ = 0;
        if (rows.size() > FEW) cut(n, row);
        if (top_ > 0) {
            into_buckets(n, row, rows, team);
        } else {
            for (std::int64_t i = 0; i < n; ++i) rows[static_cast<std::size_t>(i)] = row(i);
        }
        buckets_.push_back(rows.size());
        const auto sort = [&](std::size_t b, Own& own) {
            sort_bucket(rows.data() + buckets_[b], buckets_[b + 1] - buckets_[b], before, own);
        };
        const std::size_t count = buckets_.size() - 1;
        make_room(team);
        if (team == 1) {
            for (std::size_t b = 0; b < count; ++b) sort(b, own_[0]);
            return;
        }
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
        for (std::size_t b = 0; b < count; ++b) sort(b, own_[static_cast<std::size_t>(omp_get_thread_num())]);
    }

  private:
    static constexpr std::size_t FEW = 64, SHARED = 32;  // rows that are sorted as they are; of a cell
    static constexpr std::int64_t SAMPLE = 256;
    static constexpr unsigned BUCKET = 11, INSIDE = 12, TOP = 11;  // bits: rows and cells of a bucket; most buckets

    // What a thread needs for itself.
    struct Own {
        LargeVector<Ranked> rows;           // of a bucket
        std::vector<std::uint32_t> places;  // by bucket, then by cell: how many rows it has, then where the next one goes
    };

    // The cell of a score; higher scores have no lower cell. Also where a range is so wide or so narrow that `times_` is
    // 0 or infinite: what is not a number counts as 0.
    std::uint32_t cell(double score) const {
        const double place = (score - low_) * times_, from_zero = place > 0.0 ? place : 0.0;
        return static_cast<std::uint32_t>(from_zero < last_ ? from_zero : last_);
    }

    // The cells, a bit wider than the rows of the sample lie.
    template <class Row>
    void cut(std::int64_t n, const Row& row) {
        double high = low_ = row(0).score;
        for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / SAMPLE)) {
            const double score = row(i).score;
            low_ = std::min(low_, score);
            high = std::max(high, score);
        }
        const double room = (high - low_) / 8.0;
        low_ -= room;
        high += room;
        const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(n)));
        top_ = std::min(bits - std::min(bits, BUCKET), TOP);
        inside_ = std::min(bits + 1, INSIDE);
        last_ = static_cast<double>((std::uint32_t{1} << (top_ + inside_)) - 1);
        times_ = last_ / (high - low_);
    }

    // Rows that share one stay in the order that they have: each thread counts its piece, then knows where it begins.
    template <class Row>
    void into_buckets(std::int64_t n, const Row& row, LargeVector<Ranked>& rows, std::size_t team) {
        const auto pieces = static_cast<std::int64_t>(team);
        const auto over_pieces = [&](const auto& work) {
            const auto piece = [&](std::int64_t t) {
                std::uint32_t* places = own_[static_cast<std::size_t>(t)].places.data();
                for (std::int64_t i = n * t / pieces; i < n * (t + 1) / pieces; ++i) {
                    const Ranked here = row(i);
                    work(here, places[cell(here.score) >> inside_]);
                }
            };
            if (pieces == 1) return piece(0);
#pragma omp parallel for schedule(static) num_threads(static_cast<int>(pieces))
            for (std::int64_t t = 0; t < pieces; ++t) piece(t);
        };
        const std::size_t count = std::size_t{1} << top_;
        for (std::size_t t = 0; t < team; ++t) own_[t].places.assign(count, 0);
        over_pieces([](const Ranked&, std::uint32_t& many) { ++many; });
        std::uint32_t next = 0;
        for (std::size_t b = 0; b < count; ++b) {
            if (b > 0) buckets_.push_back(next);
            for (std::size_t t = 0; t < team; ++t) next += std::exchange(own_[t].places[b], next);
        }
        over_pieces([&](const Ranked& here, std::uint32_t& place) { rows[place++] = here; });
    }

    // For the largest bucket: memory is not to be asked for on several threads, where its lack could not be reported.
    void make_room(std::size_t team) {
        std::size_t most = 0;
        for (std::size_t b = 0; b + 1 < buckets_.size(); ++b) most = std::max(most, buckets_[b + 1] - buckets_[b]);
        if (most <= FEW) return;
        for (std::size_t t = 0; t < team; ++t) {
            if (own_[t].rows.size() < most) own_[t].rows.resize(most);
            own_[t].places.reserve(std::size_t{1} << inside_);
        }
    }

    template <class Before>
    void sort_bucket(Ranked* rows, std::size_t n, const Before& before, Own& own) const {
        if (n <= FEW) return insert(rows, rows + n, before);
        const std::uint32_t cells = std::uint32_t{1} << inside_, inside = cells - 1;
        own.places.assign(cells, 0);
        Ranked* const from = own.rows.data();
        std::uint32_t* const places = own.places.data();
        for (std::size_t k = 0; k < n; ++k) {
            from[k] = rows[k];
            ++places[cell(from[k].score) & inside];
        }
        std::uint32_t next = 0, most = 0;
        for (std::uint32_t c = 0; c < cells; ++c) {
            most = std::max(most, places[c]);
            next += std::exchange(places[c], next);
        }
        for (std::size_t k = 0; k < n; ++k) rows[places[cell(from[k].score) & inside]++] = from[k];
        if (most <= SHARED) return insert(rows, rows + n, before);  // no row has far to go
        for (std::size_t begin = 0, end; begin < n; begin = end) {
            end = places[cell(rows[begin].score) & inside];  // by now where the next cell begins
            if (end - begin <= SHARED)
                insert(rows + begin, rows + end, before);
            else if (!std::is_sorted(rows + begin, rows + end, before))
                std::stable_sort(rows + begin, rows + end, before);
        }
    }

    // Insertion sort: the fastest where rows are few or nearly in order.
    template <class Before>
    static void insert(Ranked* begin, Ranked* end, const Before& before) {
        for (Ranked* k = begin; k < end; ++k) {
            if (k == begin || !before(*k, k[-1])) continue;
            const Ranked moved = *k;
            Ranked* to = k;
            do *to = to[-1];
            while (--to > begin && before(moved, to[-1]));
            *to = moved;
        }
    }

    double low_ = 0.0, times_ = 0.0, last_ = 0.0;  // cells per score, the last cell
    unsigned top_ = 0, inside_ = 0;                // bits of a cell's number: its bucket, and the place in it
    std::vector<std::size_t> buckets_;             // where each begins
    std::vector<Own> own_;
};

}  // namespace cutsvm
