// Kernel machines under the sanitizers, on heap memory of exactly the right size.
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "checks.hpp"
#include "core/distances.hpp"
#include "core/interrupt.hpp"
#include "core/kernel_sgd.hpp"
#include "core/l2_dual.hpp"
#include "core/one_vs_one.hpp"
#include "core/parallel.hpp"
#include "core/rows.hpp"

using namespace cutsvm;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double uniform(std::mt19937& rng) { return static_cast<double>(rng()) / 4294967296.0; }

// Points of the plane with whole coordinates: their dot products are exact. Some rows have no weight.
struct Data {
    std::int64_t n;
    std::vector<double> x, a;
    std::vector<float> kernel;
    std::vector<std::int32_t> rows, places;
    std::vector<std::int64_t> first;

    Data(std::mt19937& rng, std::int64_t size)
        : n(size), x(at(2 * size)), a(at(size)), kernel(at(size * size)), first{0, size} {
        for (double& value : x) value = static_cast<int>(rng() % 7) - 3;
        for (std::int64_t i = 0; i < n; ++i) {
            a[at(i)] =
                std::copysign(rng() % 5 ? 0.5 * static_cast<double>(1 + rng() % 3) : 0.0, rng() % 2 ? 1.0 : -1.0);
            rows.push_back(static_cast<std::int32_t>(i));
            places.push_back(static_cast<std::int32_t>(i));
            for (std::int64_t j = 0; j < n; ++j)
                kernel[at(i * n + j)] =
                    static_cast<float>(x[at(2 * i)] * x[at(2 * j)] + x[at(2 * i + 1)] * x[at(2 * j + 1)]);
        }
        a[0] = 1.0;
    }

    Gram gram() const { return {kernel.data(), n, n, n}; }
    Problems problems() const { return {rows, a, first}; }
};

template <std::size_t W>
struct State {
    std::vector<std::int32_t> slot, columns;
    std::vector<double> beta, mean;
    std::vector<std::int64_t> used;

    explicit State(std::int64_t n) : slot(at(n), -1), columns(at(n)), beta(at(n) * W), mean(at(n) * W), used(1) {}
    SgdState view() { return {slot, columns, beta, mean, used}; }
};

struct Steps {
    std::vector<double> scale, tail;
    std::int64_t epochs;

    Steps(std::int64_t n, std::int64_t count) : scale(at(n * count)), tail(at(n * count)), epochs(count) {
        for (std::int64_t t = 0; t < n * count; ++t) {
            scale[at(t)] = static_cast<double>(n) / static_cast<double>(t + 1);
            tail[at(t)] = 1.0 / static_cast<double>(t + 2);
        }
    }
    Schedule view() const { return {scale, tail, epochs}; }
};

template <std::size_t W>
Sums<W> margins() {
    Sums<W> margin;
    for (std::size_t c = 0; c < W; ++c)
        margin[c] = c < 5 ? 0.37 * static_cast<double>(c + 1) : -std::numeric_limits<double>::infinity();
    return margin;
}

// The same steps from a matrix of all values, and from one of `block` rows with the support so far and these rows.
template <std::size_t W>
void streamed(std::mt19937& rng, std::int64_t n, std::int64_t block) {
    const Data data(rng, n);
    const Steps steps(n, 3);
    const Sums<W> margin = margins<W>();
    State<W> whole(n), parts(n);
    Interrupt interrupt;
    sgd_steps<W>(data.gram(), {data.places, data.places}, data.problems(), steps.view(), margin, 0, 0, 3 * n,
                 whole.view(), interrupt);

    std::vector<std::int32_t> held, row_place(at(n), -1), column_place(at(n), -1);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch)
        for (std::int64_t from = 0; from < n; from += block) {
            const std::int64_t to = std::min(n, from + block);
            std::vector<std::int32_t> columns = held;
            for (std::int64_t i = from; i < to; ++i)
                if (parts.slot[at(i)] < 0) columns.push_back(static_cast<std::int32_t>(i));
            const auto width = static_cast<std::int64_t>(columns.size());
            std::vector<float> panel(at((to - from) * width));
            for (std::int64_t i = from; i < to; ++i) {
                row_place[at(i)] = static_cast<std::int32_t>(i - from);
                for (std::int64_t k = 0; k < width; ++k)
                    panel[at((i - from) * width + k)] = data.gram().row(i)[columns[at(k)]];
            }
            for (std::int64_t k = 0; k < width; ++k) column_place[at(columns[at(k)])] = static_cast<std::int32_t>(k);
            sgd_steps<W>({panel.data(), to - from, width, width}, {row_place, column_place}, data.problems(),
                         steps.view(), margin, 0, epoch * n + from, epoch * n + to, parts.view(), interrupt);
            // Those that have come into the support stay, in the order in which they came.
            for (std::int64_t k = static_cast<std::int64_t>(held.size()); k < parts.used[0]; ++k) {
                const std::int32_t row = columns[at(parts.columns[at(k)])];
                parts.columns[at(k)] = static_cast<std::int32_t>(held.size());
                held.push_back(row);
            }
            row_place.assign(at(n), -1);
            column_place.assign(at(n), -1);
        }
    expect(whole.used == parts.used && whole.slot == parts.slot, "support of streamed steps", n);
    expect(whole.beta == parts.beta && whole.mean == parts.mean, "streamed steps", n);
    for (std::size_t k = 0; k < held.size(); ++k) expect(whole.columns[k] == held[k], "columns of streamed steps", n);
}

void linear(std::mt19937& rng, std::int64_t n) {
    const Data data(rng, n);
    const Steps steps(n, 2);
    State<1> with(n);
    Interrupt interrupt;
    sgd_steps<1>(data.gram(), {data.places, data.places}, data.problems(), steps.view(), {0.37}, 0, 0, 2 * n,
                 with.view(), interrupt);
    std::vector<double> theta(2), beta(at(n)), mean(at(n));
    const DenseRows<double> x{data.x.data(), n, 2, 2};
    linear_sgd_steps(x, data.rows, data.a, steps.scale, steps.tail, 0.37, 0, n, theta.data(), beta, mean);
    linear_sgd_steps(x, data.rows, data.a, steps.scale, steps.tail, 0.37, n, 2 * n, theta.data(), beta, mean);
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t slot = with.slot[at(i)];
        expect(near(beta[at(i)], slot < 0 ? 0.0 : with.beta[at(slot)]), "linear steps", i);
        expect(near(mean[at(i)], slot < 0 ? 0.0 : with.mean[at(slot)]), "mean of linear steps", i);
    }
}

// Both methods end at one value, which lies between the bounds that they have seen on the way.
void dual(std::mt19937& rng, std::int64_t n) {
    const Data data(rng, n);
    std::vector<double> y(at(n)), caps(at(n)), low(at(n));
    Interrupt interrupt;
    for (std::int64_t i = 0; i < n; ++i) {
        y[at(i)] = std::copysign(1.0, data.a[at(i)]);
        caps[at(i)] = 0.1 * std::abs(data.a[at(i)]);
        low[at(i)] = 0.1 * caps[at(i)];
    }
    std::vector<L2Seen> ends;
    std::vector<std::vector<L2Seen>> ways;
    for (const L2Method method : {L2Method::isda, L2Method::min_norm}) {
        L2Problem problem(data.gram(), y, std::vector<double>(at(n)), interrupt);
        problem.set_penalty(method, low);
        problem.solve(method, 1e-3, 1000);
        problem.set_penalty(method, caps);
        ways.emplace_back();
        for (const std::int64_t budget : {0, 1, 2, 5, 20}) ways.back().push_back(problem.solve(method, 0.0, budget));
        ends.push_back(problem.solve(method, 1e-9, 1'000'000));
        for (std::int64_t i = 0; i < n; ++i)
            expect(problem.alpha()[at(i)] >= 0.0 && (data.a[at(i)] != 0.0 || problem.alpha()[at(i)] == 0.0), "alpha",
                   i);
        L2Problem again(data.gram(), y, problem.alpha(), interrupt);
        again.set_penalty(method, caps);
        expect(near(again.solve(method, 1e-6, 0).dual, ends.back().dual), "the same point again", n);
    }
    expect(std::abs(ends[0].dual - ends[1].dual) <= 1e-8 * ends[0].primal, "two methods, one optimum", n);
    for (const auto& way : ways)
        for (const L2Seen& seen : way)
            expect(seen.dual <= ends[0].primal * (1.0 + 1e-12) && seen.primal >= ends[0].dual * (1.0 - 1e-12), "bounds",
                   n);
}

// The hinge loss: alphas between 0 and their caps, also after the caps were lowered, and a gap that closes.
void box(std::mt19937& rng, std::int64_t n) {
    const Data data(rng, n);
    std::vector<double> y(at(n)), caps(at(n)), low(at(n));
    Interrupt interrupt;
    for (std::int64_t i = 0; i < n; ++i) {
        y[at(i)] = std::copysign(1.0, data.a[at(i)]);
        caps[at(i)] = std::abs(data.a[at(i)]);
        low[at(i)] = 0.1 * caps[at(i)];
    }
    L2Problem problem(data.gram(), y, std::vector<double>(at(n)), interrupt);
    for (const auto& cap : {caps, low}) {
        problem.set_penalty(L2Method::hinge, cap);
        const L2Seen first = problem.solve(L2Method::hinge, 0.0, 3),
                     seen = problem.solve(L2Method::hinge, 1e-6, 1'000'000);
        expect(seen.primal - seen.dual <= 1e-6 * seen.primal, "the gap of the hinge loss", n);
        expect(first.dual <= seen.primal * (1.0 + 1e-12) && first.primal >= seen.dual * (1.0 - 1e-12), "its bounds", n);
        for (std::int64_t i = 0; i < n; ++i)
            expect(0.0 <= problem.alpha()[at(i)] && problem.alpha()[at(i)] <= cap[at(i)], "alpha within its cap", i);
    }
}

// Coordinate ascent without a kernel comes to the value of the one with a kernel.
void ascent(std::mt19937& rng, std::int64_t n) {
    const Data data(rng, n);
    const DenseRows<double> x{data.x.data(), n, 2, 2};
    std::vector<double> w(2), alpha(at(n)), y(at(n)), caps(at(n));
    linear_ascent_steps(x, data.rows, data.a, 0.3, 0, n, w.data(), alpha);
    linear_ascent_steps(x, data.rows, data.a, 0.3, n, 3000 * n, w.data(), alpha);
    double dual = -0.5 * (w[0] * w[0] + w[1] * w[1]);
    for (std::int64_t i = 0; i < n; ++i) {
        dual += alpha[at(i)];
        y[at(i)] = std::copysign(1.0, data.a[at(i)]), caps[at(i)] = 0.3 * std::abs(data.a[at(i)]);
        expect(0.0 <= alpha[at(i)] && alpha[at(i)] <= caps[at(i)], "alpha of the ascent", i);
    }
    Interrupt interrupt;
    L2Problem problem(data.gram(), y, std::vector<double>(at(n)), interrupt);
    problem.set_penalty(L2Method::hinge, caps);
    const L2Seen seen = problem.solve(L2Method::hinge, 1e-7, 1'000'000);
    expect(std::abs(dual - seen.dual) <= 1e-4 * seen.primal, "the value of the ascent", n);
}

// Distances of rows that are close to each other and far from the origin, dense and sparse.
void distances() {
    const std::vector<double> x{1e10, 0.0, 3.0, 1e10 + 1.0, 2.0, 0.0};
    const std::vector<double> values{1e10, 3.0, 1e10 + 1.0, 2.0};
    const std::vector<std::int32_t> columns{0, 2, 0, 1}, pointers{0, 2, 4};
    const std::vector<std::int64_t> left{0, 0, 1}, right{1, 0, 0};
    const std::vector<double> expected{14.0, 0.0, 14.0};
    std::vector<double> out(3);
    const DenseRows<double> dense{x.data(), 2, 3, 3};
    pair_distances(dense, left, dense, right, out);
    expect(out == expected, "distances of dense rows", 0);
    const SparseRows<double, std::int32_t> sparse{values.data(), columns.data(), pointers.data(), 2, 3};
    pair_distances(sparse, left, sparse, right, out);
    expect(out == expected, "distances of sparse rows", 0);
}

// A hook that says so ends a loop, on any number of threads; within a parallel region nobody asks.
void interrupts() {
    const auto slow = [](std::int64_t, std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
    const auto ended = [&](int threads) {
        try {
            for_blocks(1000 * BLOCK, threads, slow);
        } catch (const Interrupted&) {
            return true;
        }
        return false;
    };
    interrupt_hook = [] { return true; };
    for (const int threads : {1, 3}) expect(ended(threads), "a loop that is ended", threads);
#pragma omp parallel num_threads(2)
    for_blocks(4 * BLOCK, 1, slow);
    interrupt_hook = nullptr;
}

void votes() {
    const std::vector<std::int32_t> low{0, 0, 1}, high{1, 3, 3};  // class 2 is in no pair
    std::vector<double> scores{2.0, -7.0, -1.0, -7.0, 3.0, -7.0}, decisions(4), trust(4);
    // step 2: 0 against 1 to 1 by 2, 0 against 3 to 0 by 1, 1 against 3 to 3 by 3.
    decide({low, high}, scores.data(), 2, decisions, trust);
    expect(near(decisions[0], 1.0 - 1.0 / 6.0), "votes for 0", 0);
    expect(near(decisions[1], 1.0 - 1.0 / 6.0), "votes for 1", 1);
    expect(std::isinf(decisions[2]) && decisions[2] < 0.0, "votes for a class of no pair", 2);
    expect(near(decisions[3], 1.0 + 2.0 / 9.0), "votes for 3", 3);
    expect(winner(decisions) == 3, "winner", 3);
    expect(winner(View<const double>(decisions).part(0, 2)) == 0, "the first of two that are alike", 0);
}

template <std::size_t W, std::size_t R>
void sums(std::mt19937& rng) {
    for (std::int64_t count = 0; count < 12; ++count) {
        std::vector<std::vector<float>> kernel(R, std::vector<float>(12));
        std::array<const float*, R> rows;
        for (std::size_t r = 0; r < R; ++r) {
            for (float& value : kernel[r]) value = static_cast<float>(uniform(rng));
            rows[r] = kernel[r].data();
        }
        std::vector<std::int32_t> columns(at(count));
        std::vector<double> coef(at(count) * W);
        for (std::int32_t& column : columns) column = static_cast<std::int32_t>(rng() % 12);
        for (double& value : coef) value = uniform(rng) - 0.5;
        const auto found = support_sums<W, R>(rows, columns.data(), coef.data(), count, kernel[0].data());
        for (std::size_t r = 0; r < R; ++r)
            for (std::size_t c = 0; c < W; ++c) {
                double plain = 0.0;
                for (std::size_t k = 0; k < at(count); ++k)
                    plain += static_cast<double>(kernel[r][at(columns[k])]) * coef[k * W + c];
                expect(near(plain, found[r][c]), "sum over a support", static_cast<long>(count));
            }
    }
}

}  // namespace

int main() {
    std::mt19937 rng(7);
    sums<1, 1>(rng);
    sums<8, 1>(rng);
    sums<1, 4>(rng);
    sums<8, 4>(rng);
    for (const std::int64_t n : {1, 2, 7, 60})
        for (const std::int64_t block : {1, 3, 16, 100}) {
            streamed<1>(rng, n, block);
            streamed<8>(rng, n, block);
        }
    for (const std::int64_t n : {1, 5, 80}) linear(rng, n);
    for (const std::int64_t n : {1, 2, 30, 300}) box(rng, n);
    for (const std::int64_t n : {1, 2, 30}) ascent(rng, n);
    distances();
    interrupts();
    for (const std::int64_t n : {1, 2, 30, 300}) dual(rng, n);  // more rows than are looked at together
    votes();
    std::printf("%d failures\n", failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
