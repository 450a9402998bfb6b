// The kernels under the address and undefined-behaviour sanitizers, on heap memory of exactly the right size.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "core/dcd.hpp"
#include "core/hinge.hpp"
#include "core/many.hpp"
#include "core/prefix.hpp"
#include "core/reduced.hpp"
#include "core/row_duals.hpp"
#include "core/sweep.hpp"
#include "core/tangents.hpp"

#include "checks.hpp"

using namespace cutsvm;

namespace {

// Values on the heap, so that a read beyond the end is seen.
template <class T>
std::unique_ptr<T[]> heap(const std::vector<double>& values) {
    auto out = std::make_unique<T[]>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
    return out;
}

struct Problem {
    std::int64_t n, d, shards;
    std::vector<double> X, w, f, to, a, old, fresh;  // X row by row, small integers: every sum is exact
    std::vector<std::int64_t> bounds;

    Problem(std::mt19937& rng, std::int64_t rows) : n(rows), d(1 + rng() % 9), shards(1 + rng() % 20) {
        const auto draw = [&](std::int64_t size, int span) {
            std::vector<double> values(static_cast<std::size_t>(size));
            for (double& v : values) v = static_cast<int>(rng() % (2 * span + 1)) - span;
            return values;
        };
        X = draw(n * d, 2);
        w = draw(d, 3);
        f = draw(n, 2);
        to = draw(n, 3);
        a = draw(n, 2);
        old = draw(n, 1);
        fresh = draw(n, 1);
        for (std::int64_t p = 0; p <= shards; ++p) bounds.push_back(n * p / shards);
    }

    double x(std::int64_t i, std::int64_t j) const { return X[static_cast<std::size_t>(i * d + j)]; }
};

template <class Rows>
void check_rows(const Problem& p, const Rows& rows, int threads) {
    std::vector<double> out(static_cast<std::size_t>(p.n));
    scores(rows, p.w.data(), 0.5, View(out), threads);
    for (std::int64_t i = 0; i < p.n; ++i) {
        double sum = 0.5;
        for (std::int64_t j = 0; j < p.d; ++j) sum += p.x(i, j) * p.w[static_cast<std::size_t>(j)];
        expect(out[static_cast<std::size_t>(i)] == sum, "scores", i);
    }
    for (const std::int64_t width : {p.d, p.d + 1}) {
        std::vector<double> old = p.old, sums(static_cast<std::size_t>(p.shards * width));
        std::vector<double> moved(static_cast<std::size_t>(p.shards));
        accumulate(rows, View(old), View(p.fresh), View(p.bounds), sums.data(), width, View(moved), threads);
        for (std::int64_t s = 0; s < p.shards; ++s)
            for (std::int64_t j = 0; j < width; ++j) {
                double sum = 0.0;
                for (std::int64_t i = p.bounds[static_cast<std::size_t>(s)];
                     i < p.bounds[static_cast<std::size_t>(s) + 1]; ++i)
                    sum += (p.fresh[static_cast<std::size_t>(i)] - p.old[static_cast<std::size_t>(i)]) *
                           (j < p.d ? p.x(i, j) : 1.0);
                expect(sums[static_cast<std::size_t>(s * width + j)] == sum, "accumulate", j);
            }
        expect(old == p.fresh, "accumulate: old = fresh", width);
    }
}

// Squares, copies and sums per group of some rows.
template <class Rows>
void check_more_rows(const Problem& p, const Rows& rows, int threads) {
    const auto n = static_cast<std::size_t>(p.n), size = static_cast<std::size_t>(p.d) + 1;
    std::vector<double> out(n), sums(2 * size), expected(2 * size);
    squares(rows, View(out), threads);
    std::vector<std::int32_t> group(n);
    std::int64_t here = 0;
    for (std::int64_t i = 0; i < p.n; ++i) {
        const auto s = static_cast<std::size_t>(i);
        double sum = 0.0;
        for (std::int64_t j = 0; j < p.d; ++j) sum += p.x(i, j) * p.x(i, j);
        expect(out[s] == sum, "squares", i);
        group[s] = static_cast<std::int32_t>(s % 3) - 1;
        if (group[s] < 0 || p.a[s] == 0.0) continue;
        ++here;
        for (std::size_t j = 0; j < size; ++j)
            expected[static_cast<std::size_t>(group[s]) * size + j] +=
                std::abs(p.a[s]) * (j + 1 < size ? p.x(i, static_cast<std::int64_t>(j)) : 1.0);
    }
    expect(group_sums(rows, View(p.a), View<const std::int32_t>(group), 2, sums.data(), threads) == here,
           "group_sums: rows read", p.n);
    expect(sums == expected, "group_sums", p.n);
    std::vector<std::int64_t> which;
    for (std::int64_t i = p.n - 1; i >= 0; i -= 2) which.push_back(i);
    std::vector<double> taken(which.size() * static_cast<std::size_t>(p.d));
    take(rows, View<const std::int64_t>(which), taken.data(), threads);
    for (std::size_t k = 0; k < taken.size(); ++k)
        expect(taken[k] == p.x(which[k / (size - 1)], static_cast<std::int64_t>(k % (size - 1))), "take", p.n);
}

// The loss at several points, and the planes there.
template <class Rows>
void check_tangents(const Problem& p, const Rows& rows, std::int64_t points, int threads) {
    const std::int64_t size = p.d + 1;
    std::vector<double> W, b, sums(static_cast<std::size_t>(p.shards * points * size));
    for (std::int64_t k = 0; k < points; ++k) {
        for (const double entry : p.w) W.push_back(entry * static_cast<double>(k - 3));
        b.push_back(0.5 * static_cast<double>(k));
    }
    std::vector<double> heights(static_cast<std::size_t>(p.shards * points * 2)), expected(sums), levels(heights);
    for (std::int64_t q = 0; q < p.shards; ++q)
        for (std::int64_t i = p.bounds[static_cast<std::size_t>(q)]; i < p.bounds[static_cast<std::size_t>(q) + 1]; ++i)
            for (std::int64_t k = 0; k < points; ++k) {
                const double a = p.a[static_cast<std::size_t>(i)];
                double f = b[static_cast<std::size_t>(k)];
                for (std::int64_t j = 0; j < p.d; ++j) f += p.x(i, j) * W[static_cast<std::size_t>(k * p.d + j)];
                if (std::abs(a) - a * f <= 0.0) continue;
                const auto at = static_cast<std::size_t>(q * points + k);
                for (std::int64_t j = 0; j < size; ++j)
                    expected[at * static_cast<std::size_t>(size) + static_cast<std::size_t>(j)] -=
                        a * (j < p.d ? p.x(i, j) : 1.0);
                levels[2 * at] += std::abs(a) - a * f;
                levels[2 * at + 1] += std::abs(a);
            }
    hinge_tangents(rows, View(p.a), W.data(), View<const double>(b), View(p.bounds), sums.data(), heights.data(),
                   threads);
    expect(sums == expected, "tangents: slopes", points);
    expect(heights == levels, "tangents: heights", points);
}

// The loss of the first rows until it exceeds a limit: row by row.
template <class Rows>
void check_prefix(const Problem& p, const Rows& rows, double limit, int threads) {
    const auto size = static_cast<std::size_t>(p.d + 1);
    std::vector<double> expected(size), slope(size), levels(2), heights(2);
    const double b = 0.5;
    std::int64_t stop = 0;
    while (stop < p.n && levels[0] <= limit) {
        const double a = p.a[static_cast<std::size_t>(stop)];
        double f = b;
        for (std::int64_t j = 0; j < p.d; ++j) f += p.x(stop, j) * p.w[static_cast<std::size_t>(j)];
        if (const double left = std::abs(a) - a * f; left > 0.0) {
            for (std::int64_t j = 0; j <= p.d; ++j)
                expected[static_cast<std::size_t>(j)] -= a * (j < p.d ? p.x(stop, j) : 1.0);
            levels[0] += left;
            levels[1] += std::abs(a);
        }
        ++stop;
    }
    const InsideSums sums{slope.data(), heights.data()};
    const auto found = hinge_prefix(rows, View(p.a), p.w.data(), b, limit, sums, threads);
    expect(found.rows == stop && found.read >= stop && found.read <= p.n, "prefix: rows", static_cast<long>(stop));
    expect(slope == expected, "prefix: slope", static_cast<long>(stop));
    expect(heights == levels, "prefix: heights", static_cast<long>(stop));
}

// Epochs of coordinate descent from a start that is not 0; one thread, or several that share w.
template <class Rows, class Loss>
void check_descent(const Problem& p, const Rows& rows, const Loss& loss, double unit, std::size_t run, int threads) {
    const auto n = static_cast<std::size_t>(p.n), d = static_cast<std::size_t>(p.d);
    const double C = 0.3;
    std::vector<double> q(n), alpha(n), w(d + 1), gaps(n), f(n, 0.5);
    squares(rows, View(q), 1);
    for (double& entry : q) entry += unit;
    std::vector<std::int32_t> order;
    for (std::size_t i = 0; i < n; ++i) {
        if (i % 3) alpha[i] = C * std::abs(p.a[i]) / static_cast<double>(i % 3);
        if (i % 5) order.push_back(static_cast<std::int32_t>(i));
    }
    clip_dual(loss, View(alpha), C, threads);
    const auto own_w = [&] {
        std::vector<double> sum(d + 1);
        for (std::size_t i = 0; i < n; ++i) {
            const double g = loss.label(static_cast<std::int64_t>(i)) * alpha[i];
            for (std::size_t j = 0; j < d; ++j)
                sum[j] += g * p.x(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
            sum[d] += g * unit;
        }
        return sum;
    };
    const auto value = [&] {
        double sum = dual_value(loss, View<const double>(alpha), C, threads);
        if (unit > 0.0) sum -= 0.5 * w[d] * w[d] / unit;
        for (std::size_t j = 0; j < d; ++j) sum -= 0.5 * w[j] * w[j];
        return sum;
    };
    w = own_w();
    const auto dual_of = [&](std::vector<double>& own) { return Dual<Loss>{loss, q, C, unit, own, {0.7, -0.7}}; };
    {  // both kinds of access to w do the same
        std::vector<double> alpha2 = alpha, w1 = w, w2 = w, alpha1 = alpha;
        std::vector<std::uint8_t> stays1(order.size()), stays2(order.size());
        const auto places = permutation(order.size(), run, 3);
        Interrupt interrupt;
        const Epoch one = visit(Own(rows), dual_of(alpha1), order, places, stays1, w1.data(), interrupt);
        const Epoch two = visit(Shared(rows), dual_of(alpha2), order, places, stays2, w2.data(), interrupt);
        bool same = near(one.gap, two.gap);
        for (std::size_t j = 0; j <= d; ++j) same = same && std::abs(w1[j] - w2[j]) <= 1e-6 * (1.0 + std::abs(w1[j]));
        expect(same, "visit: own and shared", p.n);
    }
    double before = value();
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const std::vector<std::int32_t> old = order;
        const Epoch epoch = descend(rows, dual_of(alpha), order, w, run, seed, threads);
        order.resize(static_cast<std::size_t>(epoch.active));
        expect(std::includes(old.begin(), old.end(), order.begin(), order.end()), "descend: rows that stay", p.n);
        for (std::size_t i = 0; i < n; ++i) {
            const auto [low, high] = loss.limits(static_cast<std::int64_t>(i), C);
            expect(low <= alpha[i] && alpha[i] <= high, "descend: limits", static_cast<long>(i));
        }
        dual_gaps(loss, View<const double>(f), View<const double>(alpha), C, View(gaps), threads);
        for (const double gap : gaps) expect(gap >= -1e-9, "gaps: below 0", p.n);
        if (threads > 1) continue;
        const std::vector<double> expected = own_w();
        for (std::size_t j = 0; j <= d; ++j) expect(near(w[j], expected[j]), "descend: w", p.n);
        expect(value() >= before - 1e-9 * (1.0 + std::abs(before)), "descend: the dual value falls", p.n);
        before = value();
    }
}

template <class Rows>
void check_descents(const Problem& p, const Rows& rows, double unit, std::size_t run, int threads) {
    std::vector<double> s(p.a.size());
    std::transform(p.a.begin(), p.a.end(), s.begin(), [](double a) { return std::abs(a); });
    const Labels labels{View<const double>(p.a)};
    const Targets targets{View<const double>(p.a), View<const double>(s), 0.25};
    check_descent(p, rows, Hinge{labels}, unit, run, threads);
    check_descent(p, rows, SquaredHinge{labels}, unit, run, threads);
    check_descent(p, rows, Logistic{labels}, unit, run, threads);
    check_descent(p, rows, Tube{targets, 0.8, 0.2}, unit, run, threads);
    check_descent(p, rows, SquaredTube{targets}, unit, run, threads);
    check_descent(p, rows, Huber{targets}, unit, run, threads);
}

template <class I, class T, class Rows>
void check_compress(const Problem& p, const Rows& rows, int threads) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(p.n));
    count_nonzeros(rows, View(counts), threads);
    std::vector<I> pointers{0};
    for (const std::int64_t count : counts) pointers.push_back(static_cast<I>(pointers.back() + count));
    std::vector<T> values(static_cast<std::size_t>(pointers.back()));
    std::vector<I> columns(values.size());
    compress(rows, View<const I>(pointers), View(values), View(columns), threads);
    std::size_t k = 0;
    for (std::int64_t i = 0; i < p.n; ++i)
        for (std::int64_t j = 0; j < p.d; ++j) {
            if (p.x(i, j) == 0.0) continue;
            expect(k < values.size() && static_cast<double>(values[k]) == p.x(i, j) && columns[k] == j, "compress", i);
            ++k;
        }
    expect(k == values.size(), "compress: count", p.n);
    bool sorted = false;
    const auto fine = [&] { return valid_csr(View<const I>(columns), View<const I>(pointers), p.d, sorted, threads); };
    expect(fine() && sorted, "valid_csr", p.n);
    if (values.empty()) return;
    for (const I wrong :
         {static_cast<I>(-1), static_cast<I>(p.d), std::numeric_limits<I>::max(), std::numeric_limits<I>::min()}) {
        const I right = std::exchange(columns.back(), wrong);
        expect(!fine(), "valid_csr: column", p.n);
        columns.back() = right;
    }
    for (const I wrong :
         {static_cast<I>(pointers.back() + 1), std::numeric_limits<I>::max(), std::numeric_limits<I>::min()}) {
        const I right = std::exchange(pointers.back(), wrong);  // nothing may be read beyond the end
        expect(!fine(), "valid_csr: last pointer", p.n);
        pointers.back() = right;
    }
    pointers.front() = 1;
    expect(!fine(), "valid_csr: first pointer", p.n);
}

template <class T>
void check_finite(std::int64_t n, int threads) {
    using Limits = std::numeric_limits<T>;
    const auto values = std::make_unique<T[]>(static_cast<std::size_t>(n));
    const std::array<T, 5> odd{Limits::max(), Limits::lowest(), Limits::denorm_min(), Limits::min(), T(-0.0)};
    for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = odd[static_cast<std::size_t>(i) % 5];
    const View<const T> all(values.get(), static_cast<std::size_t>(n));
    expect(all_finite(all, threads), "all_finite", n);
    for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1})
        for (const T bad : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
            const T old = std::exchange(values[static_cast<std::size_t>(place)], bad);
            expect(!all_finite(all, threads), "all_finite: not so", place);
            values[static_cast<std::size_t>(place)] = old;
        }
}

template <class Rows>
void check_ends_and_hashes(const Problem& p, const Rows& rows, int threads) {
    const auto n = static_cast<std::size_t>(p.n), d = static_cast<std::size_t>(p.d);
    std::vector<double> w(d, 0.5), exact(n), rest(n), plain(n), low(d), high(d);
    compensated_scores(rows, w.data(), 0.25, View<double>(exact), View<double>(rest), threads);
    scores(rows, w.data(), 0.25, View<double>(plain), threads);
    for (std::size_t i = 0; i < n; ++i) expect(near(exact[i], plain[i]), "compensated_scores", static_cast<long>(i));
    std::vector<std::uint64_t> hashes(n);
    row_hashes(rows, View<std::uint64_t>(hashes), threads);
    for (std::int64_t i = 0; i < p.n; ++i) {
        std::uint64_t sum = 0;
        for (std::int64_t j = 0; j < p.d; ++j) sum += p.x(i, j) != 0.0 ? value_hash(j, p.x(i, j)) : 0;
        expect(hashes[static_cast<std::size_t>(i)] == sum, "row_hashes", i);
    }
    if constexpr (requires { rows.ranges(0, 1, nullptr, nullptr); }) {
        column_ranges(rows, View<double>(low), View<double>(high), threads);
        for (std::int64_t j = 0; j < p.d; ++j) {
            double least = p.x(0, j), most = p.x(0, j);
            for (std::int64_t i = 1; i < p.n; ++i) {
                least = std::min(least, p.x(i, j));
                most = std::max(most, p.x(i, j));
            }
            const auto at = static_cast<std::size_t>(j);
            expect(low[at] == least && high[at] == most, "column_ranges", j);
        }
    }
}

template <class Rows>
void check_all(const Problem& p, const Rows& rows, int threads) {
    check_rows(p, rows, threads);
    check_ends_and_hashes(p, rows, threads);
    check_more_rows(p, rows, threads);
    for (const std::int64_t points : {1, 8, 9, 16}) check_tangents(p, rows, points, threads);
    for (const double limit : {0.0, 100.0, 5000.0, 1e9}) check_prefix(p, rows, limit, threads);
    check_descents(p, rows, p.d % 2 ? 1.0 : 0.0, p.shards % 2 ? 1 : 7, threads);
}

template <class T, class I>
void check_sparse(const Problem& p, int threads) {
    std::vector<double> values, columns, pointers{0.0};
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int64_t j = 0; j < p.d; ++j)
            if (p.x(i, j) != 0.0) {
                values.push_back(p.x(i, j));
                columns.push_back(static_cast<double>(j));
            }
        pointers.push_back(static_cast<double>(values.size()));
    }
    const auto v = heap<T>(values);
    const auto c = heap<I>(columns), q = heap<I>(pointers);
    const SparseRows<T, I> rows{v.get(), c.get(), q.get(), p.n, p.d};
    check_all(p, rows, threads);
    std::vector<std::int64_t> which;
    std::vector<I> to_pointers{0};
    for (std::int64_t i = p.n - 1; i >= 0; i -= 2) {
        which.push_back(i);
        to_pointers.push_back(
            static_cast<I>(to_pointers.back() + q[static_cast<std::size_t>(i) + 1] - q[static_cast<std::size_t>(i)]));
    }
    std::vector<T> to_values(static_cast<std::size_t>(to_pointers.back()));
    std::vector<I> to_columns(to_values.size());
    take(rows, View<const std::int64_t>(which), View<const I>(to_pointers), View(to_values), View(to_columns), threads);
    const SparseRows<T, I> taken{to_values.data(), to_columns.data(), to_pointers.data(), std::ssize(which), p.d};
    for (std::size_t k = 0; k < which.size(); ++k)
        expect(taken.dot(static_cast<std::int64_t>(k), p.w.data()) == rows.dot(which[k], p.w.data()), "take: CSR", p.n);
}

template <class T>
void check_layouts(const Problem& p, int threads) {
    const auto by_row = heap<T>(p.X);
    const DenseRows<T> rows{by_row.get(), p.n, p.d, p.d};
    check_all(p, rows, threads);
    check_compress<std::int32_t, T>(p, rows, threads);
    std::vector<double> turned;
    for (std::int64_t j = 0; j < p.d; ++j)
        for (std::int64_t i = 0; i < p.n; ++i) turned.push_back(p.x(i, j));
    const auto by_column = heap<T>(turned);
    const ColumnRows<T> columns{by_column.get(), p.n, p.d, p.n};
    check_all(p, columns, threads);
    check_compress<std::int64_t, T>(p, columns, threads);
    check_sparse<T, std::conditional_t<std::is_same_v<T, float>, std::int32_t, std::int64_t>>(p, threads);
    check_finite<T>(p.n, threads);
}

template <class Loss>
double loss_at(const Problem& p, const Loss& loss, bool shift, double k) {
    double sum = 0.0;
    for (std::size_t i = 0; i < p.f.size(); ++i) {
        const double f = p.f[i] + k * (shift ? 1.0 : p.to[i] - p.f[i]);
        sum += loss.value(static_cast<std::int64_t>(i), f);
    }
    return sum;
}

// The row's hinge that is above 0, and how far it is from the nearest breakpoint.
struct Piece {
    int hinge;
    double distance;
};
template <class Loss>
Piece piece_of(const Loss& loss, std::size_t row, double f) {
    const auto i = static_cast<std::int64_t>(row);
    Piece found{-1, INFINITY};
    for (int b = 0; b < Loss::HINGES; ++b) {
        const double gap = loss.gap(i, b, f);
        if (gap > 0.0) found.hinge = b;
        found.distance = std::min(found.distance, std::abs(gap));
    }
    return found;
}

template <class Loss>
void check_hinge(const Problem& p, const Loss& loss, int threads) {
    expect(near(loss_value(loss, p.f, threads), loss_at(p, loss, false, 0.0)), "loss_value", p.n);
    const auto shards = static_cast<std::size_t>(p.shards);
    std::vector<double> g(p.f.size()), offsets(shards), sizes(shards), magnitudes(shards);
    hinge_slopes(loss, p.f, {0.5, 0.25}, p.bounds, g, {offsets, sizes, magnitudes}, threads);
    double touch = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < g.size(); ++i) touch += g[i] * p.f[i];
    for (const double offset : offsets) sum += offset;
    expect(near(touch + sum, loss_at(p, loss, false, 0.0)), "hinge_slopes touch the loss", p.n);
    std::vector<std::int32_t> place(p.f.size(), 77);
    std::vector<std::int64_t> close, moved;
    for (std::size_t i = 0; i < p.f.size(); ++i) {
        const Piece before = piece_of(loss, i, p.f[i]), after = piece_of(loss, i, p.to[i]);
        const auto row = static_cast<std::int64_t>(i);
        if (loss.weight(row) == 0.0) continue;
        if (before.distance <= 1.0) close.push_back(row);
        if (before.distance > 1.0 && before.hinge != after.hinge && after.distance > 0.0) moved.push_back(row);
    }
    expect(hinge_sift(loss, p.f, 1.0, place, threads) == close, "hinge_sift", p.n);
    expect(hinge_violators(loss, p.f, place, threads).empty(), "hinge_violators: none", p.n);
    expect(hinge_violators(loss, p.to, place, threads) == moved, "hinge_violators", p.n);
    for (const bool shift : {false, true}) {
        const Line line{p.f, shift ? View<const double>() : View<const double>(p.to)};
        const std::array<double, LINE_POINTS> ks{-3.0, -1.0, -0.5, 0.0, 0.3, 1.0, 1.7, 5.0};
        const LineValues values = hinge_evaluate(loss, line, ks, threads);
        for (std::size_t m = 0; m < LINE_POINTS; ++m)
            expect(near(values.constant[m] + ks[m] * values.slope[m], loss_at(p, loss, shift, ks[m])), "hinge_evaluate",
                   p.n);
        std::vector<Breakpoint> breakpoints = hinge_breakpoints(loss, line, ks[0], ks[LINE_POINTS - 1], threads);
        const double k = crossing(breakpoints, values.slope[0], 0.5, 0.0, ks[0], ks[LINE_POINTS - 1]);
        expect(k > ks[0] && k <= ks[LINE_POINTS - 1], "crossing stays inside", p.n);
        if (values.slope[0] + 0.5 * ks[0] < 0.0 && k < ks[LINE_POINTS - 1])  // then it is the lowest point
            for (const double other : {k - 1e-3, k + 1e-3})
                expect(loss_at(p, loss, shift, k) + 0.25 * k * k <=
                           loss_at(p, loss, shift, other) + 0.25 * other * other + 1e-9,
                       "crossing is the minimum", p.n);
    }
}

// The hinge loss of the labels, and the tube around them with their weights.
void check_hinges(const Problem& p, int threads) {
    check_hinge(p, Hinge{{p.a}}, threads);
    std::vector<double> weights;
    for (const double a : p.a) weights.push_back(std::abs(a));
    check_hinge(p, Tube{{p.a, weights, 0.5}, 0.75, 0.25}, threads);
}

void check_cholesky(std::mt19937& rng, std::size_t n) {
    Cholesky c(n);
    const std::size_t rows = n + 3, stride = c.H.size;
    std::vector<double> P(rows * stride), x(n), right(n);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < n; ++j) P[i * stride + j] = static_cast<int>(rng() % 9) - 4.0;
    for (std::size_t i = 0; i < n; ++i) {
        c.H.row(i)[i] = 1.0;  // H = 1 + P'P
        x[i] = right[i] = static_cast<int>(rng() % 9) - 4.0;
    }
    add_products(c.H, P.data(), stride, rows);
    expect(c.factorise(), "factorise", static_cast<long>(n));
    c.solve(x.data());
    for (std::size_t j = 0; j < n; ++j) {
        double sum = x[j];
        for (std::size_t i = 0; i < rows; ++i) sum += P[i * stride + j] * dot(P.data() + i * stride, x.data(), n);
        expect(near(sum, right[j]), "solve", static_cast<long>(n));
    }
    c.H.clear();
    c.H.row(n - 1)[n - 1] = -1.0;
    expect(!c.factorise(), "factorise refuses", static_cast<long>(n));
}

// Planes in a random order of shards, in both forms: the bound is below the value, and close to it.
void check_reduced(std::mt19937& rng, std::size_t m, std::size_t features, std::size_t free) {
    const InteriorPointSettings settings{.max_steps = 60,
                                         .fraction_to_boundary = 0.995,
                                         .min_centrality = 1e-3,
                                         .centrality_decrease = 0.9,
                                         .backtracking = 0.8,
                                         .max_backtracks = 30,
                                         .min_step_length = 0.1,
                                         .max_mu_ratio = 0.95,
                                         .recentering_mu_ratio = 0.5,
                                         .stalled_step_length = 1e-10,
                                         .rounding_error = 4e-14,
                                         .compensated_rounding_error = 1e-20,
                                         .regularization = 5e-16,
                                         .max_projections = 3,
                                         .min_initial_weight = 0.03,
                                         .initial_slack = 0.3,
                                         .min_initial_slack = 1e-3};
    const std::size_t size = features + free;
    const auto draw = [&] { return static_cast<double>(rng()) / 2147483648.0 - 1.0; };
    std::vector<double> slopes(m * size), offsets(m), warm(m), gram(m * m), w(size), weights(m);
    std::vector<std::int64_t> shard(m);
    for (double& slope : slopes) slope = draw();
    for (std::size_t k = 0; k < m; ++k) {
        offsets[k] = 1.0 + draw();
        warm[k] = k % 2 ? 0.0 : 1.0 / static_cast<double>(m);
        shard[k] = static_cast<std::int64_t>(rng() % 5);
        for (std::size_t l = 0; l <= k; ++l)
            gram[k * m + l] = gram[l * m + k] = dot(slopes.data() + k * size, slopes.data() + l * size, features);
    }
    double values[2];
    for (const bool by_planes : {false, true}) {
        const double* products = by_planes ? gram.data() : nullptr;
        const PlanesView planes{slopes.data(), size, features, free, offsets, shard, products, m, 100.0};
        for (const double tol : {1e300, 1e-6}) {
            const View<const double> start = tol > 1.0 ? View<const double>() : View<const double>(warm);
            const ReducedResult found = solve_reduced(planes, 3.0, tol, start, settings, w, weights);
            const double gap = found.value - found.lower;
            expect(gap >= 0.0 && gap <= tol, "reduced: gap", static_cast<long>(m));
            values[by_planes] = found.value;
        }
    }
    expect(std::abs(values[0] - values[1]) <= 2e-6, "reduced: both forms agree", static_cast<long>(m));
}

}  // namespace

int main() {
    std::mt19937 rng(7);
    for (const std::int64_t n : {1, 2, 3, 17, 255, 256, 257, 4095, 4096, 4097, 9001})
        for (int threads = 1; threads <= 2; ++threads) {
            const Problem p(rng, n);
            check_layouts<float>(p, threads);
            check_layouts<double>(p, threads);
            check_hinges(p, threads);
        }
    for (const std::size_t n : {1, 2, 7, 8, 9, 16, 17, 63, 64, 65}) {
        check_cholesky(rng, n);
        for (const std::size_t features : {1, 8, 20})
            for (const std::size_t free : {0, 1, 2, 9}) check_reduced(rng, n, features, free);
    }
    for (const std::size_t n : {1, 2, 9, 65})
        for (const std::size_t features : {1, 8, 20})
            for (const std::size_t free : {2, 9}) check_reduced(rng, n, features, free);
    if (failures == 0) std::puts("all kernels agree");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
