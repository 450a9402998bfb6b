// The pairwise loss under the sanitizers, on heap memory of exactly the right size, against all pairs.
#include "core/pairwise.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "checks.hpp"
#include "core/pair_squares.hpp"

using namespace cutsvm;

namespace {

// Halves, so that every sum is exact and ties are many.
struct Problem {
    std::vector<double> f, s;
    std::vector<std::int32_t> y;
    std::vector<std::int64_t> starts, levels;

    Problem(std::mt19937& rng, std::int64_t n, std::int64_t queries, std::int64_t top) : starts(1, 0) {
        for (std::int64_t q = 1; q < queries; ++q)
            starts.push_back(static_cast<std::int64_t>(rng() % static_cast<unsigned>(n + 1)));
        starts.push_back(n);
        std::sort(starts.begin(), starts.end());
        levels.assign(static_cast<std::size_t>(queries), top);
        for (std::int64_t i = 0; i < n; ++i) {
            f.push_back(static_cast<int>(rng() % 9) / 2.0);
            s.push_back(static_cast<int>(rng() % 4) / 2.0);
            y.push_back(static_cast<std::int32_t>(rng() % static_cast<unsigned>(top)));
        }
    }

    void check(int threads, double margin) const {
        const std::size_t n = f.size(), queries = levels.size();
        std::vector<double> g(n), weights(queries), losses(queries), expected(n);
        PairMemory memory;
        pair_slopes({y, s, starts, levels, margin}, f, g, weights, losses, memory, threads);
        for (std::size_t q = 0; q < queries; ++q) {
            double weight = 0.0, loss = 0.0;
            for (auto i = static_cast<std::size_t>(starts[q]); i < static_cast<std::size_t>(starts[q + 1]); ++i)
                for (auto j = static_cast<std::size_t>(starts[q]); j < static_cast<std::size_t>(starts[q + 1]); ++j) {
                    if (y[i] <= y[j] || f[i] - f[j] >= margin) continue;
                    weight += s[i] * s[j];
                    loss += s[i] * s[j] * (margin - (f[i] - f[j]));
                    expected[i] -= s[i] * s[j];
                    expected[j] += s[i] * s[j];
                }
            expect(near(weight, weights[q]), "weight of the pairs that count", static_cast<long>(q));
            expect(near(loss, losses[q]), "loss", static_cast<long>(q));
        }
        for (std::size_t i = 0; i < n; ++i) expect(near(g[i], expected[i]), "slope", static_cast<long>(i));
    }

    void check_squares(int threads, double margin) const {
        const std::size_t n = f.size(), queries = levels.size();
        std::vector<double> g(n), product(n), diagonal(n), slopes(n), products(n), diagonals(n);
        std::vector<SquareSums> sums(queries);
        PairMemory memory;
        const Pairs pairs{y, s, starts, levels, margin};
        pair_squares(pairs, f, g, sums, memory, threads);
        pair_products(pairs, f, s, product, diagonal, memory, threads);  // s is as good a vector as any
        for (std::size_t q = 0; q < queries; ++q) {
            SquareSums own;
            for (auto i = static_cast<std::size_t>(starts[q]); i < static_cast<std::size_t>(starts[q + 1]); ++i)
                for (auto j = static_cast<std::size_t>(starts[q]); j < static_cast<std::size_t>(starts[q + 1]); ++j) {
                    const double short_by = margin - (f[i] - f[j]), weight = s[i] * s[j];
                    if (y[i] <= y[j] || short_by <= 0.0) continue;
                    own.weight += weight;
                    own.loss += weight * short_by * short_by;
                    own.offset += weight * short_by * (short_by + 2.0 * (f[i] - f[j]));
                    slopes[i] -= 2.0 * weight * short_by;
                    slopes[j] += 2.0 * weight * short_by;
                    for (const std::size_t row : {i, j}) diagonals[row] += 2.0 * weight;
                    products[i] += 2.0 * weight * (s[i] - s[j]);
                    products[j] += 2.0 * weight * (s[j] - s[i]);
                }
            expect(near(sums[q].weight, own.weight), "weight of the squares", static_cast<long>(q));
            expect(near(sums[q].loss, own.loss), "squares", static_cast<long>(q));
            expect(near(sums[q].offset, own.offset), "offset of the squares", static_cast<long>(q));
        }
        for (std::size_t i = 0; i < n; ++i) {
            expect(near(g[i], slopes[i]), "slope of the squares", static_cast<long>(i));
            expect(near(product[i], products[i]), "product", static_cast<long>(i));
            expect(near(diagonal[i], diagonals[i]), "diagonal", static_cast<long>(i));
        }
    }
};

template <class Sums>
void level_sums(std::mt19937& rng, std::initializer_list<std::int64_t> sizes) {
    Sums sums;
    for (const std::int64_t levels : sizes) {
        sums.clear(levels);
        std::vector<double> plain(static_cast<std::size_t>(levels));
        for (int k = 0; k < 300; ++k) {
            const auto level = static_cast<std::int32_t>(rng() % static_cast<unsigned>(levels));
            sums.add(level, k);
            plain[static_cast<std::size_t>(level)] += k;
            const auto at = static_cast<std::int32_t>(rng() % static_cast<unsigned>(levels));
            double below = 0.0;
            for (std::int64_t j = 0; j < at; ++j) below += plain[static_cast<std::size_t>(j)];
            expect(near(sums.below(at), below), "sum of the levels below", at);
        }
    }
}

// Long and short lists; ties, both zeros, very close and very far numbers, few that are far from all others. Rows with
// the same score as they come, and the lower level first.
void orders(std::mt19937& rng) {
    ScoreOrder put_in_order;
    const auto check = [&](const LargeVector<Ranked>& rows, const auto& before) {
        LargeVector<Ranked> expected = rows, found;
        std::stable_sort(expected.begin(), expected.end(), before);
        for (const int threads : {1, 2, 3}) {
            const auto row = [&](std::int64_t i) { return rows[static_cast<std::size_t>(i)]; };
            put_in_order(static_cast<std::int64_t>(rows.size()), row, before, found, threads);
            const bool same = std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                                         [](const Ranked& a, const Ranked& b) { return a.row == b.row; });
            expect(same, "order of the scores", static_cast<long>(rows.size()));
        }
    };
    for (const std::size_t n : {0, 1, 2, 64, 65, 100, 2047, 2048, 2049, 9000})
        for (const int kind : {0, 1, 2, 3, 4, 5, 6}) {
            LargeVector<Ranked> rows(n);
            for (std::size_t i = 0; i < n; ++i) {
                const double plain = static_cast<double>(rng()) / 4294967296.0 - 0.5;
                double score = plain;
                if (kind == 1) score = std::round(plain * 6.0) / 2.0;
                if (kind == 2) score = 1.0 + plain * 1e-12;
                if (kind == 3) score = rng() % 3 ? std::ldexp(plain, static_cast<int>(rng() % 2000) - 1000) : -0.0;
                if (kind == 4) score = rng() % 999 ? plain : plain * 1e9;
                if (kind == 5) score = 3.0 * plain * 1e308;
                if (kind == 6) score = rng() % 99 ? 0.0 : plain * 1e-310;
                rows[i] = {score, static_cast<std::int32_t>(i), static_cast<std::int32_t>(rng() % 2)};
            }
            check(rows, ByScore{});
            check(rows, ByScoreAndLevel{});
        }
}

// A query that is long enough for several threads: the slopes of one, bit for bit.
void threads_agree(std::mt19937& rng) {
    for (const std::int64_t levels : {2, 9, 1000}) {
        const Problem problem(rng, MANY_ROWS + 7, 1, levels);
        const std::size_t n = problem.f.size();
        std::vector<double> one(n), other(n), weights(1), losses(1), again(1);
        PairMemory memory;
        const Pairs pairs{problem.y, problem.s, problem.starts, problem.levels, 1.0};
        pair_slopes(pairs, problem.f, one, weights, losses, memory, 1);
        pair_slopes(pairs, problem.f, other, weights, again, memory, 3);
        expect(one == other && losses == again, "slopes on several threads", static_cast<long>(levels));
        std::vector<SquareSums> sums(1), same(1);
        pair_squares(pairs, problem.f, one, sums, memory, 1);
        pair_squares(pairs, problem.f, other, same, memory, 3);
        expect(one == other && sums[0].loss == same[0].loss, "squares on several threads", static_cast<long>(levels));
    }
}

}  // namespace

int main() {
    std::mt19937 rng(7);
    level_sums<FewLevels>(rng, {1, 2, 14, 15});
    level_sums<ManyLevels>(rng, {1, 2, 7, 8, 9, 63, 64, 65, 40000});
    orders(rng);
    for (int round = 0; round < 150; ++round) {
        const auto n = static_cast<std::int64_t>(1 + rng() % (round % 5 ? 40 : 400));
        const auto queries = static_cast<std::int64_t>(1 + rng() % 20);
        const auto levels = static_cast<std::int64_t>(1 + rng() % 40);
        Problem problem(rng, n, queries, levels);
        if (round % 3 == 0) problem.s.assign(problem.s.size(), 1.5);
        for (const int threads : {1, 2, 3})
            for (const double margin : {0.0, 0.5, 1.0}) {
                problem.check(threads, margin);
                problem.check_squares(threads, margin);
            }
    }
    // Enough rows of one query to be put in order by counting; those for several threads are too many to look at pairs.
    for (const std::int64_t levels : {2, 3, 5000}) {
        const Problem problem(rng, 4000, 1, levels);
        problem.check(3, 1.0);
        problem.check_squares(3, 1.0);
    }
    threads_agree(rng);
    LargeVector<double> large(3 * LargePages<double>::PAGE / sizeof(double));
    large.assign(large.size(), 1.0);
    expect(near(large.back(), 1.0), "large pages", 0);
    Problem broken(rng, 5, 1, 3);
    broken.f[2] = std::numeric_limits<double>::infinity();
    std::vector<double> g(5), weights(1), losses(1);
    PairMemory memory;
    pair_slopes({broken.y, broken.s, broken.starts, broken.levels, 1.0}, broken.f, g, weights, losses, memory, 2);
    expect(std::isnan(losses[0]), "a score that is not finite", 0);
    std::vector<SquareSums> sums(1);
    pair_squares({broken.y, broken.s, broken.starts, broken.levels, 1.0}, broken.f, g, sums, memory, 2);
    expect(std::isnan(sums[0].loss), "a score that is not finite", 1);
    std::printf("%d failures\n", failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
