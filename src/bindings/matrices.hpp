// Data matrices as the kernels take them: dense in either order, or CSR.
#pragma once

#include <algorithm>

#include "bindings/arrays.hpp"
#include "core/rows.hpp"

inline void check(bool fine, const char* what) {
    if (!fine) throw nb::value_error(what);
}

// Calls use(rows) with the dense rows in the order that the strides ask for.
template <class T, class Use>
auto with_dense(const Matrix<T>& X, const Use& use) {
    const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1));
    if (X.stride(1) == 1 || d == 1 || n == 0) return use(cutsvm::DenseRows<T>{X.data(), n, d, X.stride(0)});
    check(X.stride(0) == 1 || n == 1, "X: rows or columns side by side expected");
    return use(cutsvm::ColumnRows<T>{X.data(), n, d, X.stride(1)});
}

template <class T, class I>
cutsvm::SparseRows<T, I> sparse(const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, std::int64_t d) {
    check(pointers.shape(0) > 0, "pointers: n + 1 entries expected");
    check(values.shape(0) == columns.shape(0), "values and columns differ in length");
    return {values.data(), columns.data(), pointers.data(), static_cast<std::int64_t>(pointers.shape(0)) - 1, d};
}

// Edges of pieces of n rows.
inline void check_edges(const Vector<std::int64_t>& edges, std::size_t pieces, std::int64_t n) {
    check(edges.shape(0) == pieces + 1 && pieces > 0, "edges: one more than pieces expected");
    const auto all = view(edges);
    check(all.front() == 0 && all.back() == n && std::is_sorted(all.begin(), all.end()),
          "edges: rising from 0 to n expected");
}
