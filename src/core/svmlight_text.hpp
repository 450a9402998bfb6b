// Characters, tokens and numbers of svmlight text (core/svmlight.hpp), and what can be wrong with them.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

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
    std::int64_t index = 0;           // of duplicate_index
    std::array<char, 32> found = {};  // the offending token, clipped and printable, closed by a zero
};

struct Options {
    std::int64_t min_index = 0;          // a smaller index is an error
    std::int64_t keep_bad = 0;           // 0: stop at the first bad line; k: skip bad lines, remember k per block
    std::int64_t chunk_bytes = 1 << 20;  // about how much text a thread takes at a time
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

// [+-] digits. Beyond any text's length and any double's range the value stays at its limit, so that sums of it and
// of lengths cannot overflow.
// requires: a byte that is no digit comes before the end of memory
// ensures: the first byte after the digits, or nullptr if there is none, and the number
inline std::pair<const char*, std::int64_t> parse_exponent(const char* p) {
    constexpr std::int64_t limit = 100'000'000'000'000'000;  // 10^17: ten times as much and 9 still fit
    const bool down = *p == '-';
    p += down || *p == '+';
    if (!is_digit(*p)) return {nullptr, 0};
    std::int64_t written = 0;
    for (; is_digit(*p); ++p) written = std::min<std::int64_t>(written * 10 + digit(*p), limit);
    return {p, down ? -written : written};
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
    const std::int64_t exponent = mark == end ? 0 : parse_exponent(mark + 1).second;
    const bool is_zero = first == mark;
    const double limit = !is_zero && exponent + (point - first) > 0 ? std::numeric_limits<double>::infinity() : 0.0;
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
        const auto [after, written] = parse_exponent(p + 1);
        if (after == nullptr) return nullptr;
        p = after;
        exponent += written;
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
        case Problem::bad_label:
            return "expected a number as label, " + found;
        case Problem::label_not_finite:
            return "expected a finite label, " + found;
        case Problem::missing_label:
            return "expected a label before the first index:value, " + found;
        case Problem::multi_label:
            return "expected one label, " + found + " (multi-label files are not supported)";
        case Problem::empty_query:
            return "expected an id after 'qid:', " + found;
        case Problem::zero_in_query:
            return "expected an id without zero bytes after 'qid:', " + found;
        case Problem::missing_query:
            return "expected 'qid:' after the label as in the first sample, " + found;
        case Problem::unexpected_query:
            return "expected no 'qid:' as in the first sample, " + found;
        case Problem::misplaced_query:
            return "expected 'qid:' only right after the label, " + found + " further on";
        case Problem::missing_colon:
            return "expected index:value, " + found;
        case Problem::bad_index:
            return "expected a whole number as index, " + found;
        case Problem::negative_index:
            return "expected an index of 0 or more, " + found;
        case Problem::index_too_large:
            return "expected an index below 2^63, " + found;
        case Problem::zero_index:
            return "expected indices from 1 on (zero_based is false), " + found;
        case Problem::missing_value:
            return "expected a value after the colon, " + found;
        case Problem::bad_value:
            return "expected a number as value, " + found;
        case Problem::value_not_finite:
            return "expected a finite value, " + found;
        case Problem::value_too_large:
            return "expected a value within the range of float32, " + found;
        case Problem::duplicate_index:
            return "expected each index once, but index " + std::to_string(bad.index) + " appears twice";
    }
    return found;
}

}  // namespace cutsvm::svmlight
