// The bound data matrix: dense in either order or CSR, float32 or float64, checked when it is made and read in place.
#pragma once

#include <algorithm>
#include <variant>

#include "bindings/arrays.hpp"
#include "core/rows.hpp"

inline void check(bool fine, const char* what) {
    if (!fine) throw nb::value_error(what);
}

// A view of the rows together with the arrays that it reads, which live as long as it does.
class Matrix {
  public:
    // requires: the rows or the columns of X are contiguous.
    template <class T>
    Matrix(const Array2D<T>& X, int threads) : rows_(dense(X)), owners_{held(X)}, threads_(threads) {
        check(threads > 0, "threads: 1 or more expected");
    }
    // requires: pointers never fall, and columns lie in 0..d-1, which valid_csr checks.
    template <class T, class I>
    Matrix(const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, std::int64_t d, int threads)
        : rows_(sparse(values, columns, pointers, d)),
          owners_{held(values), held(columns), held(pointers)},
          threads_(threads) {
        check(threads > 0, "threads: 1 or more expected");
    }

    // use(rows) with the kind of rows that these are.
    template <class Use>
    decltype(auto) visit(const Use& use) const {
        return std::visit(use, rows_);
    }

    int threads() const { return threads_; }
    std::int64_t n() const {
        return visit([](const auto& rows) { return rows.n; });
    }
    std::int64_t d() const {
        return visit([](const auto& rows) { return rows.d; });
    }
    std::int64_t entries() const {
        return visit([](const auto& rows) { return rows.entries(); });
    }

    // use(rows, others) with the kinds of both.
    template <class Use>
    void visit_with(const Matrix& other, const Use& use) const {
        std::visit(use, rows_, other.rows_);
    }

  private:
    using Rows = std::variant<cutsvm::DenseRows<float>, cutsvm::DenseRows<double>, cutsvm::ColumnRows<float>,
                              cutsvm::ColumnRows<double>, cutsvm::SparseRows<float, std::int32_t>,
                              cutsvm::SparseRows<float, std::int64_t>, cutsvm::SparseRows<double, std::int32_t>,
                              cutsvm::SparseRows<double, std::int64_t>>;

    template <class Array>
    static nb::ndarray<> held(const Array& array) {
        return nb::ndarray<>(array.handle());
    }
    template <class T>
    static Rows dense(const Array2D<T>& X) {
        const auto n = extent(X), d = extent(X, 1);
        if (X.stride(1) == 1 || d == 1 || n == 0) return cutsvm::DenseRows<T>{X.data(), n, d, X.stride(0)};
        check(X.stride(0) == 1 || n == 1, "X: contiguous rows or columns expected");
        return cutsvm::ColumnRows<T>{X.data(), n, d, X.stride(1)};
    }
    template <class T, class I>
    static Rows sparse(const Vector<T>& values, const Vector<I>& columns, const Vector<I>& pointers, std::int64_t d) {
        check(pointers.shape(0) > 0, "pointers: n + 1 entries expected");
        check(values.shape(0) == columns.shape(0), "values and columns differ in length");
        const auto all = view(pointers);
        check(0 <= all.front() && all.front() <= all.back() && all.back() <= extent(values) && d >= 0,
              "pointers: rising from 0 to the number of values expected");
        return cutsvm::SparseRows<T, I>{values.data(), columns.data(), pointers.data(), all.size() - 1, d};
    }

    Rows rows_;
    nb::ndarray<> owners_[3];
    int threads_;
};

using BoundMatrix = nb::class_<Matrix>;

// Edges of pieces of n rows.
inline void check_edges(const Vector<std::int64_t>& edges, std::int64_t pieces, std::int64_t n) {
    check(extent(edges) == pieces + 1 && pieces > 0, "edges: one more than pieces expected");
    const auto all = view(edges);
    check(all.front() == 0 && all.back() == n && std::is_sorted(all.begin(), all.end()),
          "edges: rising from 0 to n expected");
}
