// Array arguments as the kernels take them: read in place, never converted, never copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>

#include "core/view.hpp"

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using VectorOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2D = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // any strides
template <class T>
using Array2DOut = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// How many entries an array has along an axis.
template <class Array>
std::int64_t extent(const Array& array, std::size_t axis = 0) {
    return static_cast<std::int64_t>(array.shape(axis));
}

template <class T>
cutsvm::View<const T> view(const Vector<T>& a) {
    return {a.data(), extent(a)};
}
template <class T>
cutsvm::View<T> view(const VectorOut<T>& a) {
    return {a.data(), extent(a)};
}

// call() with the GIL released.
template <class Call>
auto released(const Call& call) {
    nb::gil_scoped_release release;
    return call();
}

// A NumPy array that owns the vector's memory.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T>&& values) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner);
}
