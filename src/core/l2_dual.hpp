// The dual of the L2 support vector machine over a kernel, by two methods. With Q_ij = y_i y_j K_ij and r_i = 1/(C s_i)
//
//   primal(w)    = |w|^2 / 2 + C / 2 sum_i s_i max(0, 1 - y_i f(x_i))^2
//   dual(alpha)  = sum_i alpha_i - alpha'(Q + diag r) alpha / 2,    alpha >= 0,    w = sum_i alpha_i y_i phi(x_i)
//
// NN-ISDA (non-negative iterative single data algorithm), coordinate ascent on the dual:
//   g = 1 - (Q + diag r) alpha
//   repeat  i = the worst of:  |g_i| where alpha_i > 0,  g_i where alpha_i = 0 and g_i > 0
//           alpha_i = max(0, alpha_i + g_i / (Q_ii + r_i))
//
// MN-SVM (minimal norm): alpha up to its length. The point of least norm in the convex hull of the y_i phi(x_i), each
// with a coordinate of its own of length sqrt(r_i), by moving weight from one vertex to another:
//   h = (Q + diag r) alpha,    sum_i alpha_i = 1
//   repeat  i = argmin h,   j = argmax of h where alpha_j > 0
//           step = min(alpha_j, (h_j - h_i) / (K~_ii + K~_jj - 2 K~_ij)),    K~ = Q + diag r
//           alpha_i += step,   alpha_j -= step
//   and at the end alpha = alpha / (alpha' h), the best multiple for the dual.
//
// Both keep u_j = f(x_j), so that a step is one sweep over a row of K (or two); both stop when primal - dual is at most
// tol times the primal. Rows without weight have no alpha.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/machines.hpp"

namespace cutsvm {

enum class L2Method { isda, min_norm };

// primal, dual, steps
struct L2Seen {
    double primal, dual;
    std::int64_t steps;
};

// One problem: kernel values of its rows among themselves, labels, 1/(C s), and the point that is being improved.
class L2Problem {
public:
    // y: +-1; r: infinity for a row without weight.
    L2Problem(Gram gram, std::vector<double> y, std::vector<double> r, std::vector<double> alpha)
        : gram_(gram), m_(static_cast<std::int64_t>(y.size())), y_(std::move(y)), r_(std::move(r)), alpha_(std::move(alpha)),
          u_(static_cast<std::size_t>(m_)) {
        for (std::int64_t i = 0; i < m_; ++i)
            if (alpha_[at(i)] != 0.0) add(i, alpha_[at(i)]);
    }

    const std::vector<double>& alpha() const { return alpha_; }

    // Another C for the same rows: alpha stays, as any alpha >= 0 is a point of the dual.
    void set_penalty(std::vector<double> r) { r_ = std::move(r); }

    L2Seen solve(L2Method method, double tol, std::int64_t budget) {
        return method == L2Method::isda ? isda(tol, budget) : min_norm(tol, budget);
    }

private:
    static constexpr std::int64_t CHUNK = 256;  // rows among which a best one is looked for again

    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

    // u += change y_i K_i
    void add(std::int64_t i, double change) {
        const float* kernel = gram_.row(i);
        const double step = change * y_[at(i)];
        double* u = u_.data();
#pragma omp simd
        for (std::int64_t j = 0; j < m_; ++j) u[j] += step * static_cast<double>(kernel[j]);
    }

    double diagonal(std::int64_t i) const { return static_cast<double>(gram_.row(i)[i]) + r_[at(i)]; }

    // The bounds for the point `share` times alpha.
    L2Seen bounds(double share, std::int64_t steps) const {
        double norm = 0.0, linear = 0.0, square = 0.0, loss = 0.0;
        for (std::int64_t i = 0; i < m_; ++i) {
            if (std::isinf(r_[at(i)])) continue;
            const double a = share * alpha_[at(i)], margin = share * y_[at(i)] * u_[at(i)];
            const double miss = std::max(0.0, 1.0 - margin);
            norm += a * margin;
            linear += a;
            square += a * a * r_[at(i)];
            loss += miss * miss / r_[at(i)];
        }
        return {0.5 * norm + 0.5 * loss, linear - 0.5 * (norm + square), steps};
    }

    // The largest of value(i), and where. value is computed for all rows in turn, so that it can do other work as well.
    template <class Value>
    std::pair<double, std::int64_t> largest(const Value& value) const {
        double best = -std::numeric_limits<double>::infinity();
        std::int64_t chunk = 0;
        for (std::int64_t begin = 0; begin < m_; begin += CHUNK) {
            const std::int64_t end = std::min(m_, begin + CHUNK);
            double here = -std::numeric_limits<double>::infinity();
#pragma omp simd reduction(max : here)
            for (std::int64_t i = begin; i < end; ++i) here = std::max(here, value(i));
            if (here > best) best = here, chunk = begin;
        }
        std::int64_t place = chunk;  // looked for among the chunk's own values: those above may be rounded otherwise
        for (std::int64_t i = chunk + 1; i < std::min(m_, chunk + CHUNK); ++i)
            if (value(i) > value(place)) place = i;
        return {value(place), place};
    }

    L2Seen isda(double tol, std::int64_t budget) {
        const double *y = y_.data(), *r = r_.data(), *alpha = alpha_.data(), *u = u_.data();
        const auto violation = [=](std::int64_t i) {
            const double diagonal = alpha[i] > 0.0 ? alpha[i] * r[i] : 0.0;
            const double g = 1.0 - y[i] * u[i] - diagonal;
            return std::isinf(r[i]) ? 0.0 : (alpha[i] > 0.0 ? std::abs(g) : g);
        };
        std::int64_t steps = 0;
        for (std::int64_t look = 0;; ++steps) {
            const auto [worst, i] = largest(violation);
            if (steps >= look || worst <= 0.0 || steps >= budget) {
                const L2Seen seen = bounds(1.0, steps);
                if (seen.primal - seen.dual <= tol * seen.primal || worst <= 0.0 || steps >= budget) return seen;
                look = steps + m_ / 4 + 16;
            }
            const double before = alpha_[at(i)];
            const double g = 1.0 - y_[at(i)] * u_[at(i)] - before * r_[at(i)];
            alpha_[at(i)] = std::max(0.0, before + g / diagonal(i));
            add(i, alpha_[at(i)] - before);
        }
    }

    L2Seen min_norm(double tol, std::int64_t budget) {
        normalise();
        const double *y = y_.data(), *r = r_.data(), *alpha = alpha_.data(), *u = u_.data();
        const auto h = [=](std::int64_t i) { return y[i] * u[i] + (alpha[i] > 0.0 ? alpha[i] * r[i] : 0.0); };
        const double infinity = std::numeric_limits<double>::infinity();
        std::int64_t steps = 0;
        for (std::int64_t look = 0;; ++steps) {
            const auto [lowest, i] = largest([&](std::int64_t k) { return std::isinf(r[k]) ? -infinity : -h(k); });
            const auto [highest, j] = largest([&](std::int64_t k) { return alpha[k] > 0.0 ? h(k) : -infinity; });
            const double slope = highest + lowest;  // h_j - h_i
            if (steps >= look || slope <= 0.0 || steps >= budget) {
                const double scale = best_multiple();
                const L2Seen seen = bounds(scale, steps);
                if (seen.primal - seen.dual <= tol * seen.primal || slope <= 0.0 || steps >= budget) {
                    for (double& a : alpha_) a *= scale;
                    for (double& f : u_) f *= scale;
                    return seen;
                }
                look = steps + m_ / 4 + 16;
            }
            const double cross = y_[at(i)] * y_[at(j)] * static_cast<double>(gram_.row(i)[j]);
            const double bend = diagonal(i) + diagonal(j) - 2.0 * cross;
            const double full = alpha_[at(j)], step = std::min(full, slope / std::max(bend, 1e-300));
            alpha_[at(i)] += step;
            alpha_[at(j)] = step == full ? 0.0 : full - step;
            add(i, step);
            add(j, -step);
        }
    }

    // alpha to the simplex: its own direction, or the row of least norm.
    void normalise() {
        double sum = 0.0;
        for (const double a : alpha_) sum += a;
        if (sum > 0.0) {
            for (double& a : alpha_) a /= sum;
            for (double& f : u_) f /= sum;
            return;
        }
        std::int64_t least = -1;
        for (std::int64_t i = 0; i < m_; ++i)
            if (!std::isinf(r_[at(i)]) && (least < 0 || diagonal(i) < diagonal(least))) least = i;
        alpha_[at(least)] = 1.0;
        add(least, 1.0);
    }

    double best_multiple() const {
        double sum = 0.0;
        for (std::int64_t i = 0; i < m_; ++i)
            if (alpha_[at(i)] > 0.0) sum += alpha_[at(i)] * (y_[at(i)] * u_[at(i)] + alpha_[at(i)] * r_[at(i)]);
        return 1.0 / sum;
    }

    Gram gram_;
    std::int64_t m_;
    std::vector<double> y_, r_, alpha_, u_;
};

}  // namespace cutsvm
