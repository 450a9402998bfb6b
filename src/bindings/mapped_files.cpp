// Bindings of core/mapped_files.hpp.
#include "core/mapped_files.hpp"

#include "bindings/arrays.hpp"

using namespace cutsvm;

namespace {

using Bytes = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>;

struct MappedFiles {
    std::shared_ptr<MappedGroup> group = std::make_shared<MappedGroup>();
};

// The bytes of the file; it is unmapped with the last array that refers to it.
Bytes map_file(const MappedFiles& files, int descriptor, std::size_t size) {
    try {
        auto file = std::make_unique<MappedFile>(descriptor, size, files.group);
        const std::uint8_t* data = file->data();
        nb::capsule owner(file.release(), [](void* p) noexcept { delete static_cast<MappedFile*>(p); });
        return Bytes(data, {size}, owner);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::not_enough_memory) throw std::bad_alloc();
        errno = error.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
}

}  // namespace

void bind_mapped_files(nb::module_& m) {
    nb::class_<MappedFiles>(m, "MappedFiles")
        .def(nb::init<>())
        .def("map", &map_file, "descriptor"_a, "size"_a)
        .def_prop_ro("lost", [](const MappedFiles& files) { return files.group->lost.load(); });
}
