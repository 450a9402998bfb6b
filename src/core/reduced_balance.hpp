// Weights x of the reduced problem (core/reduced.hpp) with c'x = 0, exactly or as nearly as rounding allows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/cholesky.hpp"
#include "core/reduced_planes.hpp"

namespace cutsvm {

// x with c.x = 0: weights of the sign whose sum is larger are scaled down, which keeps every other constraint.
// requires: x >= 0, as long as c.
inline void balance(std::span<double> x, const std::vector<double>& c) {
    double up = 0.0, down = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) (c[i] > 0.0 ? up : down) += x[i] * std::abs(c[i]);
    if (up == down) return;
    const double scale = up > down ? down / up : up / down;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (up > down ? c[i] > 0.0 : c[i] < 0.0) x[i] *= scale;
}

// c'x, with the rounding error of each product and each sum added at the end.
class CompensatedSums {
  public:
    explicit CompensatedSums(std::size_t width) : terms_(width), errors_(width) {}

    void of(const SortedPlanes& p, const std::vector<double>& x, std::vector<double>& sums) {
        std::fill(sums.begin(), sums.end(), 0.0);
        std::fill(errors_.begin(), errors_.end(), 0.0);
        for (std::size_t i = 0; i < p.m; ++i) {
            multiply(x[i], p.intercept_slopes(i));
            add(sums.data());
        }
        for (std::size_t j = 0; j < p.width; ++j) sums[j] += errors_[j];
    }

  private:
    // Two loops, so that no product is fused with its sum.
    void multiply(double x, const double* c) {
        for (std::size_t j = 0; j < terms_.size(); ++j) terms_[j] = x * c[j];
        for (std::size_t j = 0; j < terms_.size(); ++j) errors_[j] += std::fma(x, c[j], -terms_[j]);
    }
    void add(double* sums) {
        for (std::size_t j = 0; j < terms_.size(); ++j) {
            const double sum = sums[j] + terms_[j], added = sum - sums[j];
            errors_[j] += (sums[j] - (sum - added)) + (terms_[j] - added);
            sums[j] = sum;
        }
    }

    std::vector<double> terms_, errors_;
};

// x with c'x = target, as nearly as x >= 0 and rounding allow, and with sums over the shards of at most 1.
// The nearest such x, with distances relative to x and t, so that small weights stay small:
// x (1 - (c - mean) v) and t (1 + mean v), with the shard's weighted mean of c, t counting as a plane with c = 0; the
// sum of x and t stays 1. The result is divided by the largest sum over a shard if that exceeds 1, which leaves c'x = 0
// as it is.
class Projection {
  public:
    Projection(const SortedPlanes& planes, const InteriorPointSettings& settings)
        : p_(planes),
          settings_(settings),
          normal_(p_.free),
          centered_(p_.c.size()),
          mean_(p_.shards * p_.width),
          rows_(centered_.size() + mean_.size()),
          t_(p_.shards),
          target_(p_.free),
          added_(p_.free),
          residual_(p_.width),
          compensated_(p_.width) {}

    void operator()(std::vector<double>& x, const double* t, const double* y_up, const double* y_down) {
        t_.assign(t, t + p_.shards);
        for (std::size_t j = 0; j < p_.free; ++j) target_[j] = y_down[j] - y_up[j];
        least_ = INFINITY;
        best_ = x;
        for (int i = 0; improves(x) && i < settings_.max_projections && project(x); ++i) {
        }
        x = best_;
        double largest = 1.0;
        for (std::size_t p = 0; p < p_.shards; ++p)
            largest = std::max(largest, p_.sum(p, [&](std::size_t i) { return x[i]; }));
        for (double& weight : x) weight /= largest;
    }

    // At least |c'x|_1
    double imbalance(const std::vector<double>& x) {
        compensated_.of(p_, x, residual_);
        double total = 0.0, added = 0.0;
        for (std::size_t j = 0; j < p_.free; ++j) total += std::abs(residual_[j]);
        for (std::size_t i = 0; i < p_.m; ++i)
            for (std::size_t j = 0; j < p_.free; ++j) added += x[i] * std::abs(p_.intercept_slopes(i)[j]);
        return (1.0 + settings_.rounding_error) * total + settings_.compensated_rounding_error * added;
    }

  private:
    // Computes c'x - target; saves x and returns true if its sum of absolute values is the smallest so far.
    bool improves(const std::vector<double>& x) {
        compensated_.of(p_, x, residual_);
        double total = 0.0;
        for (std::size_t j = 0; j < p_.free; ++j) {
            residual_[j] -= target_[j];
            total += std::abs(residual_[j]);
        }
        if (!(total < least_)) return false;
        least_ = total;
        best_ = x;
        return true;
    }

    // One projection; false if the residual is as small as rounding errors, or the matrix is indefinite by rounding.
    bool project(std::vector<double>& x) {
        const double linear = dot(p_.o.data(), x.data(), p_.m);
        if (p_.given.intercept_bound * least_ <= settings_.rounding_error * linear) return false;
        for (std::size_t p = 0; p < p_.shards; ++p) center(p, x);
        normal_.H.clear();
        add_products(normal_.H, rows_.data(), p_.width, p_.m + p_.shards);
        regularize_diagonal(normal_.H, 0, settings_.regularization, added_);
        if (!normal_.factorise()) return false;
        normal_.solve(residual_.data());
        const double* centered = centered_.data();
        for (std::size_t i = 0; i < p_.m; ++i) x[i] *= factor(-dot(centered + i * p_.width, residual_.data(), p_.free));
        for (std::size_t p = 0; p < p_.shards; ++p) t_[p] *= factor(dot(mean(p), residual_.data(), p_.free));
        return true;
    }

    // 1 + change, within [0, 2].
    static double factor(double change) { return std::fmin(2.0, std::fmax(0.0, 1.0 + change)); }

    // The weighted mean of c over shard p, the distances from it, and both times the roots of their weights.
    void center(std::size_t p, const std::vector<double>& x) {
        double* average = mean(p);
        std::fill(average, average + p_.width, 0.0);
        const auto slopes = [&](std::size_t i) { return p_.intercept_slopes(i); };
        add_rows(x.data(), slopes, p_.starts[p], p_.starts[p + 1], average, p_.width);
        const double total = t_[p] + p_.sum(p, [&](std::size_t i) { return x[i]; });
        for (std::size_t j = 0; j < p_.width; ++j) average[j] /= total;
        const auto put = [&](double weight, const double* from, std::size_t row) {
            for (std::size_t j = 0; j < p_.width; ++j) rows_[row * p_.width + j] = std::sqrt(weight) * from[j];
        };
        for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) {
            double* centered = centered_.data() + i * p_.width;
            for (std::size_t j = 0; j < p_.width; ++j) centered[j] = p_.intercept_slopes(i)[j] - average[j];
            put(x[i], centered, i);
        }
        put(t_[p], average, p_.m + p);
    }

    double* mean(std::size_t p) { return mean_.data() + p * p_.width; }

    const SortedPlanes& p_;
    const InteriorPointSettings& settings_;
    Cholesky normal_;
    std::vector<double> centered_, mean_, rows_, t_, target_, added_, residual_, best_;
    double least_ = INFINITY;  // sum of |c'x - target| of the best x so far
    CompensatedSums compensated_;
};

}  // namespace cutsvm
