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
#include <array>
#include <charconv>
#include <cmath>
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
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cutsvm::svmlight {

enum class Problem : std::uint8_t {
    bad_label,
    label_not_finite,
    missing_label,
    multi_label,
    empty_query,
    zero_in_query,
    missing_query,
    unexpected_query,
    misplaced_query,
    missing_colon,
    bad_index,
    negative_index,
    index_too_large,
    zero_index,
    missing_value,
    bad_value,
    value_not_finite,
    value_too_large,
    duplicate_index,
};

struct BadLine {
    std::int64_t line = 0;  // from 1, in its file
    Problem problem = Problem::bad_label;
    std::int64_t index = 0;          // of duplicate_index
    std::array<char, 32> found = {};  // the offending token, clipped and printable, closed by a zero
};

struct Options {
    std::int64_t min_index = 0;              // a smaller index is an error
    std::int64_t keep_bad = 0;               // 0: stop at the first bad line; k: skip bad lines, remember k per block
    std::int64_t chunk_bytes = 1 << 20;      // about how much text a thread takes at a time
};

// ---- characters and tokens: every line that reaches these functions is closed by '\n', which stops each loop

enum CharClass : std::uint8_t { ordinary = 0, blank = 1, closing = 2 };

inline constexpr std::array<std::uint8_t, 256> char_classes = [] {
    std::array<std::uint8_t, 256> classes{};
    for (char c : {' ', '\t', '\r', '\v', '\f'}) classes[static_cast<unsigned char>(c)] = blank;
    for (char c : {'\n', '#'}) classes[static_cast<unsigned char>(c)] = closing;
    return classes;
}();

inline bool is_blank(char c) { return char_classes[static_cast<unsigned char>(c)] == blank; }
inline bool ends_line(char c) { return char_classes[static_cast<unsigned char>(c)] == closing; }
inline bool ends_token(char c) { return char_classes[static_cast<unsigned char>(c)] != ordinary; }
inline unsigned digit(char c) { return static_cast<unsigned char>(c) - unsigned{'0'}; }
inline bool is_digit(char c) { return digit(c) < 10; }

inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

inline std::string_view token_at(const char* p) {
    const char* end = p;
    while (!ends_token(*end)) ++end;
    return {p, static_cast<std::size_t>(end - p)};
}

inline bool all_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// ---- numbers

inline constexpr std::array<double, 23> powers_of_ten = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// 5^27 < 2^64: all of these are exact in a long double of 64 bits.
inline constexpr std::array<long double, 28> long_powers_of_ten = {
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
    1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

// The nearest double to mantissa * 10^exponent where one rounding of the extended type settles it.
// requires: 0 <= mantissa < 2^63
// ensures: true and the value, or false if the result could lie on the other side of a tie.
inline bool round_once(std::uint64_t mantissa, std::int64_t exponent, double& value) {
    if constexpr (std::numeric_limits<long double>::digits != 64 || sizeof(long double) != 16) {
        return false;
    } else {
        if (exponent < -27 || exponent > 27) return false;
        const auto m = static_cast<long double>(static_cast<std::int64_t>(mantissa));
        const long double x = exponent < 0 ? m / long_powers_of_ten[static_cast<std::size_t>(-exponent)]
                                           : m * long_powers_of_ten[static_cast<std::size_t>(exponent)];
        std::uint64_t bits = 0;
        std::memcpy(&bits, &x, sizeof bits);
        // The double keeps 53 of the 64 bits. Rounding is monotone, so x on one side of a tie means that the exact
        // quotient is on that side too; only x on the tie itself says nothing.
        if ((bits & 0x7FF) == 0x400) return false;
        value = static_cast<double>(x);
        return true;
    }
}

// Any decimal number, by the standard library.
// requires: [p, end) matches the grammar of parse_number, without a leading '+'
// ensures: the nearest double; +-inf if too large, +-0 if too small.
inline double parse_slowly(const char* p, const char* end) {
    double value = 0.0;
    if (std::from_chars(p, end, value).ec != std::errc::result_out_of_range) return value;
    // Too large or too small: the place of the first digit that is not zero tells.
    const bool negative = *p == '-';
    const char* mark = std::find_if(p, end, [](char c) { return c == 'e' || c == 'E'; });
    const char* point = std::find(p, mark, '.');
    const char* first = std::find_if(p, mark, [](char c) { return is_digit(c) && c != '0'; });
    const bool explicit_plus = mark != end && mark + 1 != end && mark[1] == '+';
    std::int64_t exponent = 0;
    const char* exponent_text = mark == end ? end : mark + (explicit_plus ? 2 : 1);
    if (std::from_chars(exponent_text, end, exponent).ec == std::errc::result_out_of_range)
        exponent = *exponent_text == '-' ? -(std::int64_t{1} << 60) : std::int64_t{1} << 60;
    const double limit = exponent + (point - first) > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    return negative ? -limit : limit;
}

// [+-] digits [. digits] [e [+-] digits], with at least one digit before the exponent.
// requires: a byte that is no digit, sign, point or 'e' comes before the end of memory ('\n' does)
// ensures: the first byte after the number and the nearest double (perhaps +-inf), or nullptr if there is none.
inline const char* parse_number(const char* p, double& value) {
    const bool negative = *p == '-';
    p += negative || *p == '+';
    const char* first = p;
    std::uint64_t mantissa = 0;
    for (; is_digit(*p); ++p) mantissa = mantissa * 10 + digit(*p);
    std::int64_t n_digits = p - first;
    std::int64_t exponent = 0;
    if (*p == '.') {
        const char* fraction = ++p;
        for (; is_digit(*p); ++p) mantissa = mantissa * 10 + digit(*p);
        exponent = fraction - p;
        n_digits -= exponent;
    }
    if (n_digits == 0) return nullptr;
    if (*p == 'e' || *p == 'E') {
        ++p;
        const bool down = *p == '-';
        p += down || *p == '+';
        if (!is_digit(*p)) return nullptr;
        std::int64_t written = 0;
        for (; is_digit(*p); ++p) written = std::min<std::int64_t>(written * 10 + digit(*p), 1'000'000);
        exponent += down ? -written : written;
    }
    // Zeros in front are no digits of the mantissa: 0.00012345678901234567 has 17.
    if (n_digits > 19)
        for (const char* q = first; *q == '0' || *q == '.'; ++q) n_digits -= *q == '0';
    // Clinger: a product or quotient of two exact doubles is rounded once, so it is the nearest.
    if (n_digits <= 19 && mantissa <= (std::uint64_t{1} << 53) && exponent >= -22 && exponent <= 22) {
        const auto m = static_cast<double>(mantissa);
        const double x = exponent < 0 ? m / powers_of_ten[static_cast<std::size_t>(-exponent)]
                                      : m * powers_of_ten[static_cast<std::size_t>(exponent)];
        value = negative ? -x : x;
        return p;
    }
    if (n_digits <= 19 && mantissa < (std::uint64_t{1} << 63) && round_once(mantissa, exponent, value)) {
        if (negative) value = -value;
        return p;
    }
    value = parse_slowly(first - negative, p);
    return p;
}

// ensures: the integer that is the whole of `text` (a leading '+' is allowed), if it fits 64 bits.
inline std::optional<std::int64_t> parse_integer(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
        if (text.starts_with('-')) return std::nullopt;
    }
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
    return value;
}

// ---- what is wrong with a token: off the fast path, so it may look at the token again from the start

// requires: as parse_number; text is not empty
// ensures: true for nan, inf and infinity in any case and sign, and for numbers beyond the largest double.
inline bool not_finite(std::string_view text) {
    double value = 0.0;
    if (parse_number(text.data(), value) == text.data() + text.size()) return !std::isfinite(value);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    std::string lower(text.substr(0, 9));
    for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return lower == "nan" || lower == "inf" || lower == "infinity";
}

inline Problem label_problem(std::string_view token) {
    if (token.find(':') != token.npos) return Problem::missing_label;
    double value = 0.0;
    const char* end = parse_number(token.data(), value);
    if (end != nullptr && *end == ',') return Problem::multi_label;
    return not_finite(token) ? Problem::label_not_finite : Problem::bad_label;
}

inline Problem entry_problem(std::string_view token) {
    if (token.starts_with("qid:")) return Problem::misplaced_query;
    const std::size_t colon = token.find(':');
    if (colon == token.npos) return Problem::missing_colon;
    std::string_view index = token.substr(0, colon);
    if (index.starts_with('-') && all_digits(index.substr(1))) return Problem::negative_index;
    if (index.starts_with('+')) index.remove_prefix(1);
    if (!all_digits(index)) return Problem::bad_index;
    if (!parse_integer(index)) return Problem::index_too_large;
    const std::string_view value = token.substr(colon + 1);
    if (value.empty()) return Problem::missing_value;
    return not_finite(value) ? Problem::value_not_finite : Problem::bad_value;
}

inline BadLine bad_line(Problem problem, std::string_view token, std::int64_t index = 0) {
    BadLine bad;
    bad.problem = problem;
    bad.index = index;
    constexpr std::size_t room = 30;
    const bool clipped = token.size() > room;
    const std::size_t kept = clipped ? room - 3 : token.size();
    for (std::size_t i = 0; i < kept; ++i) bad.found[i] = token[i] >= ' ' && token[i] <= '~' ? token[i] : '?';
    if (clipped) std::fill_n(bad.found.begin() + kept, 3, '.');
    return bad;
}

// What was expected and what was found, in one line.
inline std::string describe(const BadLine& bad) {
    const std::string text(bad.found.data());
    const std::string found = text.empty() ? "found the end of the line" : "found '" + text + "'";
    switch (bad.problem) {
        case Problem::bad_label: return "expected a number as label, " + found;
        case Problem::label_not_finite: return "expected a finite label, " + found;
        case Problem::missing_label: return "expected a label before the first index:value, " + found;
        case Problem::multi_label: return "expected one label, " + found + " (multi-label files are not supported)";
        case Problem::empty_query: return "expected an id after 'qid:', " + found;
        case Problem::zero_in_query: return "expected an id without zero bytes after 'qid:', " + found;
        case Problem::missing_query: return "expected 'qid:' after the label as in the first sample, " + found;
        case Problem::unexpected_query: return "expected no 'qid:' as in the first sample, " + found;
        case Problem::misplaced_query: return "expected 'qid:' only right after the label, " + found + " further on";
        case Problem::missing_colon: return "expected index:value, " + found;
        case Problem::bad_index: return "expected a whole number as index, " + found;
        case Problem::negative_index: return "expected an index of 0 or more, " + found;
        case Problem::index_too_large: return "expected an index below 2^63, " + found;
        case Problem::zero_index: return "expected indices from 1 on (zero_based is false), " + found;
        case Problem::missing_value: return "expected a value after the colon, " + found;
        case Problem::bad_value: return "expected a number as value, " + found;
        case Problem::value_not_finite: return "expected a finite value, " + found;
        case Problem::value_too_large: return "expected a value within the range of float32, " + found;
        case Problem::duplicate_index:
            return "expected each index once, but index " + std::to_string(bad.index) + " appears twice";
    }
    return found;
}

// ---- chunks

struct Counts {
    std::int64_t lines = 0;
    std::int64_t colons = 0;
};

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
    bool out_of_memory = false;
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
                if (std::ssize(result_.bad) < std::max<std::int64_t>(options_.keep_bad, 1))
                    result_.bad.push_back(bad_);
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
        scratch_.clear();
        for (std::size_t i = start; i < end; ++i) scratch_.emplace_back(place_.indices[i], place_.values[i]);
        std::sort(scratch_.begin(), scratch_.end(), [](auto& a, auto& b) { return a.first < b.first; });
        for (std::size_t i = start; i < end; ++i)
            std::tie(place_.indices[i], place_.values[i]) = scratch_[i - start];
        const auto same = [](auto& a, auto& b) { return a.first == b.first; };
        const auto twice = std::adjacent_find(scratch_.begin(), scratch_.end(), same);
        if (twice == scratch_.end()) return true;
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
    std::vector<std::pair<Index, Value>> scratch_;
};

// ---- the whole

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
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1 && n > 1)
        for (std::ptrdiff_t c = 0; c < n; ++c)
            counts[static_cast<std::size_t>(c)] = count(chunks[static_cast<std::size_t>(c)]);
        return counts;
    }

    template <class Index>
    std::vector<ChunkResult> parse_all(Buffer<Index>& indices, const Chunks& chunks,
                                       const std::vector<Counts>& counts, int threads) {
        const auto places = make_places(indices, counts);
        std::vector<ChunkResult> results(chunks.size());
        const auto n = std::ssize(chunks);
        const bool has_query = this->has_query();
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1 && n > 1)
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const auto c = static_cast<std::size_t>(i);
            try {
                results[c] = ChunkParser<Index, Value>(options_, has_query, places[c]).parse(chunks[c]);
            } catch (const std::bad_alloc&) {
                results[c].out_of_memory = true;
            }
        }
        const auto failed = [](const ChunkResult& r) { return r.out_of_memory; };
        if (std::any_of(results.begin(), results.end(), failed)) throw std::bad_alloc();
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
            places.push_back({labels_.at(row, c.lines), {}, ends_.at(row + 1, c.lines),
                              indices.at(entry, c.colons), values_.at(entry, c.colons)});
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
