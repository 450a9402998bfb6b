// libFuzzer target of the svmlight text parser: tests/fuzz/libfuzzer.sh builds and runs it.
//
// The first byte of an input says how it is parsed, the rest is the text. Buffers are exact, so that the address
// sanitizer sees a read of one byte too many. What is accepted must be valid CSR with finite values, must not depend on
// how the text is cut into blocks and chunks, and its numbers must be those of strtod.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/svmlight.hpp"

namespace {

using namespace cutsvm::svmlight;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "violated: %s\n", what);
    std::abort();
}

template <class T>
std::vector<T> owned(T* data, std::int64_t size) {
    std::vector<T> copy(data, data + size);
    std::free(data);
    return copy;
}

struct Parsed {
    std::vector<double> labels, values;
    std::vector<std::int64_t> queries, text_rows, pointers, indices;
    std::vector<std::string> texts, bad;
    std::int64_t n_bad = 0, min_index = 0, max_index = 0;
    bool operator==(const Parsed&) const = default;
};

template <class Value>
Parsed take(Reader<Value>& reader, const std::vector<std::string>& bad) {
    Parsed out;
    const std::int64_t rows = reader.rows(), entries = reader.entries();
    out.bad = bad;
    out.n_bad = reader.n_bad(), out.min_index = reader.min_index(), out.max_index = reader.max_index();
    for (std::string_view text : reader.query_texts()) out.texts.emplace_back(text);
    out.text_rows = owned(reader.release_text_rows(), reader.n_text_rows());
    if (reader.has_query()) out.queries = owned(reader.release_queries(), rows);
    out.labels = owned(reader.release_labels(), rows);
    out.pointers = owned(reader.release_pointers(), rows + 1);
    const auto widened = [](const auto& narrow) { return std::vector<std::int64_t>(narrow.begin(), narrow.end()); };
    out.indices = reader.wide() ? owned(reader.release_wide_indices(), entries)
                                : widened(owned(reader.release_narrow_indices(), entries));
    const auto values = owned(reader.release_values(), entries);
    out.values.assign(values.begin(), values.end());
    return out;
}

// The samples of the text, fed in two blocks that meet behind the first newline from `cut_at` on.
template <class Value>
Parsed read(std::string_view text, Options options, std::size_t cut_at) {
    Reader<Value> reader(options);
    std::vector<std::string> bad;
    reader.start_file();
    const std::size_t newline = text.find('\n', cut_at);
    const std::size_t middle = newline == text.npos ? text.size() : newline + 1;
    for (std::string_view block : {text.substr(0, middle), text.substr(middle)}) {
        const auto exact = std::make_unique<char[]>(block.size());
        std::copy(block.begin(), block.end(), exact.get());
        for (const BadLine& line : reader.feed({exact.get(), block.size()}, 1))
            bad.push_back(std::to_string(line.line) + ": " + describe(line));
        if (options.keep_bad == 0 && !bad.empty()) break;
    }
    return take(reader, bad);
}

void check_csr(const Parsed& out, std::int64_t least) {
    const auto entries = static_cast<std::int64_t>(out.values.size());
    require(out.pointers.front() == 0 && out.pointers.back() == entries, "pointers from 0 to the number of entries");
    for (std::size_t i = 0; i + 1 < out.pointers.size(); ++i) {
        require(out.pointers[i] <= out.pointers[i + 1], "rising pointers");
        for (std::int64_t k = out.pointers[i]; k < out.pointers[i + 1]; ++k) {
            const std::int64_t index = out.indices[static_cast<std::size_t>(k)];
            require(index >= least && index >= out.min_index && index <= out.max_index, "index in range");
            require(k == out.pointers[i] || out.indices[static_cast<std::size_t>(k) - 1] < index, "sorted, each once");
        }
    }
    for (double value : out.values) require(std::isfinite(value), "finite values");
    for (double label : out.labels) require(std::isfinite(label), "finite labels");
    for (std::int64_t row : out.text_rows) {
        const std::int64_t place = out.queries[static_cast<std::size_t>(row)];
        require(place >= 0 && place < static_cast<std::int64_t>(out.texts.size()), "text of a query");
    }
}

// Every token of the text as a number: as strtod reads it, to the last bit.
void check_numbers(std::string_view text) {
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find_first_of(" \t\r\v\f\n#:", start), text.size());
        const std::string token = std::string(text.substr(start, end - start)) + '\n';
        double value = 0.0;
        const char* after = parse_number(token.data(), value);
        if (after != nullptr && *after == '\n') {
            const double expected = std::strtod(token.c_str(), nullptr);
            require(value == expected && std::signbit(value) == std::signbit(expected), "the number that strtod reads");
        }
        start = end + 1;
    }
}

template <class Value>
void check(std::string_view text, Options options, std::size_t cut_at) {
    const Parsed out = read<Value>(text, options, cut_at);
    check_csr(out, options.min_index);
    if (options.keep_bad > 0 && out.n_bad > options.keep_bad) return;  // how many are kept goes by the block
    if (cut_at >= text.size() && options.chunk_bytes > static_cast<std::int64_t>(text.size())) return;
    options.chunk_bytes = 1 << 20;
    const Parsed whole = read<Value>(text, options, text.size());
    if (options.keep_bad > 0 || out.bad.empty()) require(out == whole, "the same in blocks and as a whole");
    require(out.bad == whole.bad, "the same bad lines in blocks and as a whole");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::uint8_t how = data[0];
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::int64_t chunk_bytes = how >= 0x80 ? 1 << 20 : 1 + (how >> 4) * 8;
    const Options options{.min_index = how & 1, .keep_bad = (how & 2) != 0 ? 3 : 0, .chunk_bytes = chunk_bytes};
    const std::size_t cut_at = (how & 8) != 0 ? text.size() / 2 : text.size();
    if ((how & 4) != 0) check<float>(text, options, cut_at);
    if ((how & 4) == 0) check<double>(text, options, cut_at);
    check_numbers(text);
    return 0;
}
