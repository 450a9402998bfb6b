// Reads svmlight/libsvm text, `<label> [qid:<id>] <index>:<value> ... [# comment]`, into compressed rows.
//
// A block of whole lines is cut at newlines into chunks. One quick pass counts the newlines and colons of each
// chunk, which bounds its rows and entries; then every chunk is parsed straight into its own place in the result,
// and the gaps left by comments and empty lines are closed. What comes out does not depend on the number of threads.
//
// A query id is a 64-bit integer or any other text. The queries are integers in both cases: for a text, its place in
// a list of the distinct texts, and the row is noted. So data whose ids are all integers pay nothing for texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "core/parallel.hpp"
#include "core/svmlight_chunks.hpp"
#include "core/svmlight_text.hpp"

namespace cutsvm::svmlight {

// An array that grows without being filled, and without a second copy where the system can remap pages.
template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    T* data() { return data_.get(); }
    std::span<T> at(std::int64_t start, std::int64_t length) {
        return {data() + start, static_cast<std::size_t>(length)};
    }

    // ensures: room for `size` elements, those up to the old room kept; memory that is not written costs nothing
    void reserve(std::int64_t size) {
        if (size > capacity_) resize(std::max(size, capacity_ + capacity_ / 4));
    }

    // ensures: the memory, cut to `size` elements, for the caller to free with std::free
    T* release(std::int64_t size) {
        resize(std::max<std::int64_t>(size, 1));
        capacity_ = 0;
        return data_.release();
    }

  private:
    void resize(std::int64_t size) {
        void* moved = std::realloc(data_.get(), static_cast<std::size_t>(size) * sizeof(T));
        if (moved == nullptr) throw std::bad_alloc();
        static_cast<void>(data_.release());
        data_.reset(static_cast<T*>(moved));
        capacity_ = size;
    }

    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> data_;
    std::int64_t capacity_ = 0;
};

// Collects the samples of one or more files, fed block by block.
template <class Value>
class Reader {
  public:
    explicit Reader(Options options) : options_(options) { ends_.reserve(1), ends_.data()[0] = 0; }

    void start_file() { line_ = 0; }

    // requires: text is whole lines, only the last of a file may lack its newline; threads >= 1
    // ensures: the good samples are appended. Returns the first bad lines by number; if keep_bad is 0 the first
    // one only, and then the reader is not to be used further.
    std::vector<BadLine> feed(std::span<const char> text, int threads) {
        const auto newline = std::find(text.rbegin(), text.rend(), '\n');
        const auto body = text.first(static_cast<std::size_t>(text.rend() - newline));
        std::string tail(text.begin() + std::ssize(body), text.end());
        std::vector<std::span<const char>> chunks = cut(body, std::max<std::int64_t>(options_.chunk_bytes, 1));
        if (!tail.empty()) chunks.emplace_back(tail += '\n');
        for (std::size_t c = 0; c < chunks.size() && !has_query_; ++c) has_query_ = first_has_query(chunks[c]);

        const std::vector<Counts> counts = count_all(chunks, threads);
        std::vector<ChunkResult> results;
        if (!wide_) {
            results = parse_all(narrow_indices_, chunks, counts, threads);
            const auto too_wide = [](const ChunkResult& r) { return r.too_wide; };
            if (std::any_of(results.begin(), results.end(), too_wide)) widen();
        }
        if (wide_) results = parse_all(wide_indices_, chunks, counts, threads);
        std::vector<BadLine> bad = collect_bad(results, counts);
        close_gaps(results, counts);
        return bad;
    }

    std::int64_t rows() const { return rows_; }
    std::int64_t entries() const { return entries_; }
    std::int64_t min_index() const { return min_index_; }  // the largest int64 if there is no entry
    std::int64_t max_index() const { return max_index_; }  // -1 if there is no entry
    std::int64_t n_bad() const { return n_bad_; }
    bool has_query() const { return has_query_.value_or(false); }
    bool wide() const { return wide_; }                        // indices are int64; else int32
    std::int64_t n_text_rows() const { return n_text_rows_; }  // rows whose id is text

    // ensures: the distinct ids that are text, by their places; they look into the reader
    std::vector<std::string_view> query_texts() const {
        std::vector<std::string_view> texts(text_places_.size());
        for (const auto& [text, place] : text_places_) texts[static_cast<std::size_t>(place)] = text;
        return texts;
    }

    // Memory of the result, each to be called once, after the last feed; free it with std::free.
    double* release_labels() { return labels_.release(rows_); }
    std::int64_t* release_queries() { return queries_.release(rows_); }
    std::int64_t* release_text_rows() { return text_rows_.release(n_text_rows_); }
    std::int64_t* release_pointers() { return ends_.release(rows_ + 1); }
    std::int32_t* release_narrow_indices() { return narrow_indices_.release(entries_); }
    std::int64_t* release_wide_indices() { return wide_indices_.release(entries_); }
    Value* release_values() { return values_.release(entries_); }

  private:
    using Chunks = std::vector<std::span<const char>>;

    static std::vector<Counts> count_all(const Chunks& chunks, int threads) {
        std::vector<Counts> counts(chunks.size());
        const auto n = std::ssize(chunks);
        for_tasks(n, threads, [&](std::int64_t c) {
            counts[static_cast<std::size_t>(c)] = count(chunks[static_cast<std::size_t>(c)]);
        });
        return counts;
    }

    template <class Index>
    std::vector<ChunkResult> parse_all(Buffer<Index>& indices, const Chunks& chunks, const std::vector<Counts>& counts,
                                       int threads) {
        const auto places = make_places(indices, counts);
        std::vector<ChunkResult> results(chunks.size());
        const auto n = std::ssize(chunks);
        const bool has_query = this->has_query();
        for_tasks(n, threads, [&](std::int64_t i) {
            const auto c = static_cast<std::size_t>(i);
            results[c] = ChunkParser<Index, Value>(options_, has_query, places[c]).parse(chunks[c]);
        });
        return results;
    }

    template <class Index>
    std::vector<Place<Index, Value>> make_places(Buffer<Index>& indices, const std::vector<Counts>& counts) {
        Counts total;
        for (const Counts& c : counts) total.lines += c.lines, total.colons += c.colons;
        labels_.reserve(rows_ + total.lines);
        if (has_query()) queries_.reserve(rows_ + total.lines);
        ends_.reserve(rows_ + total.lines + 1);
        indices.reserve(entries_ + total.colons);
        values_.reserve(entries_ + total.colons);
        std::vector<Place<Index, Value>> places;
        std::int64_t row = rows_;
        std::int64_t entry = entries_;
        for (const Counts& c : counts) {
            places.push_back({labels_.at(row, c.lines),
                              {},
                              ends_.at(row + 1, c.lines),
                              indices.at(entry, c.colons),
                              values_.at(entry, c.colons)});
            if (has_query()) places.back().queries = queries_.at(row, c.lines);
            row += c.lines;
            entry += c.colons;
        }
        return places;
    }

    // Chunks come in the order of their lines, so the first bad lines of all are found from the front.
    std::vector<BadLine> collect_bad(const std::vector<ChunkResult>& results, const std::vector<Counts>& counts) {
        std::vector<BadLine> bad;
        for (std::size_t c = 0; c < results.size(); ++c) {
            for (BadLine found : results[c].bad) {
                found.line += line_;
                if (std::ssize(bad) < std::max<std::int64_t>(options_.keep_bad, 1)) bad.push_back(found);
            }
            n_bad_ += results[c].n_bad;
            line_ += counts[c].lines;
        }
        return bad;
    }

    // Moves each chunk's rows down to the end of the rows before.
    void close_gaps(const std::vector<ChunkResult>& results, const std::vector<Counts>& counts) {
        std::int64_t row = rows_;
        std::int64_t entry = entries_;
        for (std::size_t c = 0; c < results.size(); ++c) {
            const ChunkResult& r = results[c];
            move_down(labels_, row, rows_, r.rows);
            if (has_query()) move_down(queries_, row, rows_, r.rows);
            if (!r.text_rows.empty()) join_texts(r);
            for (std::int64_t i = 1; i <= r.rows; ++i) ends_.data()[rows_ + i] = ends_.data()[row + i] + entries_;
            if (wide_) move_down(wide_indices_, entry, entries_, r.entries);
            if (!wide_) move_down(narrow_indices_, entry, entries_, r.entries);
            move_down(values_, entry, entries_, r.entries);
            rows_ += r.rows;
            entries_ += r.entries;
            min_index_ = std::min(min_index_, r.min_index);
            max_index_ = std::max(max_index_, r.max_index);
            row += counts[c].lines;
            entry += counts[c].colons;
        }
    }

    // From places in the chunk's list of texts to places in the list of all.
    // requires: the chunk's queries have been moved down to rows_
    void join_texts(const ChunkResult& r) {
        std::vector<std::int64_t> places;
        for (std::string_view text : r.query_texts)
            places.push_back(text_places_.try_emplace(std::string(text), std::ssize(text_places_)).first->second);
        text_rows_.reserve(n_text_rows_ + std::ssize(r.text_rows));
        for (std::int64_t row : r.text_rows) {
            std::int64_t& query = queries_.data()[rows_ + row];
            query = places[static_cast<std::size_t>(query)];
            text_rows_.data()[n_text_rows_++] = rows_ + row;
        }
    }

    template <class T>
    static void move_down(Buffer<T>& buffer, std::int64_t from, std::int64_t to, std::int64_t length) {
        if (from != to) std::copy_n(buffer.data() + from, length, buffer.data() + to);
    }

    void widen() {
        wide_ = true;
        wide_indices_.reserve(entries_);
        if (entries_ > 0) std::copy_n(narrow_indices_.data(), entries_, wide_indices_.data());
        narrow_indices_ = {};
    }

    Options options_;
    Buffer<double> labels_;
    Buffer<std::int64_t> queries_;    // integers; in the text rows, places of texts
    Buffer<std::int64_t> text_rows_;  // increasing
    Buffer<std::int64_t> ends_;       // one more than rows, the first is 0
    Buffer<std::int32_t> narrow_indices_;
    Buffer<std::int64_t> wide_indices_;
    Buffer<Value> values_;
    std::optional<bool> has_query_;  // what the first sample of all says
    bool wide_ = false;
    std::unordered_map<std::string, std::int64_t> text_places_;  // of each text, in order of appearance
    std::int64_t n_text_rows_ = 0;
    std::int64_t rows_ = 0;
    std::int64_t entries_ = 0;
    std::int64_t line_ = 0;
    std::int64_t n_bad_ = 0;
    std::int64_t min_index_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_index_ = -1;
};

}  // namespace cutsvm::svmlight
