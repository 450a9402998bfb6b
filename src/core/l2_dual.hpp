// The dual of the L2 support vector machine over a kernel, by two methods. With Q_ij = y_i y_j K_ij and r_i = 1/(C s_i)
//
//   primal(w)    = |w|^2 / 2 + C / 2 sum_i s_i max(0, 1 - y_i f(x_i))^2
//   dual(alpha)  = sum_i alpha_i - alpha'(Q + diag r) alpha / 2,    alpha >= 0,    w = sum_i alpha_i y_i phi(x_i)
//
// and that of the hinge loss, C sum_i s_i max(0, 1 - y_i f(x_i)), by the first of them: there r = 0 and alpha_i is at
// most cap_i = C s_i, which for the L2 machine is infinite.
//
// NN-ISDA (non-negative iterative single data algorithm), coordinate ascent on the dual:
//   g = 1 - (Q + diag r) alpha
//   repeat  i = the worst of:  |g_i| where alpha_i > 0,  g_i where alpha_i = 0 and g_i > 0
//           alpha_i = max(0, alpha_i + g_i / (Q_ii + r_i))       with a cap: at most cap_i, and there only g_i < 0 counts
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
//
// Single steps find out soon which alphas are above 0, and take long to find their values where C is large. So both,
// after every m/4 steps or so, take some steps of conjugate gradients among the alphas above 0, towards
//   (Q + diag r) alpha = 1  there
// and go that way as far as the dual gets larger and no alpha gets below 0. With caps, and without the diagonal r, that
// takes longer than the single steps that it saves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/interrupt.hpp"
#include "core/machines.hpp"
#include "core/parallel.hpp"
#include "core/view.hpp"

namespace cutsvm {

enum class L2Method { isda, min_norm, hinge };

// primal, dual, steps
struct L2Seen {
    double primal, dual;
    std::int64_t steps;
};

// One problem: kernel values of its rows among themselves, labels, 1/(C s), and the point that is being improved.
class L2Problem {
  public:
    // y: +-1. The penalty has to be set before anything is solved.
    L2Problem(Gram gram, std::vector<double> y, std::vector<double> alpha, Interrupt& interrupt)
        : gram_(gram), m_(std::ssize(y)), y_(std::move(y)), alpha_(std::move(alpha)), u_(m_), interrupt_(interrupt) {
        for (std::int64_t i = 0; i < m_; ++i)
            if (alpha_[i] != 0.0) add(i, alpha_[i]);
    }

    const std::vector<double>& alpha() const { return alpha_; }

    // caps: C s. Another C for the same rows: alpha stays, as any alpha >= 0 is a point of the L2 machine's dual; with
    // the hinge loss it is cut off at the caps.
    void set_penalty(L2Method method, const std::vector<double>& caps) {
        hinge_ = method == L2Method::hinge;
        r_.assign(m_, 0.0);
        cap_.assign(m_, std::numeric_limits<double>::infinity());
        for (std::int64_t i = 0; i < m_; ++i) {
            if (!hinge_)
                r_[i] = 1.0 / caps[i];  // infinity for a row without weight
            else
                cap_[i] = caps[i];
            if (alpha_[i] <= cap_[i]) continue;
            add(i, cap_[i] - alpha_[i]);
            alpha_[i] = cap_[i];
        }
    }

    // Until the gap is tol, or after so many steps, or when the work is to end.
    L2Seen solve(L2Method method, double tol, std::int64_t budget) {
        return method == L2Method::min_norm ? min_norm(tol, budget) : isda(tol, budget);
    }

  private:
    static constexpr std::int64_t CHUNK = 256;  // rows among which the largest is searched again
    static constexpr double ENOUGH = 1e-5;      // of the square of what is left to do, for conjugate gradients

    // u += change y_i K_i
    void add(std::int64_t i, double change) {
        const float* kernel = gram_.row(i);
        const double step = change * y_[i];
        double* u = u_.data();
#pragma omp simd
        for (std::int64_t j = 0; j < m_; ++j) u[j] += step * static_cast<double>(kernel[j]);
    }

    double diagonal(std::int64_t i) const { return static_cast<double>(gram_.row(i)[i]) + r_[i]; }

    L2Seen bounds(std::int64_t steps) const {
        double norm = 0.0, linear = 0.0, square = 0.0, loss = 0.0;
        for (std::int64_t i = 0; i < m_; ++i) {
            if (std::isinf(r_[i])) continue;
            const double a = alpha_[i], margin = y_[i] * u_[i];
            const double miss = std::max(0.0, 1.0 - margin);
            norm += a * margin;
            linear += a;
            square += a * a * r_[i];
            loss += hinge_ ? 2.0 * cap_[i] * miss : miss * miss / r_[i];
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
        std::int64_t place = chunk;  // searched among the chunk's own values: those above may be rounded otherwise
        for (std::int64_t i = chunk + 1; i < std::min(m_, chunk + CHUNK); ++i)
            if (value(i) > value(place)) place = i;
        return {value(place), place};
    }

    // Towards the best point among the alphas above 0, cut off at 0: all the way or a part of it, so that it is better;
    // then the same among the alphas that are left above 0.
    void polish() {
        for (std::int64_t left = steps_; left > 0 && !interrupt_.requested();) {
            std::vector<double> move;
            left -= towards_best(left, move);
            const std::vector<double> alpha = alpha_, u = u_;
            const double before = bounds(0).dual;
            double max_step = 1.0;  // with which all of them stay at 0 or above
            for (std::size_t k = 0; k < free_.size(); ++k)
                if (move[k] < 0.0) max_step = std::min(max_step, alpha_[free_[k]] / -move[k]);
            double length = 1.0;
            for (;; --left) {
                shift(move, length);
                if (bounds(0).dual > before) break;
                alpha_ = alpha, u_ = u;
                if (length <= max_step) return;  // rounding errors
                length = std::max(max_step, length / 4.0);
            }
            if (max_step >= 1.0) break;
        }
        steps_ = std::min<std::int64_t>(2 * steps_, 4 * m_);
    }

    // alpha = max(0, alpha + length * move) for the free ones; what is left of rounding is 0 too.
    void shift(const std::vector<double>& move, double length) {
        for (std::size_t k = 0; k < free_.size(); ++k) {
            const std::int64_t i = free_[k];
            double now = std::max(0.0, alpha_[i] + length * move[k]);
            if (now < 1e-14 * alpha_[i]) now = 0.0;
            add(i, now - alpha_[i]);
            alpha_[i] = now;
        }
    }

    // At most so many steps of conjugate gradients for (Q + diag r) alpha = 1 among the alphas above 0, which become
    // free_: where they lead, as a move from alpha, and how many they were.
    std::int64_t towards_best(std::int64_t most, std::vector<double>& move) {
        free_.clear();
        for (std::int64_t i = 0; i < m_; ++i)
            if (alpha_[i] > 0.0) free_.push_back(i);
        const std::size_t size = free_.size();
        std::vector<double> rest(size), way(size), image(size), spread(m_, 0.0);
        move.assign(size, 0.0);
        double square = 0.0;
        for (std::size_t k = 0; k < size; ++k) {
            const std::int64_t i = free_[k];
            rest[k] = way[k] = 1.0 - y_[i] * u_[i] - alpha_[i] * r_[i];
            square += rest[k] * rest[k];
        }
        const double enough = ENOUGH * square;
        std::int64_t step = 0;
        for (; step < most && square > enough && !interrupt_.requested(); ++step) {
            for (std::size_t k = 0; k < size; ++k) spread[free_[k]] = y_[free_[k]] * way[k];
            double curvature = 0.0;
            for (std::size_t k = 0; k < size; ++k) {
                const std::int64_t i = free_[k];
                image[k] = y_[i] * dot(i, spread) + r_[i] * way[k];
                curvature += way[k] * image[k];
            }
            if (!(curvature > 0.0)) break;  // rounding errors
            const double length = square / curvature;
            double next = 0.0;
            for (std::size_t k = 0; k < size; ++k) {
                move[k] += length * way[k];
                rest[k] -= length * image[k];
                next += rest[k] * rest[k];
            }
            for (std::size_t k = 0; k < size; ++k) way[k] = rest[k] + next / square * way[k];
            square = next;
        }
        return std::max<std::int64_t>(1, step);
    }

    double dot(std::int64_t i, const std::vector<double>& v) const {
        const float* kernel = gram_.row(i);
        const double* other = v.data();
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t j = 0; j < m_; ++j) sum += static_cast<double>(kernel[j]) * other[j];
        return sum;
    }

    L2Seen isda(double tol, std::int64_t budget) {
        const double *y = y_.data(), *r = r_.data(), *cap = cap_.data(), *alpha = alpha_.data(), *u = u_.data();
        const auto violation = [=](std::int64_t i) {
            const double diagonal = alpha[i] > 0.0 ? alpha[i] * r[i] : 0.0;
            const double g = 1.0 - y[i] * u[i] - diagonal;
            const double up = alpha[i] < cap[i] ? g : 0.0, down = alpha[i] > 0.0 ? -g : 0.0;
            return std::isinf(r[i]) ? 0.0 : std::max(up, down);
        };
        const std::int64_t known = start();
        std::int64_t steps = 0;
        for (std::int64_t next_check = 0;;) {
            const auto [worst, i] = largest(violation);
            if (steps >= next_check || worst <= 0.0 || steps >= budget) {
                const L2Seen seen = bounds(steps);
                if (seen.primal - seen.dual <= tol * seen.primal || worst <= 0.0 || steps >= budget) return seen;
                if (interrupt_.requested()) return seen;
                if (steps >= known && !hinge_) polish();
                next_check = steps + m_ / 4 + 16;
                continue;
            }
            const double before = alpha_[i];
            const double g = 1.0 - y_[i] * u_[i] - before * r_[i];
            const double curvature = diagonal(i), end = g > 0.0 ? cap_[i] : 0.0;  // a row of zeros: its dual is linear
            alpha_[i] = curvature > 0.0 ? std::clamp(before + g / curvature, 0.0, cap_[i]) : end;
            add(i, alpha_[i] - before);
            ++steps;
        }
    }

    L2Seen min_norm(double tol, std::int64_t budget) {
        const std::int64_t known = start();
        normalise();
        const double *y = y_.data(), *r = r_.data(), *alpha = alpha_.data(), *u = u_.data();
        const auto h = [=](std::int64_t i) { return y[i] * u[i] + (alpha[i] > 0.0 ? alpha[i] * r[i] : 0.0); };
        const double infinity = std::numeric_limits<double>::infinity();
        std::int64_t steps = 0;
        for (std::int64_t next_check = 0;;) {
            const auto [lowest, i] = largest([&](std::int64_t k) { return std::isinf(r[k]) ? -infinity : -h(k); });
            const auto [highest, j] = largest([&](std::int64_t k) { return alpha[k] > 0.0 ? h(k) : -infinity; });
            const double slope = highest + lowest;  // h_j - h_i
            if (steps >= next_check || slope <= 0.0 || steps >= budget) {
                multiply(best_multiple());
                const L2Seen seen = bounds(steps);
                if (seen.primal - seen.dual <= tol * seen.primal || slope <= 0.0 || steps >= budget) return seen;
                if (interrupt_.requested()) return seen;
                if (steps >= known) polish();
                normalise();
                next_check = steps + m_ / 4 + 16;
                continue;
            }
            const double cross = y_[i] * y_[j] * static_cast<double>(gram_.row(i)[j]);
            const double curvature = diagonal(i) + diagonal(j) - 2.0 * cross;
            const double full = alpha_[j], step = std::min(full, slope / std::max(curvature, 1e-300));
            alpha_[i] += step;
            alpha_[j] = step == full ? 0.0 : full - step;
            add(i, step);
            add(j, -step);
            ++steps;
        }
    }

    // Steps from which on it is more or less known which alphas are above 0: from the beginning, if some are.
    std::int64_t start() const {
        return std::any_of(alpha_.begin(), alpha_.end(), [](double a) { return a > 0.0; }) ? 0 : m_;
    }

    // alpha to the simplex: its own direction, or the row of least norm.
    void normalise() {
        double sum = 0.0;
        for (const double a : alpha_) sum += a;
        if (sum > 0.0) return multiply(1.0 / sum);
        std::int64_t least = -1;
        for (std::int64_t i = 0; i < m_; ++i)
            if (!std::isinf(r_[i]) && (least < 0 || diagonal(i) < diagonal(least))) least = i;
        alpha_[least] = 1.0;
        add(least, 1.0);
    }

    void multiply(double factor) {
        for (double& a : alpha_) a *= factor;
        for (double& f : u_) f *= factor;
    }

    double best_multiple() const {
        double sum = 0.0;
        for (std::int64_t i = 0; i < m_; ++i)
            if (alpha_[i] > 0.0) sum += alpha_[i] * (y_[i] * u_[i] + alpha_[i] * r_[i]);
        return 1.0 / sum;
    }

    Gram gram_;
    std::int64_t m_;
    std::vector<double> y_, r_, cap_, alpha_, u_;
    bool hinge_ = false;
    Interrupt& interrupt_;
    std::vector<std::int64_t> free_;
    std::int64_t steps_ = 20;  // of conjugate gradients; more where that was not enough
};

// Kernel values of some rows among themselves, contiguous: they will be read again and again. All rows in their order
// need no copy.
// requires: rows within gram, both ways.
// ensures: values are in gram or in room.
inline Gram packed(const Gram& gram, View<const std::int32_t> rows, std::vector<float>& room) {
    const std::int64_t m = rows.size();
    std::int64_t same = 0;
    while (same < m && rows[same] == same) ++same;
    if (same == m) return gram;
    room.resize(m * m);
    for (std::int64_t i = 0; i < m; ++i) {
        const float* from = gram.row(rows[i]);
        for (std::int64_t j = 0; j < m; ++j) room[i * m + j] = from[rows[j]];
    }
    return {room.data(), m, m, m};
}

// All problems for each of Cs, whose answers are the columns of alpha, a matrix of `width` columns; the first one is
// also the initial point, and each answer that of the next C. seen: problems x Cs; the primal of those that were not
// reached within `seconds` is infinite.
// requires: rows within gram, both ways; each problem has a row with weight; width >= Cs.size(); alpha >= 0.
// ensures: alpha >= 0, with the hinge loss alpha_i <= C s_i; dual <= optimum <= primal but for rounding.
inline void solve_all(const Gram& gram, const Problems& problems, View<const double> Cs, L2Method method, double tol,
                      std::int64_t budget, double seconds, double* alpha, std::int64_t width, L2Seen* seen,
                      int threads) {
    Interrupt interrupt(seconds);
    std::fill_n(seen, problems.count() * Cs.size(), L2Seen{std::numeric_limits<double>::infinity(), 0.0, 0});
    const auto make = [] { return std::vector<float>(); };
    for_tasks_with(
        problems.count(), threads, make,
        [&](std::int64_t p, std::vector<float>& room) {
            const std::int64_t begin = problems.begin(p);
            const std::int64_t m = problems.size(p);
            const View<const double> a = problems.a.part(begin, m);
            double* own = alpha + begin * width;
            std::vector<double> y(m), caps(m), start(m);
            for (std::int64_t i = 0; i < m; ++i) y[i] = std::copysign(1.0, a[i]), start[i] = own[i * width];
            L2Problem problem(packed(gram, problems.rows.part(begin, m), room), y, start, interrupt);
            for (std::int64_t c = 0; c < Cs.size(); ++c) {
                for (std::int64_t i = 0; i < m; ++i) caps[i] = Cs[c] * std::abs(a[i]);
                problem.set_penalty(method, caps);
                seen[p * Cs.size() + c] = problem.solve(method, tol, budget);
                for (std::int64_t i = 0; i < m; ++i) own[i * width + c] = problem.alpha()[i];
            }
        },
        interrupt);
}

}  // namespace cutsvm
