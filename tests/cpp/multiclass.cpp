// The kernels for several classes under the sanitizers, on heap memory of exactly the right size.
#include "core/multiclass.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "checks.hpp"

using namespace cutsvm;

namespace {

// Small integers, so that every sum is exact and ties are many.
struct Problem {
    std::int64_t n, d, classes, shards;
    std::vector<double> X, W, b, f, to, s;
    std::vector<std::int32_t> y, old, fresh;
    std::vector<std::int64_t> bounds;

    Problem(std::mt19937& rng, std::int64_t rows, std::int64_t K)
        : n(rows), d(1 + rng() % 9), classes(K), shards(1 + rng() % 20) {
        const auto draw = [&](std::int64_t size, int low, int high) {
            std::vector<double> values(static_cast<std::size_t>(size));
            for (double& v : values) v = low + static_cast<int>(rng() % static_cast<unsigned>(high - low + 1));
            return values;
        };
        const auto draw_classes = [&] {
            std::vector<std::int32_t> values(static_cast<std::size_t>(n));
            for (std::int32_t& v : values) v = static_cast<std::int32_t>(rng() % static_cast<unsigned>(K));
            return values;
        };
        X = draw(n * d, -2, 2);
        W = draw(K * d, -3, 3);
        b = draw(K, -1, 1);
        f = draw(n * K, -2, 2);
        to = draw(n * K, -3, 3);
        s = draw(n, 0, 3);
        y = draw_classes();
        old = draw_classes();
        fresh = draw_classes();
        for (std::int64_t p = 0; p <= shards; ++p) bounds.push_back(n * p / shards);
    }

    double x(std::int64_t i, std::int64_t j) const { return X[static_cast<std::size_t>(i * d + j)]; }
    ClassScores scores() const { return {f.data(), n, classes, y, s}; }
    double height(const std::vector<double>& g, std::int64_t i, std::int64_t k) const {
        const std::int32_t own = y[static_cast<std::size_t>(i)];
        if (k == own) return 0.0;
        return 1.0 + g[static_cast<std::size_t>(i * classes + k)] - g[static_cast<std::size_t>(i * classes + own)];
    }
    double loss_at(double k) const {
        std::vector<double> g(f.size());
        for (std::size_t j = 0; j < g.size(); ++j) g[j] = f[j] + k * (to[j] - f[j]);
        double sum = 0.0;
        for (std::int64_t i = 0; i < n; ++i) {
            double top = 0.0;
            for (std::int64_t c = 0; c < classes; ++c) top = std::max(top, height(g, i, c));
            sum += s[static_cast<std::size_t>(i)] * top;
        }
        return sum;
    }
};

template <class Rows>
void check_rows(const Problem& p, const Rows& rows, int threads) {
    const auto size = static_cast<std::size_t>(p.n * p.classes);
    std::vector<double> out(size);
    scores_many(rows, p.W.data(), p.b, out.data(), threads);
    for (std::int64_t i = 0; i < p.n; ++i)
        for (std::int64_t k = 0; k < p.classes; ++k) {
            double sum = p.b[static_cast<std::size_t>(k)];
            for (std::int64_t j = 0; j < p.d; ++j) sum += p.x(i, j) * p.W[static_cast<std::size_t>(k * p.d + j)];
            expect(out[static_cast<std::size_t>(i * p.classes + k)] == sum, "scores_many", i);
        }
    // From every row its own class to `old` and on to `fresh`: the sums are those of `fresh` alone.
    const std::int64_t width = p.classes * p.d;
    std::vector<double> sums(static_cast<std::size_t>(p.shards * width)), expected(sums.size());
    std::vector<double> moved(static_cast<std::size_t>(p.shards));
    std::vector<std::int32_t> now = p.y;
    for (const auto* next : {&p.old, &p.fresh})
        accumulate_choices(rows, p.classes, p.y, p.s, now, *next, p.bounds, sums.data(), width, moved, threads);
    for (std::int64_t q = 0; q < p.shards; ++q)
        for (std::int64_t i = p.bounds[static_cast<std::size_t>(q)]; i < p.bounds[static_cast<std::size_t>(q) + 1];
             ++i) {
            const auto r = static_cast<std::size_t>(i);
            if (p.fresh[r] == p.y[r]) continue;
            for (std::int64_t j = 0; j < p.d; ++j) {
                expected[static_cast<std::size_t>(q * width + p.fresh[r] * p.d + j)] += p.s[r] * p.x(i, j);
                expected[static_cast<std::size_t>(q * width + p.y[r] * p.d + j)] -= p.s[r] * p.x(i, j);
            }
        }
    expect(sums == expected, "accumulate_choices", p.n);
    expect(now == p.fresh, "accumulate_choices: old = fresh", p.n);
    std::vector<double> groups(static_cast<std::size_t>(p.classes * (p.d + 1)));
    group_sums(rows, p.s, p.y, p.classes, groups.data(), threads);
    double weight = 0.0, total = 0.0;
    for (std::int64_t k = 0; k < p.classes; ++k) weight += groups[static_cast<std::size_t>(k * (p.d + 1) + p.d)];
    for (const double s : p.s) total += s;
    expect(weight == total, "group_sums", p.n);
}

template <class T>
void check_layouts(const Problem& p, int threads) {
    std::vector<double> turned;
    std::vector<std::int64_t> pointers{0}, columns;
    std::vector<double> stored;
    for (std::int64_t j = 0; j < p.d; ++j)
        for (std::int64_t i = 0; i < p.n; ++i) turned.push_back(p.x(i, j));
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int64_t j = 0; j < p.d; ++j)
            if (p.x(i, j) != 0.0) {
                columns.push_back(j);
                stored.push_back(p.x(i, j));
            }
        pointers.push_back(static_cast<std::int64_t>(columns.size()));
    }
    const auto heap = [](const std::vector<double>& values) {
        auto out = std::make_unique<T[]>(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
        return out;
    };
    const auto by_row = heap(p.X), by_column = heap(turned), values = heap(stored);
    check_rows(p, DenseRows<T>{by_row.get(), p.n, p.d, p.d}, threads);
    check_rows(p, ColumnRows<T>{by_column.get(), p.n, p.d, p.n}, threads);
    check_rows(p, SparseRows<T, std::int64_t>{values.get(), columns.data(), pointers.data(), p.n, p.d}, threads);
}

void check_loss(const Problem& p, int threads) {
    expect(near(multi_value(p.scores(), threads), p.loss_at(0.0)), "multi_value", p.n);
    std::vector<std::int32_t> choice(p.y.size());
    std::vector<double> offsets(static_cast<std::size_t>(p.shards)),
        pulls(offsets.size() * static_cast<std::size_t>(p.classes));
    multi_choose(p.scores(), p.bounds, choice, offsets, pulls.data(), threads);
    double touch = 0.0;
    for (std::int64_t i = 0; i < p.n; ++i)
        touch += p.s[static_cast<std::size_t>(i)] * p.height(p.f, i, choice[static_cast<std::size_t>(i)]);
    expect(near(touch, p.loss_at(0.0)), "multi_choose touches the loss", p.n);
    const ClassLine line{p.scores(), p.to.data()};
    const std::array<double, LINE_POINTS> ks{-3.0, -1.0, -0.5, 0.0, 0.3, 1.0, 1.7, 5.0};
    const LineValues values = multi_evaluate(line, ks, threads);
    for (std::size_t m = 0; m < LINE_POINTS; ++m)
        expect(near(values.constant[m] + ks[m] * values.slope[m], p.loss_at(ks[m])), "multi_evaluate", p.n);
    std::vector<Breakpoint> breakpoints = multi_breakpoints(line, ks[0], ks[LINE_POINTS - 1], threads);
    double gained = 0.0;
    for (const Breakpoint& breakpoint : breakpoints) gained += breakpoint.jump;
    expect(near(values.slope[0] + gained, values.slope[LINE_POINTS - 1]), "multi_breakpoints: all that the slope gains",
           p.n);
    const double k = crossing(breakpoints, values.slope[0], 0.5, 0.0, ks[0], ks[LINE_POINTS - 1]);
    if (values.slope[0] + 0.5 * ks[0] < 0.0 && k < ks[LINE_POINTS - 1])  // then it is the lowest point
        for (const double other : {k - 1e-3, k + 1e-3})
            expect(p.loss_at(k) + 0.25 * k * k <= p.loss_at(other) + 0.25 * other * other + 1e-9, "crossing", p.n);
    std::vector<std::int32_t> group(p.y.size(), 77);
    const auto kept = multi_sift(p.scores(), 0.5, group, threads);
    for (const std::int64_t i : kept) expect(group[static_cast<std::size_t>(i)] == KEPT, "multi_sift", i);
    expect(multi_violators(p.scores(), group, threads).empty(), "multi_violators", p.n);
}

}  // namespace

int main() {
    std::mt19937 rng(7);
    for (const std::int64_t n : {1, 2, 3, 5, 257, 4095, 4097})
        for (const std::int64_t classes : {2, 3, 8, 9})
            for (int threads = 1; threads <= 2; ++threads) {
                const Problem p(rng, n, classes);
                check_layouts<float>(p, threads);
                check_layouts<double>(p, threads);
                check_loss(p, threads);
            }
    if (failures == 0) std::puts("all kernels agree");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
