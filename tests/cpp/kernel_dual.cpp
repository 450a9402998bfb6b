// Kernel values by tiles and working sets on the dual under the sanitizers, on heap memory of exactly the right size.
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "checks.hpp"
#include "core/kernel_dual.hpp"
#include "core/kernel_values.hpp"

using namespace cutsvm;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double uniform(std::mt19937& rng) { return static_cast<double>(rng()) / 4294967296.0; }

// The one call that is made of xGEMM: C = A'B + beta C.
template <class T>
void naive_gemm(const char*, const char*, const int* m, const int* n, const int* k, const T*, const T* a,
                const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) {
    for (std::int64_t j = 0; j < *n; ++j)
        for (std::int64_t i = 0; i < *m; ++i) {
            T sum = 0;
            for (std::int64_t l = 0; l < *k; ++l) sum += a[i * *lda + l] * b[j * *ldb + l];
            T& to = c[j * *ldc + i];
            to = *beta == T(0) ? sum : to + sum;
        }
}

template <class T>
struct Points {
    std::int64_t n, d;
    std::vector<T> x, squares;

    Points(std::mt19937& rng, std::int64_t rows, std::int64_t features)
        : n(rows), d(features), x(at(rows * features)), squares(at(rows)) {
        for (T& value : x) value = static_cast<T>(uniform(rng) - 0.5);
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < d; ++j) squares[at(i)] += x[at(i * d + j)] * x[at(i * d + j)];
    }

    Block<T> block() const { return {x.data(), squares.data(), n, d}; }

    double value(const KernelFunction& kernel, std::int64_t i, const Points& other, std::int64_t j) const {
        double dot = 0.0, distance = 0.0;
        for (std::int64_t k = 0; k < d; ++k) {
            const auto p = static_cast<double>(x[at(i * d + k)]), q = static_cast<double>(other.x[at(j * d + k)]);
            dot += p * q, distance += (p - q) * (p - q);
        }
        switch (kernel.kind) {
            case KernelKind::rbf:
                return std::exp(-kernel.gamma * distance) + kernel.offset;
            case KernelKind::poly:
                return std::pow(kernel.gamma * dot + kernel.coef0, kernel.degree) + kernel.offset;
            case KernelKind::sigmoid:
                return std::tanh(kernel.gamma * dot + kernel.coef0) + kernel.offset;
            default:
                return dot + kernel.offset;
        }
    }
};

template <class T>
bool close(double a, double b, double size = 1.0) {
    return std::abs(a - b) <= (sizeof(T) == 4 ? 1e-4 : 1e-11) * (size + std::abs(a) + std::abs(b));
}

// Rows at places of their own, scores and the matrix of all pairs, for tiles that are full and that are not.
template <class T>
void values(std::mt19937& rng, std::int64_t n, std::int64_t d, int threads) {
    for (const KernelKind kind : {KernelKind::linear, KernelKind::poly, KernelKind::rbf, KernelKind::sigmoid}) {
        const KernelFunction kernel{kind, 0.7, 0.3, 1.0, 3};
        const Points<T> some(rng, 5, d), all(rng, n, d);
        const std::vector<std::int64_t> places{6, 0, 3, 1, 4};
        const std::int64_t stride = n + 2;
        std::vector<T> rows(at(6 * stride + n));
        kernel_rows<T>(naive_gemm<T>, kernel, some.block(), all.block(), places, rows.data(), stride, threads);
        std::vector<double> coef(5), scores(at(n), 0.5);
        for (double& value : coef) value = uniform(rng) - 0.5;
        kernel_scores<T>(naive_gemm<T>, kernel, some.block(), all.block(), coef, scores, threads);
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0.5;
            for (std::int64_t i = 0; i < 5; ++i) {
                const double expected = some.value(kernel, i, all, j);
                expect(close<T>(expected, rows[at(places[at(i)] * stride + j)]), "kernel rows", static_cast<long>(j));
                sum += coef[at(i)] * expected;
            }
            expect(close<T>(sum, scores[at(j)], 5.0), "kernel scores", static_cast<long>(j));
        }
        std::vector<double> factors(at(n)), own(at(n), 0.5), once(at(n), 0.5);
        for (double& value : factors) value = uniform(rng) - 0.5;
        const std::int64_t tiles = count_tiles(n);
        kernel_own_scores<T>(naive_gemm<T>, kernel, all.block(), factors, 0, tiles / 2, own, threads);
        kernel_own_scores<T>(naive_gemm<T>, kernel, all.block(), factors, tiles / 2, tiles, own, threads);
        kernel_scores<T>(naive_gemm<T>, kernel, all.block(), all.block(), factors, once, threads);
        for (std::int64_t j = 0; j < n; ++j)
            expect(close<T>(once[at(j)], own[at(j)], static_cast<double>(n)), "scores of rows with themselves",
                   static_cast<long>(j));
        std::vector<T> matrix(at(n * n));
        kernel_matrix<T>(naive_gemm<T>, kernel, all.block(), matrix.data(), threads);
        for (std::int64_t i = 0; i < n; i += 7)
            for (std::int64_t j = 0; j < n; ++j) {
                expect(close<T>(all.value(kernel, i, all, j), matrix[at(i * n + j)]), "kernel matrix", i);
                expect(matrix[at(i * n + j)] == matrix[at(j * n + i)], "a symmetric matrix", i);
            }
    }
}

template <class T>
void exponential() {
    for (double x = 0.0; x > (sizeof(T) == 4 ? -87.0 : -708.0); x -= 0.37) {
        const double expected = std::exp(static_cast<double>(static_cast<T>(x)));
        const double off = std::abs(static_cast<double>(exp_negative(static_cast<T>(x))) - expected);
        expect(off <= 4.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * expected, "exp",
               static_cast<long>(x));
    }
    expect(exp_negative(T(0)) == T(1) && exp_negative(T(-1e30)) > T(0), "the ends of exp", 0);
}

// A dual on the values of a matrix, with a cache of `capacity` rows; tube: two variables for each row.
template <class V>
struct Dual {
    std::int64_t n;
    std::vector<V> matrix;
    std::vector<V> memory;
    std::vector<std::int64_t> columns;
    DualState state;
    RowCache<V> cache;

    Dual(std::mt19937& rng, std::int64_t rows, std::int64_t capacity, bool intercept, bool tube)
        : n(rows),
          matrix(at(rows * rows)),
          memory(at(capacity * rows)),
          columns(at(rows)),
          cache(memory.data(), rows, capacity, rows, [this](auto which, auto places) { fill(which, places); }) {
        const Points<V> points(rng, n, 3);
        kernel_matrix<V>(naive_gemm<V>, {KernelKind::rbf, 2.0, 0.0, 0.0, 1}, points.block(), matrix.data(), 1);
        std::iota(columns.begin(), columns.end(), 0);
        state.free_intercept = intercept;
        for (int side = 0; side < (tube ? 2 : 1); ++side)
            for (std::int64_t i = 0; i < n; ++i) {
                const bool up = tube ? side == 0 : rng() % 2 == 0;
                const double cap = static_cast<double>(rng() % 4);
                state.c.push_back(tube ? std::sin(static_cast<double>(i)) + (up ? -0.1 : 0.1) : up ? 1.0 : -1.0);
                state.low.push_back(up ? 0.0 : -cap), state.high.push_back(up ? cap : 0.0);
                state.s.push_back(0.0), state.row_of.push_back(i);
            }
        state.f.assign(at(n), 0.0), state.sizes.assign(at(n), 1.0);
    }

    void fill(View<const std::int64_t> which, View<const std::int64_t> places) {
        for (std::int64_t k = 0; k < which.size(); ++k)
            for (std::int64_t j = 0; j < std::ssize(columns); ++j)
                memory[at(places[k] * cache.stride() + j)] = matrix[at(columns[at(which[k])] * n + columns[at(j)])];
    }

    DualEnd run(std::int64_t size, std::int64_t iterations, int threads) {
        Interrupt interrupt;
        return solve_dual(state, cache, {size, 0.5, 0.1, 100'000, 1e-9}, 1e-5, iterations, threads, interrupt);
    }

    double value() const {
        double sum = -0.5 * state.norm;
        for (std::size_t v = 0; v < state.s.size(); ++v) sum += state.c[v] * state.s[v];
        return sum;
    }

    void check(const char* what) const {
        double sum = 0.0, size = 0.0;
        for (std::size_t v = 0; v < state.s.size(); ++v) {
            expect(state.low[v] <= state.s[v] && state.s[v] <= state.high[v], what, static_cast<long>(v));
            sum += state.s[v], size += std::abs(state.s[v]);
        }
        if (state.free_intercept) expect(std::abs(sum) <= 1e-9 * (1.0 + size), what, -1);
    }
};

template <class V>
void iterations(std::mt19937& rng, std::int64_t n, std::int64_t capacity, bool intercept, bool tube) {
    Dual<V> dual(rng, n, capacity, intercept, tube);
    double before = 0.0;
    for (int k = 0; k < 4; ++k) {
        dual.run(5, 1, 1 + k % 3);
        dual.check("s after an iteration");
        expect(dual.value() >= before - 1e-6 * (1.0 + std::abs(before)), "the dual value", k);
        before = dual.value();
    }
    // Every other row is left out, with its variables.
    std::vector<std::int64_t> rows, number(at(n), -1);
    DualState& state = dual.state;
    for (std::int64_t i = 0; i < n; i += 2) number[at(i)] = std::ssize(rows), rows.push_back(i);
    DualState some;
    some.free_intercept = intercept, some.norm = state.norm;
    for (std::size_t v = 0; v < state.s.size(); ++v) {
        const std::int64_t row = number[at(state.row_of[v])];
        if (row < 0) continue;
        some.c.push_back(state.c[v]), some.low.push_back(state.low[v]), some.high.push_back(state.high[v]);
        some.s.push_back(state.s[v]), some.row_of.push_back(row);
    }
    for (const std::int64_t i : rows) some.f.push_back(state.f[at(i)]), some.sizes.push_back(1.0);
    double kept = 0.0;
    for (const double s : some.s) kept += s;
    state = some;
    dual.cache.keep(rows);
    dual.columns = rows;
    dual.run(5, 2000, 2);
    double sum = 0.0;
    for (std::size_t v = 0; v < state.s.size(); ++v) {
        expect(state.low[v] <= state.s[v] && state.s[v] <= state.high[v], "s of some rows", static_cast<long>(v));
        sum += state.s[v];
    }
    if (intercept) expect(std::abs(sum - kept) <= 1e-9 * (1.0 + std::abs(kept)), "the sum of some rows", n);
}

template <class V>
void pairs(std::mt19937& rng, std::int64_t n, int threads) {
    const Dual<V> data(rng, n, 2, true, false);
    const std::vector<double> Cs{0.1, 1.0, 10.0};
    std::vector<std::int32_t> rows;
    std::vector<double> a;
    for (int p = 0; p < 2; ++p)
        for (std::int64_t i = 0; i < n; ++i) {
            rows.push_back(static_cast<std::int32_t>(n - 1 - i));
            a.push_back(i % 5 == 4 ? (i % 2 ? -0.0 : 0.0) : (i % 2 ? -1.0 : 1.0));
        }
    const std::vector<std::int64_t> first{0, n, 2 * n};
    const auto check = [&](const auto& source) {
        std::vector<double> alpha(at(2 * n * 4)), scores(at(2 * n));
        std::vector<DualSeen> seen(6);
        solve_pairs(source, {rows, a, first}, Cs, true, {}, 1e-5, 1000, std::numeric_limits<double>::infinity(),
                    alpha.data(), 4, seen.data(), scores, threads);
        for (std::size_t k = 0; k < 6; ++k) {
            const double gap = seen[k].primal - seen[k].dual;
            expect(gap >= -1e-5, "bounds of pairs", static_cast<long>(k));
            expect(gap <= 1e-3 * (1e-6 + seen[k].primal), "gaps of pairs", static_cast<long>(k));
        }
        for (std::size_t i = 0; i < a.size(); ++i)
            for (std::size_t c = 0; c < 3; ++c)
                expect(0.0 <= alpha[4 * i + c] && alpha[4 * i + c] <= Cs[c] * std::abs(a[i]), "alpha of pairs",
                       static_cast<long>(i));
    };
    check(MatrixValues<V>{data.matrix.data(), n});
    const Points<V> points(rng, n, 3);
    check(ComputedValues<V>{naive_gemm<V>, {KernelKind::rbf, 0.7, 0.0, 0.0, 1}, points.block()});
}

}  // namespace

int main() {
    std::mt19937 rng(5);
    exponential<float>();
    exponential<double>();
    for (const std::int64_t d : {0, 1, 130})
        for (const std::int64_t n : {1, 256, 300}) {
            values<float>(rng, n, d, 2);
            values<double>(rng, n, d, 1);
        }
    for (const bool intercept : {true, false})
        for (const bool tube : {true, false})
            for (const std::int64_t n : {1, 2, 9, 60})
                for (const std::int64_t capacity : {2, 3, 60}) {
                    iterations<float>(rng, n, capacity, intercept, tube);
                    iterations<double>(rng, n, capacity, intercept, tube);
                }
    for (const std::int64_t n : {2, 30, 90}) {
        pairs<float>(rng, n, 1);
        pairs<double>(rng, n, 3);
    }
    std::printf("%d failures\n", failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
