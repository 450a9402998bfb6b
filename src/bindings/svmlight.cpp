// Bindings of the svmlight reader.
#include "core/svmlight.hpp"

#include "bindings/arrays.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

namespace {

using namespace cutsvm::svmlight;

// A NumPy array that owns memory to be freed with std::free.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> adopt(T* data, std::int64_t size) {
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {static_cast<std::size_t>(size)}, owner);
}

template <class Value>
std::vector<std::tuple<std::int64_t, std::string>> feed(Reader<Value>& reader, const Vector<std::uint8_t>& text,
                                                        int n_threads) {
    std::vector<BadLine> bad;
    {
        nb::gil_scoped_release nogil;
        // The bytes of the file are characters; char may look at any memory.
        bad = reader.feed({reinterpret_cast<const char*>(text.data()), text.shape(0)}, std::max(n_threads, 1));
    }
    std::vector<std::tuple<std::int64_t, std::string>> lines;
    for (const BadLine& line : bad) lines.emplace_back(line.line, describe(line));
    return lines;
}

// The id of each row, the rows whose id is text, and the distinct texts: in those rows the id is a place among them.
template <class Value>
nb::tuple take_queries(Reader<Value>& reader) {
    nb::list texts;
    for (std::string_view text : reader.query_texts()) texts.append(nb::bytes(text.data(), text.size()));
    return nb::make_tuple(adopt(reader.release_queries(), reader.rows()),
                          adopt(reader.release_text_rows(), reader.n_text_rows()), texts);
}

// labels, queries or None, indptr, indices (int32 or int64), values
template <class Value>
nb::tuple take(Reader<Value>& used) {
    Reader<Value> reader = std::exchange(used, Reader<Value>(Options{}));  // a second call finds it empty
    const std::int64_t rows = reader.rows();
    const std::int64_t entries = reader.entries();
    nb::object queries = nb::none();
    if (reader.has_query()) queries = take_queries(reader);
    nb::object indices = reader.wide() ? nb::cast(adopt(reader.release_wide_indices(), entries))
                                       : nb::cast(adopt(reader.release_narrow_indices(), entries));
    return nb::make_tuple(adopt(reader.release_labels(), rows), queries, adopt(reader.release_pointers(), rows + 1),
                          indices, adopt(reader.release_values(), entries));
}

constexpr char TAKE[] =
    "def take(self) -> tuple[numpy.typing.NDArray[numpy.float64], "
    "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], list[bytes]] | None, "
    "numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[typing.Any]]";

template <class Value>
void bind_reader(nb::module_& m, const char* name) {
    using R = Reader<Value>;
    const auto make = [](R* self, std::int64_t min_index, std::int64_t keep_bad, std::int64_t chunk_bytes) {
        std::construct_at(self, Options{min_index, keep_bad, chunk_bytes});
    };
    nb::class_<R>(m, name)
        .def("__init__", make, nb::kw_only(), "min_index"_a = 0, "keep_bad"_a = 0, "chunk_bytes"_a = 1 << 20)
        .def("start_file", &R::start_file)
        .def("feed", &feed<Value>, "text"_a.noconvert(), "n_threads"_a)
        .def("take", &take<Value>, nb::sig(TAKE))
        .def_prop_ro("rows", &R::rows)
        .def_prop_ro("min_index", &R::min_index)
        .def_prop_ro("max_index", &R::max_index)
        .def_prop_ro("n_bad", &R::n_bad);
}

}  // namespace

void bind_svmlight(nb::module_& m) {
    bind_reader<double>(m, "SvmlightReader64");
    bind_reader<float>(m, "SvmlightReader32");
}
