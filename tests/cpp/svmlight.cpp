// The svmlight reader under the sanitizers: buffers are exact, so that reading one byte too far is caught.
//   g++ -std=c++20 -fopenmp -fsanitize=address,undefined -Isrc tests/cpp/svmlight.cpp -o svmlight && ./svmlight
#include "core/svmlight.hpp"

#include <cstdio>
#include <random>
#include <source_location>

using namespace cutsvm::svmlight;
using namespace std::string_literals;

namespace {

int failures = 0;

void check(bool ok, const char* what, std::source_location at = std::source_location::current()) {
    if (ok) return;
    ++failures;
    std::fprintf(stderr, "line %u: %s\n", static_cast<unsigned>(at.line()), what);
}

// All that a reader says of a text, in a form that compares.
struct Parsed {
    std::vector<double> labels;
    std::vector<std::int64_t> queries;
    std::vector<std::int64_t> text_rows;
    std::vector<std::string> texts;
    std::vector<std::int64_t> pointers;
    std::vector<std::int64_t> indices;
    std::vector<double> values;
    std::vector<std::pair<std::int64_t, std::string>> bad;
    std::int64_t n_bad = 0;
    bool operator==(const Parsed&) const = default;
};

template <class T, class U>
void take(std::vector<U>& into, T* data, std::int64_t size) {
    into.assign(data, data + size);
    std::free(data);
}

template <class Value>
Parsed parsed_by(Reader<Value>& reader, const std::vector<BadLine>& bad) {
    Parsed out;
    for (const BadLine& line : bad) out.bad.emplace_back(line.line, describe(line));
    out.n_bad = reader.n_bad();
    const std::int64_t rows = reader.rows();
    const std::int64_t entries = reader.entries();
    take(out.labels, reader.release_labels(), rows);
    for (std::string_view text : reader.query_texts()) out.texts.emplace_back(text);
    take(out.text_rows, reader.release_text_rows(), reader.n_text_rows());
    if (reader.has_query()) take(out.queries, reader.release_queries(), rows);
    take(out.pointers, reader.release_pointers(), rows + 1);
    if (reader.wide()) take(out.indices, reader.release_wide_indices(), entries);
    if (!reader.wide()) take(out.indices, reader.release_narrow_indices(), entries);
    take(out.values, reader.release_values(), entries);
    return out;
}

// Feeds a copy of the text that ends where its memory ends.
template <class Value = double>
Parsed read(std::string_view text, int threads = 1, Options options = {}) {
    const auto exact = std::make_unique<char[]>(text.size());
    std::copy(text.begin(), text.end(), exact.get());
    Reader<Value> reader(options);
    const auto bad = reader.feed({exact.get(), text.size()}, threads);
    return parsed_by(reader, bad);
}

void check_valid() {
    const Parsed out = read("# head\n+1 qid:4\t3:0.5  1:-2e-1 # c: d\r\n\n-1 qid:4 \r\n 2.5 qid:-9 4000000000:+7");
    check(out.bad.empty(), "no bad line");
    check(out.labels == std::vector<double>{1, -1, 2.5}, "labels");
    check(out.queries == std::vector<std::int64_t>{4, 4, -9}, "queries");
    check(out.pointers == std::vector<std::int64_t>{0, 2, 2, 3}, "pointers");
    check(out.indices == std::vector<std::int64_t>{1, 3, 4000000000}, "indices, sorted and wide");
    check(out.values == std::vector<double>{-0.2, 0.5, 7}, "values");
    check(out.text_rows.empty() && out.texts.empty(), "no query is text");
    check(read("").pointers == std::vector<std::int64_t>{0}, "empty text");
    check(read("\n \n#").labels.empty(), "no samples");
    check(read<float>("1 1:0.1").values == std::vector<double>{0.1F}, "float32");
}

// Ids that are no integers: the query is a place among the texts, which are those of good rows only.
void check_text_queries() {
    const std::string text = "1 qid:7\n1 qid:a:b 1:1\n1 qid:bad 1:x\n\n1 qid:+07\n1 qid:9223372036854775808\n1 qid:a:b";
    for (const std::int64_t bytes : {1, 20, 1000}) {
        const Parsed out = read(text, 2, {.keep_bad = 5, .chunk_bytes = bytes});
        check(out.n_bad == 1 && out.bad[0].first == 3, "the bad line");
        check(out.queries == std::vector<std::int64_t>{7, 0, 7, 1, 0}, "integers and places");
        check(out.text_rows == std::vector<std::int64_t>{1, 3, 4}, "rows of texts");
        check(out.texts == std::vector<std::string>{"a:b", "9223372036854775808"}, "distinct texts, in order");
    }
    const Parsed wide = read("1 qid:b 1:1\n1 qid:a 4000000000:1", 1, {.chunk_bytes = 1});
    check(wide.texts == std::vector<std::string>{"b", "a"} && wide.text_rows.size() == 2, "parsed again for int64");
    check(read("1 qid:\xff\xfe").texts == std::vector<std::string>{"\xff\xfe"}, "any bytes");
    check(read("1 qid:-").texts == std::vector<std::string>{"-"}, "a sign alone");
}

void check_invalid() {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"x", "expected a number as label, found 'x'"},
        {"nan", "expected a finite label, found 'nan'"},
        {"1:2", "expected a label before the first index:value, found '1:2'"},
        {"1,2", "expected one label, found '1,2' (multi-label files are not supported)"},
        {"1 qid:1", "expected no 'qid:' as in the first sample, found 'qid:1'"},
        {"1 1:1 qid:1", "expected 'qid:' only right after the label, found 'qid:1' further on"},
        {"1 3", "expected index:value, found '3'"},
        {"1 a:3", "expected a whole number as index, found 'a:3'"},
        {"1 -3:3", "expected an index of 0 or more, found '-3:3'"},
        {"1 9223372036854775808:1", "expected an index below 2^63, found '9223372036854775808:1'"},
        {"1 3:", "expected a value after the colon, found '3:'"},
        {"1 3:x", "expected a number as value, found '3:x'"},
        {"1 3:inf", "expected a finite value, found '3:inf'"},
        {"1 3:1e999", "expected a finite value, found '3:1e999'"},
        {"1 3:1 2:1 3:1", "expected each index once, but index 3 appears twice"},
    };
    for (const auto& [line, message] : cases) {
        for (const char* after : {"", "\n", "\n1 1:1\n1 bad\n"}) {
            const Parsed out = read("1 1:1\n\n" + line + after);
            check(out.bad.size() == 1 && out.bad[0].first == 3 && out.bad[0].second == message, message.c_str());
        }
    }
    const Parsed queries = read("1 qid:1\n1\n1 qid:\n1 qid:2 2:2", 1, {.keep_bad = 5});
    check(queries.bad[1].second == "expected an id after 'qid:', found 'qid:'", "an id is needed");
    check(read("1 qid:a\0"s).bad[0].second.starts_with("expected an id without zero bytes"), "no zero in an id");
    check(queries.n_bad == 2 && queries.bad[0].first == 2 && queries.bad[1].first == 3, "queries are checked");
    check(queries.labels.size() == 2 && queries.queries.back() == 2, "good lines are kept");
    check(read("1 1:1\n1 0:1", 1, {.min_index = 1}).bad[0].first == 2, "index below the base");
    check(read<float>("1 1:1e39").bad.size() == 1, "beyond float32");
    check(read("1 1:1\n1 x\n1 y\n1 z", 2, {.keep_bad = 2, .chunk_bytes = 1}).bad.size() == 2, "bounded list");
}

void check_numbers() {
    std::mt19937_64 random(1);
    for (int i = 0; i < 50'000; ++i) {
        char text[64];
        const std::uint64_t bits = random();
        double x = 0.0;
        std::memcpy(&x, &bits, sizeof x);
        if (i % 2 == 0) x = static_cast<double>(bits >> 11) * 0x1p-53;
        if (!std::isfinite(x)) continue;
        std::snprintf(text, sizeof text, "%.*g\n", 1 + i % 19, x);
        double found = 0.0;
        const char* end = parse_number(text, found);
        check(end != nullptr && *end == '\n' && found == std::strtod(text, nullptr), text);
    }
}

std::string random_line(std::mt19937& random, bool with_query) {
    std::string line = std::to_string(static_cast<int>(random() % 5) - 2);
    if ((random() % 8 == 0) != with_query) line += " qid:" + (random() % 2 ? "q"s : ""s) + std::to_string(random() % 9);
    for (unsigned i = random() % 6, index = 0; i > 0; --i) {
        index += 1 + random() % (random() % 50 == 0 ? 2'000'000'000U : 20U);
        line += " " + std::to_string(index) + ":" + std::to_string(static_cast<int>(random() % 2000) - 1000);
        line += "." + std::to_string(random() % 1'000'000) + (random() % 5 == 0 ? "e-3" : "");
    }
    return line;
}

// Any text, cut and shared out in any way, gives the same result; nothing is read beyond its end.
void check_mutations() {
    std::mt19937 random(2);
    const std::string alphabet = "0123456789:.,+-eE# \t\r\nqidnaf\0\x7f\xff"s;
    for (int round = 0; round < 6'000; ++round) {
        std::string text;
        const bool with_query = random() % 3 == 0;
        for (unsigned i = random() % 6; i > 0; --i)
            text += random_line(random, with_query) + (random() % 9 ? "\n" : "\r\n\n");
        for (unsigned i = random() % 5; i > 0 && !text.empty(); --i) {
            const std::size_t at = random() % text.size();
            if (random() % 3 == 0)
                text.erase(at, 1 + random() % 4);
            else if (random() % 2 == 0)
                text.insert(at, 1, alphabet[random() % alphabet.size()]);
            else
                text[at] = alphabet[random() % alphabet.size()];
        }
        text.resize(text.size() - random() % (text.size() + 1) / 4);
        const Parsed whole = read(text, 1, {.keep_bad = 100});
        const auto bytes = static_cast<std::int64_t>(1 + random() % 40);
        const bool same = whole == read(text, 1 + round % 2, {.keep_bad = 100, .chunk_bytes = bytes});
        check(same, "chunks do not matter");
        check(whole.n_bad == std::ssize(whole.bad), "bad lines are counted");
        const Parsed strict = read(text, 1 + round % 2, {.chunk_bytes = bytes});
        check(strict.bad.size() == std::min<std::size_t>(whole.bad.size(), 1), "one error or none");
        check(strict.bad.empty() || strict.bad[0] == whole.bad[0], "the first error");
    }
}

// Blocks of one file and the next: line numbers start again, samples go on.
void check_files() {
    Reader<double> reader({.keep_bad = 3});
    check(reader.feed(std::string_view("1 1:1\n1 x\n"), 1)[0].line == 2, "first block");
    check(reader.feed(std::string_view("1 y\n1 4000000000:1"), 1)[0].line == 3, "second block goes on");
    reader.start_file();
    const auto bad = reader.feed(std::string_view("1 2:1\n1 y"), 1);
    check(bad[0].line == 2, "second file starts again");
    const Parsed out = parsed_by(reader, bad);
    check(out.indices == std::vector<std::int64_t>{1, 4000000000, 2}, "indices widen in a later block");
    check(out.n_bad == 3, "bad lines add up");

    Reader<double> ranked({});
    ranked.feed(std::string_view("1 qid:1\n1 qid:b\n"), 1);
    ranked.start_file();
    const Parsed queries = parsed_by(ranked, ranked.feed(std::string_view("1 qid:a\n1 qid:2\n1 qid:b"), 1));
    check(queries.queries == std::vector<std::int64_t>{1, 0, 1, 2, 0}, "a text is one query in all blocks");
    check(queries.text_rows == std::vector<std::int64_t>{1, 2, 4}, "rows of texts go on");
}

}  // namespace

int main() {
    check_valid();
    check_text_queries();
    check_invalid();
    check_numbers();
    check_mutations();
    check_files();
    if (failures == 0) std::puts("svmlight: ok");
    return failures == 0 ? 0 : 1;
}
