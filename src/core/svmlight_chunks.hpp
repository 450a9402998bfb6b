// A chunk of whole lines of svmlight text (core/svmlight.hpp) parsed into its place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/svmlight_text.hpp"

namespace cutsvm::svmlight {

struct Counts {
    std::int64_t lines = 0;
    std::int64_t colons = 0;
};

// ensures: the number of newlines and of colons in the text.
inline Counts count(std::span<const char> text) {
    Counts total;
    constexpr std::size_t stride = 255;  // counters of one byte cannot overflow, and the loop vectorises
    for (std::size_t at = 0; at < text.size(); at += stride) {
        const auto part = text.subspan(at, std::min(stride, text.size() - at));
        std::uint8_t lines = 0;
        std::uint8_t colons = 0;
        for (char c : part) {
            lines = static_cast<std::uint8_t>(lines + (c == '\n'));
            colons = static_cast<std::uint8_t>(colons + (c == ':'));
        }
        total.lines += lines;
        total.colons += colons;
    }
    return total;
}

// requires: text is empty or ends in '\n'
// ensures: pieces of about `bytes`, in order, each ending in '\n'
inline std::vector<std::span<const char>> cut(std::span<const char> text, std::int64_t bytes) {
    std::vector<std::span<const char>> chunks;
    while (!text.empty()) {
        std::size_t end = std::min(text.size(), static_cast<std::size_t>(bytes)) - 1;
        const void* newline = std::memchr(text.data() + end, '\n', text.size() - end);
        end = static_cast<std::size_t>(static_cast<const char*>(newline) - text.data()) + 1;
        chunks.push_back(text.first(end));
        text = text.subspan(end);
    }
    return chunks;
}

// Does the first sample of the chunk carry a qid? Nothing if the chunk has no sample.
// requires: chunk is empty or ends in '\n'
inline std::optional<bool> first_has_query(std::span<const char> chunk) {
    const char* p = chunk.data();
    const char* end = p + chunk.size();
    while (p != end) {
        p = skip_blanks(p);
        if (!ends_line(*p)) {
            const std::string_view label = token_at(p);
            return token_at(skip_blanks(label.data() + label.size())).starts_with("qid:");
        }
        p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
    }
    return std::nullopt;
}

// Where a chunk writes: room for as many rows as it has newlines and as many entries as it has colons.
template <class Index, class Value>
struct Place {
    std::span<double> labels;
    std::span<std::int64_t> queries;  // empty if the data have none; see ChunkResult for ids that are text
    std::span<std::int64_t> ends;     // entries of the chunk up to the end of each row
    std::span<Index> indices;
    std::span<Value> values;
};

struct ChunkResult {
    std::int64_t rows = 0;
    std::int64_t entries = 0;
    std::int64_t min_index = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_index = -1;
    std::int64_t n_bad = 0;
    std::vector<BadLine> bad;                   // the first ones, lines counted from the start of the chunk
    std::vector<std::int64_t> text_rows;        // good rows whose id is text: the query is its place in query_texts
    std::vector<std::string_view> query_texts;  // distinct, in order of appearance; they look into the chunk
    bool too_wide = false;                      // an index does not fit the type Index: parse again with a wider one
};

template <class Index, class Value>
class ChunkParser {
  public:
    ChunkParser(const Options& options, bool has_query, Place<Index, Value> place)
        : options_(options), has_query_(has_query), place_(place) {}

    // requires: chunk ends in '\n'; the place is as large as `count(chunk)` says
    // ensures: the good rows, sorted by index, in the place from its start on; nothing read beyond the chunk
    ChunkResult parse(std::span<const char> chunk) {
        const char* p = chunk.data();
        const char* end = p + chunk.size();
        for (std::int64_t line = 1; p != end; ++line) {
            const char* stop = parse_line(skip_blanks(p));
            if (result_.too_wide) break;
            if (stop == nullptr) {
                bad_.line = line;
                ++result_.n_bad;
                if (std::ssize(result_.bad) < std::max<std::int64_t>(options_.keep_bad, 1)) result_.bad.push_back(bad_);
                if (options_.keep_bad == 0) break;
                stop = p;
            }
            p = static_cast<const char*>(std::memchr(stop, '\n', static_cast<std::size_t>(end - stop))) + 1;
        }
        return std::move(result_);
    }

  private:
    // ensures: the end of the line's data, or nullptr after setting bad_ or result_.too_wide
    const char* parse_line(const char* p) {
        if (ends_line(*p)) return p;
        const auto row = static_cast<std::size_t>(result_.rows);
        const char* label = p;
        p = parse_number(p, place_.labels[row]);
        if (p == nullptr || !ends_token(*p) || !std::isfinite(place_.labels[row])) {
            const std::string_view token = token_at(label);
            return fail(label_problem(token), token);
        }
        p = parse_query(skip_blanks(p), row);
        return p == nullptr ? nullptr : parse_entries(p, row);
    }

    const char* parse_query(const char* p, std::size_t row) {
        const bool is_query = *p == 'q' && token_at(p).starts_with("qid:");
        if (!is_query && !has_query_) return p;
        const std::string_view token = token_at(p);
        if (!is_query) return fail(Problem::missing_query, token);
        if (!has_query_) return fail(Problem::unexpected_query, token);
        const std::string_view id = token.substr(4);
        const char* end = token.data() + token.size();
        text_query_ = {};
        if (const auto number = parse_integer(id)) {
            place_.queries[row] = *number;
            return end;
        }
        if (id.empty()) return fail(Problem::empty_query, token);
        // NumPy's text drops zeros at the end, which would make two ids one.
        if (id.find('\0') != id.npos) return fail(Problem::zero_in_query, token);
        text_query_ = id;
        return end;
    }

    const char* parse_entries(const char* p, std::size_t row) {
        const auto start = static_cast<std::size_t>(result_.entries);
        std::size_t at = start;
        std::int64_t previous = -1;
        bool sorted = true;
        for (p = skip_blanks(p); !ends_line(*p); p = skip_blanks(p)) {
            const char* token = p;
            double value = 0.0;
            const std::int64_t index = parse_index(p);
            if (index >= 0) p = parse_number(p, value);
            if (index < 0 || p == nullptr || !ends_token(*p) || !std::isfinite(value))
                return fail(entry_problem(token_at(token)), token_at(token));
            if (index < options_.min_index) return fail(Problem::zero_index, token_at(token));
            if (index > std::numeric_limits<Index>::max()) {
                result_.too_wide = true;
                return nullptr;
            }
            place_.values[at] = static_cast<Value>(value);
            if (std::is_same_v<Value, float> && !std::isfinite(place_.values[at]))
                return fail(Problem::value_too_large, token_at(token));
            place_.indices[at] = static_cast<Index>(index);
            sorted = sorted && index > previous;
            previous = index;
            ++at;
        }
        if (!sorted && !sort_row(start, at)) return nullptr;
        close_row(row, start, at);
        return p;
    }

    // ensures: the index, with p behind its colon; -1 if it is none
    static std::int64_t parse_index(const char*& p) {
        p += *p == '+';
        const char* first = p;
        std::uint64_t index = 0;
        for (; is_digit(*p); ++p) index = index * 10 + digit(*p);
        if (p == first || *p != ':') return -1;
        ++p;
        if (p - first <= 19) return static_cast<std::int64_t>(index);
        return parse_integer({first, static_cast<std::size_t>(p - 1 - first)}).value_or(-1);
    }

    // ensures: the row's entries by increasing index; false after setting bad_ if an index is there twice
    bool sort_row(std::size_t start, std::size_t end) {
        sorted_.clear();
        for (std::size_t i = start; i < end; ++i) sorted_.emplace_back(place_.indices[i], place_.values[i]);
        std::sort(sorted_.begin(), sorted_.end(), [](auto& a, auto& b) { return a.first < b.first; });
        for (std::size_t i = start; i < end; ++i) std::tie(place_.indices[i], place_.values[i]) = sorted_[i - start];
        const auto same = [](auto& a, auto& b) { return a.first == b.first; };
        const auto twice = std::adjacent_find(sorted_.begin(), sorted_.end(), same);
        if (twice == sorted_.end()) return true;
        bad_ = bad_line(Problem::duplicate_index, {}, twice->first);
        return false;
    }

    void close_row(std::size_t row, std::size_t start, std::size_t end) {
        if (end > start) {
            result_.min_index = std::min<std::int64_t>(result_.min_index, place_.indices[start]);
            result_.max_index = std::max<std::int64_t>(result_.max_index, place_.indices[end - 1]);
        }
        place_.ends[row] = static_cast<std::int64_t>(end);
        result_.entries = static_cast<std::int64_t>(end);
        ++result_.rows;
        if (!text_query_.empty()) note_text(row);
    }

    // Only here, where the row is known to be good: a text of bad lines alone is no id of the data.
    void note_text(std::size_t row) {
        const auto [found, is_new] = text_places_.try_emplace(text_query_, std::ssize(result_.query_texts));
        if (is_new) result_.query_texts.push_back(text_query_);
        place_.queries[row] = found->second;
        result_.text_rows.push_back(static_cast<std::int64_t>(row));
    }

    const char* fail(Problem problem, std::string_view token) {
        bad_ = bad_line(problem, token);
        return nullptr;
    }

    const Options& options_;
    bool has_query_;
    Place<Index, Value> place_;
    ChunkResult result_;
    BadLine bad_;
    std::string_view text_query_;                                     // the row's id if it is text, else empty
    std::unordered_map<std::string_view, std::int64_t> text_places_;  // in result_.query_texts
    std::vector<std::pair<Index, Value>> sorted_;
};

}  // namespace cutsvm::svmlight
