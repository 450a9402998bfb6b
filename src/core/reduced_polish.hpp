// Weights x of the reduced problem (core/reduced.hpp) moved to where c'x = 0, or as near as digits allow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/cholesky.hpp"
#include "core/reduced_planes.hpp"

namespace cutsvm {

// x with c.x = 0: the heavier side made lighter, which keeps to every other constraint.
inline void balance(std::span<double> x, const std::vector<double>& c) {
    double up = 0.0, down = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) (c[i] > 0.0 ? up : down) += x[i] * std::abs(c[i]);
    if (up == down) return;
    const double lighter = up > down ? down / up : up / down;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (up > down ? c[i] > 0.0 : c[i] < 0.0) x[i] *= lighter;
}

// c'x, with the rounding error of each product and each sum added in the end.
class FineSums {
  public:
    explicit FineSums(std::size_t width) : terms_(width), lost_(width) {}

    void of(const SortedPlanes& p, const std::vector<double>& x, std::vector<double>& sums) {
        std::fill(sums.begin(), sums.end(), 0.0);
        std::fill(lost_.begin(), lost_.end(), 0.0);
        for (std::size_t i = 0; i < p.m; ++i) {
            multiply(x[i], p.lean(i));
            add(sums.data());
        }
        for (std::size_t j = 0; j < p.width; ++j) sums[j] += lost_[j];
    }

  private:
    // Two loops, so that no product is fused with its sum.
    void multiply(double x, const double* c) {
        for (std::size_t j = 0; j < terms_.size(); ++j) terms_[j] = x * c[j];
        for (std::size_t j = 0; j < terms_.size(); ++j) lost_[j] += std::fma(x, c[j], -terms_[j]);
    }
    void add(double* sums) {
        for (std::size_t j = 0; j < terms_.size(); ++j) {
            const double sum = sums[j] + terms_[j], share = sum - sums[j];
            lost_[j] += (sums[j] - (sum - share)) + (terms_[j] - share);
            sums[j] = sum;
        }
    }

    std::vector<double> terms_, lost_;
};

// x with c'x = aim as nearly as may be, and within its shards.
// The nearest such x, distances being taken in shares of x and t: what is next to nothing stays so. That is
// x (1 - (c - mean) v) and t (1 + mean v), with the shard's mean of c, t counting as a plane with c = 0; so the sum of
// x and t stays 1. Where x >= 0 forbids that, all of x is made smaller by one factor, which leaves c'x = 0 as it is.
class Polish {
  public:
    Polish(const SortedPlanes& planes, const ReducedRules& rules)
        : p_(planes),
          rules_(rules),
          middle_(p_.free),
          spread_(p_.c.size()),
          mean_(p_.shards * p_.width),
          rows_(spread_.size() + mean_.size()),
          t_(p_.shards),
          aim_(p_.free),
          added_(p_.free),
          off_(p_.width),
          fine_(p_.width) {}

    void operator()(std::vector<double>& x, const double* t, const double* y_up, const double* y_down) {
        t_.assign(t, t + p_.shards);
        for (std::size_t j = 0; j < p_.free; ++j) aim_[j] = y_down[j] - y_up[j];
        least_ = INFINITY;
        best_ = x;
        for (int times = 0; better(x) && times < rules_.polish && remove(x); ++times) {
        }
        x = best_;
        double largest = 1.0;
        for (std::size_t p = 0; p < p_.shards; ++p)
            largest = std::max(largest, p_.sum(p, [&](std::size_t i) { return x[i]; }));
        for (double& weight : x) weight /= largest;
    }

    // At least |c'x|_1
    double off_balance(const std::vector<double>& x) {
        fine_.of(p_, x, off_);
        double total = 0.0, added = 0.0;
        for (std::size_t j = 0; j < p_.free; ++j) total += std::abs(off_[j]);
        for (std::size_t i = 0; i < p_.m; ++i)
            for (std::size_t j = 0; j < p_.free; ++j) added += x[i] * std::abs(p_.lean(i)[j]);
        return (1.0 + rules_.round_off) * total + rules_.fine * added;
    }

  private:
    // Whether c'x is nearer to the aim than for all x before.
    bool better(const std::vector<double>& x) {
        fine_.of(p_, x, off_);
        double total = 0.0;
        for (std::size_t j = 0; j < p_.free; ++j) {
            off_[j] -= aim_[j];
            total += std::abs(off_[j]);
        }
        if (!(total < least_)) return false;
        least_ = total;
        best_ = x;
        return true;
    }

    // Removes what c'x is off the aim; false if that is not worth it, or cannot be done.
    bool remove(std::vector<double>& x) {
        if (p_.given.radius * least_ <= rules_.round_off * dot(p_.o.data(), x.data(), p_.m)) return false;
        for (std::size_t p = 0; p < p_.shards; ++p) centre(p, x);
        middle_.H.clear();
        add_products(middle_.H, rows_.data(), p_.width, p_.m + p_.shards);
        guard_diagonal(middle_.H, 0, rules_.guard, added_);
        if (!middle_.factorise()) return false;
        middle_.solve(off_.data());
        const double* spread = spread_.data();
        for (std::size_t i = 0; i < p_.m; ++i) x[i] *= factor(-dot(spread + i * p_.width, off_.data(), p_.free));
        for (std::size_t p = 0; p < p_.shards; ++p) t_[p] *= factor(dot(mean(p), off_.data(), p_.free));
        return true;
    }

    // At most doubled: what is far off is not near in one go.
    static double factor(double change) { return std::fmin(2.0, std::fmax(0.0, 1.0 + change)); }

    // The mean of shard p, the distances from it, and both times the roots of their weights.
    void centre(std::size_t p, const std::vector<double>& x) {
        double* middle = mean(p);
        std::fill(middle, middle + p_.width, 0.0);
        add_rows(x.data(), [&](std::size_t i) { return p_.lean(i); }, p_.starts[p], p_.starts[p + 1], middle, p_.width);
        const double total = t_[p] + p_.sum(p, [&](std::size_t i) { return x[i]; });
        for (std::size_t j = 0; j < p_.width; ++j) middle[j] /= total;
        const auto put = [&](double weight, const double* from, std::size_t row) {
            for (std::size_t j = 0; j < p_.width; ++j) rows_[row * p_.width + j] = std::sqrt(weight) * from[j];
        };
        for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) {
            double* spread = spread_.data() + i * p_.width;
            for (std::size_t j = 0; j < p_.width; ++j) spread[j] = p_.lean(i)[j] - middle[j];
            put(x[i], spread, i);
        }
        put(t_[p], middle, p_.m + p);
    }

    double* mean(std::size_t p) { return mean_.data() + p * p_.width; }

    const SortedPlanes& p_;
    const ReducedRules& rules_;
    Cholesky middle_;
    std::vector<double> spread_, mean_, rows_, t_, aim_, added_, off_, best_;
    double least_ = INFINITY;  // what is off where x is best so far
    FineSums fine_;
};

}  // namespace cutsvm
