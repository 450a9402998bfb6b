// Rows in the order of their scores, smallest first. The same for any number of threads.
//
//   look at some of the rows: low and high, between which most of them are
//   cut a range twice as wide into cells of the same width, more of them than rows; the rest joins the outermost ones
//   put the rows into buckets of neighbouring cells, each so small that a cache holds it
//   in each bucket: put the rows into their cells, sort the few that share one; if they are many, cut anew
// Linear time unless scores lie very unevenly, then at most that of std::stable_sort. Only one step jumps about in all
// of the memory, and only among as many places as there are buckets.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
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

// ... or those of the lower one of two levels come first.
struct ByScoreAndLevel {
    bool operator()(const Ranked& a, const Ranked& b) const {
        return a.score < b.score || (a.score == b.score && a.level < b.level);
    }
};

// A range of scores in cells of the same width, which are numbered.
class Cells {
  public:
    template <class Row>
    Cells(std::int64_t n, const Row& row, unsigned bits) : last_(static_cast<double>((std::uint32_t{1} << bits) - 1)) {
        // Of the sample all but the lowest and the highest, which may be far away from all others.
        constexpr double FAR = std::numeric_limits<double>::infinity();
        double lowest = FAR, low = FAR, highest = -FAR, high = -FAR;
        for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / SAMPLE)) {
            const double score = row(i).score;
            low = std::min(low, std::max(lowest, score));
            high = std::max(high, std::min(highest, score));
            lowest = std::min(lowest, score);
            highest = std::max(highest, score);
        }
        tie = low == high;
        low_ = low - (high - low) / 2.0;
        times_ = last_ / (2.0 * (high - low));
    }

    bool tie;  // most rows have the same score
    double low() const { return low_; }

    // Higher scores have no lower cell. Also where a range is so wide or so narrow that `times_` is 0 or infinite: what
    // is not a number counts as 0.
    std::uint32_t operator()(double score) const {
        const double place = (score - low_) * times_, from_zero = place > 0.0 ? place : 0.0;
        return static_cast<std::uint32_t>(from_zero < last_ ? from_zero : last_);
    }

  private:
    static constexpr std::int64_t SAMPLE = 128;

    double low_, times_, last_;  // cells per score, the last cell
};

class ScoreOrder {
  public:
    // rows = row(0), ..., row(n - 1) in order.
    // requires: finite scores, fewer than 2^31 rows.
    template <class Row, class Before>
    void operator()(std::int64_t n, const Row& row, const Before& before, LargeVector<Ranked>& rows, int threads) {
        const auto team = static_cast<std::size_t>(std::max(1, threads));
        if (own_.size() < team) own_.resize(team);
        rows.resize(n);
        buckets_.assign(1, 0);
        const unsigned all = width(rows.size()), top = std::min(all - std::min(all, BUCKET), TOP), inside = within(all);
        const Cells cells(n, row, top + inside);
        if (top > 0) {
            into_buckets(n, row, cells, top, inside, rows, team);
        } else {
            for (std::int64_t i = 0; i < n; ++i) rows[i] = row(i);
        }
        buckets_.push_back(rows.size());
        make_room(team);
        const auto sort = [&](std::size_t b, Own& own) {
            sort_bucket(rows.data() + buckets_[b], buckets_[b + 1] - buckets_[b], cells, inside, before, own, DEEP);
        };
        const std::size_t count = buckets_.size() - 1;
        if (team == 1) {
            for (std::size_t b = 0; b < count; ++b) sort(b, own_[0]);
            return;
        }
        const auto next = [&](std::int64_t b) { sort(b, own_[omp_get_thread_num()]); };
        for_tasks(static_cast<std::int64_t>(count), threads, next, 4);
    }

  private:
    static constexpr std::size_t FEW = 64, SHARED = 32;            // rows that are sorted as they are; those of a cell
    static constexpr unsigned BUCKET = 11, INSIDE = 12, TOP = 11;  // bits: rows and cells of a bucket; most buckets
    static constexpr int DEEP = 4;                                 // times that a cell is cut anew

    // What a thread needs for itself.
    struct Own {
        LargeVector<Ranked> rows;           // of a bucket
        std::vector<std::uint32_t> places;  // by bucket, then by cell: how many rows it has, then where the next goes
    };

    static unsigned width(std::size_t n) { return static_cast<unsigned>(std::bit_width(n)); }
    static unsigned within(unsigned bits) { return std::min(bits + 1, INSIDE); }

    // Rows that share one stay in the order that they have: each thread counts its piece, then knows where it begins.
    template <class Row>
    void into_buckets(std::int64_t n, const Row& row, const Cells& cells, unsigned top, unsigned inside,
                      LargeVector<Ranked>& rows, std::size_t team) {
        const auto pieces = static_cast<std::int64_t>(team);
        const auto for_pieces = [&](const auto& work) {
            const auto piece = [&, inside](std::int64_t t) {
                std::uint32_t* places = own_[t].places.data();
                for (std::int64_t i = n * t / pieces; i < n * (t + 1) / pieces; ++i) {
                    const Ranked here = row(i);
                    work(here, places[cells(here.score) >> inside]);
                }
            };
            if (pieces == 1) return piece(0);
            for_equal_tasks(pieces, static_cast<int>(pieces), piece);
        };
        const std::size_t count = std::size_t{1} << top;
        for (std::size_t t = 0; t < team; ++t) own_[t].places.assign(count, 0);
        for_pieces([](const Ranked&, std::uint32_t& many) { ++many; });
        std::uint32_t next = 0;
        for (std::size_t b = 0; b < count; ++b) {
            if (b > 0) buckets_.push_back(next);
            for (std::size_t t = 0; t < team; ++t) next += std::exchange(own_[t].places[b], next);
        }
        for_pieces([&](const Ranked& here, std::uint32_t& place) { rows[place++] = here; });
    }

    // For the largest bucket: memory is asked for once, before the threads begin.
    void make_room(std::size_t team) {
        std::size_t most = 0;
        for (std::size_t b = 0; b + 1 < buckets_.size(); ++b) most = std::max(most, buckets_[b + 1] - buckets_[b]);
        if (most <= FEW) return;
        for (std::size_t t = 0; t < team; ++t) {
            if (own_[t].rows.size() < most) own_[t].rows.resize(most);
            own_[t].places.reserve(std::size_t{1} << INSIDE);
        }
    }

    // Rows whose cells differ in the lowest `bits` bits only.
    template <class Before>
    static void sort_bucket(Ranked* rows, std::size_t n, const Cells& cells, unsigned bits, const Before& before,
                            Own& own, int depth) {
        if (n <= FEW) return insert(rows, rows + n, before);
        const std::uint32_t count = std::uint32_t{1} << bits, inside = count - 1;
        own.places.assign(count, 0);
        Ranked* const from = own.rows.data();
        std::uint32_t* const places = own.places.data();
        for (std::size_t k = 0; k < n; ++k) {
            from[k] = rows[k];
            ++places[cells(from[k].score) & inside];
        }
        std::uint32_t next = 0, most = 0;
        for (std::uint32_t c = 0; c < count; ++c) {
            most = std::max(most, places[c]);
            next += std::exchange(places[c], next);
        }
        for (std::size_t k = 0; k < n; ++k) rows[places[cells(from[k].score) & inside]++] = from[k];
        if (most <= SHARED) return insert(rows, rows + n, before);  // no row has far to go
        for (std::size_t begin = 0, end; begin < n; begin = end) {
            const std::uint32_t cell = cells(rows[begin].score);
            for (end = begin + 1; end < n && cells(rows[end].score) == cell;) ++end;
            sort_cell(rows + begin, end - begin, before, own, depth);
        }
    }

    template <class Before>
    static void sort_cell(Ranked* rows, std::size_t n, const Before& before, Own& own, int depth) {
        if (n <= SHARED) return insert(rows, rows + n, before);
        if (std::is_sorted(rows, rows + n, ByScore{})) {  // mostly: all the same
            if (!std::is_sorted(rows, rows + n, before)) lower_first(rows, rows + n);
            return;
        }
        if (depth == 0) return std::stable_sort(rows, rows + n, before);
        const unsigned bits = within(width(n));
        const Cells cells(static_cast<std::int64_t>(n), [&](std::int64_t i) { return rows[i]; }, bits);
        if (!cells.tie) return sort_bucket(rows, n, cells, bits, before, own, depth - 1);
        // Lower ones, those with the score of most, higher ones.
        Ranked* const from = own.rows.data();
        std::copy(rows, rows + n, from);
        const auto lower = std::count_if(from, from + n, [&](const Ranked& row) { return row.score < cells.low(); });
        const auto same = std::count_if(from, from + n, [&](const Ranked& row) { return row.score == cells.low(); });
        std::array<Ranked*, 3> next{rows, rows + lower, rows + lower + same};
        const std::array<Ranked*, 4> ends{next[0], next[1], next[2], rows + n};
        for (std::size_t k = 0; k < n; ++k) {
            const double score = from[k].score;
            *(score == cells.low() ? next[1]++ : score < cells.low() ? next[0]++ : next[2]++) = from[k];
        }
        for (std::size_t part = 0; part < 3; ++part)
            sort_cell(ends[part], static_cast<std::size_t>(ends[part + 1] - ends[part]), before, own, depth - 1);
    }

    static void lower_first(Ranked* begin, Ranked* end) {
        for (Ranked *here = begin, *next; here < end; here = next) {
            next = std::upper_bound(here, end, *here, ByScore{});
            std::stable_partition(here, next, [](const Ranked& row) { return row.level == 0; });
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

    std::vector<std::size_t> buckets_;  // where each begins
    std::vector<Own> own_;
};

}  // namespace cutsvm
