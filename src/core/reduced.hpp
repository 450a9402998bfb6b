// The reduced problem: the objective with planes in place of the risk.
//
//   min over w, b    |w|^2/2 + C sum_p max(0, max over the planes k of shard p of  a_k.w + c_k.b + o_k)     (primal)
//   max over x       C o.x - C^2 |A'x|^2/2   with  x >= 0,  sum of x over each shard <= 1,  c'x = 0          (dual)
//
// with w = -C A'x and b the free intercepts. Any feasible x gives a lower bound. With two free intercepts and more,
// c'x = 0 cannot hold exactly, and the method solves instead
//
//   min over w, b    as above, with |b_j| <= bound
//   max over x       C o.x - C^2 |A'x|^2/2 - C bound |c'x|_1   with  x >= 0,  sum of x over each shard <= 1
//
// where bound, given by the caller, is such that some solution of the whole problem lies within it. The method, its
// letters and its settings are those of cutsvm/qp/interior_point.py, Mehrotra's predictor-corrector method:
//
//   x, z, t, u = a start inside the constraints of both sides
//   repeat until value - lower <= tol
//       factorise  M = C A A' + diag(z/x) + E' diag(u/t) E     (E: which plane belongs to which shard)
//       predictor: Newton step towards complementarity 0; how far it can go gives sigma
//       corrector: Newton step towards complementarity sigma mu, with the predictor's second-order term
//       if that step is short, or does not decrease mu: a step towards mu / 2
//       go `fraction_to_boundary` of the way to the boundary, less if some product x z or t u would be far below mu
//
// `multipliers` holds x and then t, `slacks` z and u. If b has a box, there follow the multipliers y+ and y- of its
// constraints (c'x + y+ - y- = 0), with the slacks bound - b and bound + b. M is factorised as it is (ByPlanes), or by
// Woodbury's formula with one row per feature (ByFeatures). One thread: results repeat exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/interrupt.hpp"
#include "core/reduced_balance.hpp"
#include "core/reduced_newton.hpp"
#include "core/reduced_planes.hpp"

namespace cutsvm {

template <class Form>
class InteriorPoint {
  public:
    // warm_start: weights to start from, in the order of the given planes; or none.
    InteriorPoint(const SortedPlanes& planes, double C, const InteriorPointSettings& settings,
                  std::span<const double> warm_start)
        : p_(planes),
          settings_(settings),
          C_(C),
          m_(p_.m),
          box_begin_(m_ + p_.shards),
          pairs_(box_begin_ + (p_.boxed ? 2 * p_.free : 0)),
          form_(planes, C, settings_.regularization),
          multipliers_(pairs_),
          slacks_(pairs_),
          products_(pairs_),
          change_(pairs_),
          d_multipliers_(pairs_),
          d_slacks_(pairs_),
          right_(m_),
          plane_values_(m_),
          best_x_(m_),
          residual_(p_.width),
          box_curvature_(p_.width) {
        if (p_.boxed) projection_.emplace(p_, settings_);
        initialize_weights(warm_start);
        initialize_slacks();
        if (p_.boxed) initialize_box();
    }

    ReducedResult solve(double tol, std::span<double> w, std::span<double> weights) {
        Interrupt interrupt;
        certify();
        while (best_.value - best_.lower > tol && steps_ < settings_.max_steps && step()) {
            certify();
            interrupt.check();
        }
        const std::size_t d = p_.given.features;
        std::vector<double> combined(d), b(p_.free);
        std::fill(w.begin(), w.end(), 0.0);
        form_.best(best_x_.data(), combined, w.first(d), b.data());
        for (std::size_t j = 0; j < p_.free; ++j) w[d + p_.active_intercepts[j]] = b[j];
        for (std::size_t i = 0; i < m_; ++i) weights[p_.order[i]] = best_x_[i];
        best_.lower = std::max(0.0, linear_ - 0.5 * C_ * C_ * dot(combined.data(), combined.data(), d));
        return best_;
    }

  private:
    // Equal weights, or `warm_start` moved inside the constraints; then the best multiple of them.
    void initialize_weights(std::span<const double> warm_start) {
        const double floor = settings_.min_initial_weight;
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double equal = 1.0 / static_cast<double>(p_.starts[p + 1] - p_.starts[p] + 1);
            double sum = 0.0;
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i)
                sum += multipliers_[i] = warm_start.empty() ? equal : std::max(warm_start[p_.order[i]], floor * equal);
            if (warm_start.empty()) continue;
            const double scale = std::max(1.0, sum * (1.0 + floor * equal));
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) multipliers_[i] /= scale;
        }
        // From c'x far from 0 the method may cycle: it starts from c'x = 0 where c has both signs.
        if (!p_.boxed && p_.free == 1 && std::ranges::any_of(p_.c, [](double c) { return c > 0.0; }) &&
            std::ranges::any_of(p_.c, [](double c) { return c < 0.0; }))
            balance(std::span(multipliers_).first(m_), p_.c);
        form_.start(multipliers_.data());
        const double linear = C_ * dot(p_.o.data(), multipliers_.data(), m_), quadratic = 2.0 * form_.penalty();
        if (0.0 < linear && linear < quadratic) {  // the dual is a parabola along the multiples of x
            for (std::size_t i = 0; i < m_; ++i) multipliers_[i] *= linear / quadratic;
            form_.start(multipliers_.data());
        }
    }

    // t = 1 - sum of x; u above the shard's planes; z = u - m.
    void initialize_slacks() {
        form_.plane_values(plane_values_.data());
        double distances = 0.0, largest = 0.0;
        for (std::size_t p = 0; p < p_.shards; ++p) {
            slacks_[m_ + p] = p_.shard_risk(p, plane_values_.data());
            multipliers_[m_ + p] = 1.0 - p_.sum(p, [&](std::size_t i) { return multipliers_[i]; });
            distances += p_.sum(p, [&](std::size_t i) { return slacks_[m_ + p] - plane_values_[i]; });
        }
        for (const double o : p_.o) largest = std::max(largest, std::abs(o));
        const double mean = distances / static_cast<double>(m_);
        const double raise = std::max({settings_.initial_slack * mean, settings_.min_initial_slack * largest, 1e-300});
        for (std::size_t p = 0; p < p_.shards; ++p) {
            slacks_[m_ + p] += raise;
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i)
                slacks_[i] = slacks_[m_ + p] - plane_values_[i];
        }
    }

    // b = 0, with multipliers that give its products the mean of the others.
    void initialize_box() {
        const double mean = dot(multipliers_.data(), slacks_.data(), box_begin_) / static_cast<double>(box_begin_);
        for (std::size_t i = box_begin_; i < pairs_; ++i) {
            multipliers_[i] = mean / p_.given.intercept_bound;
            slacks_[i] = p_.given.intercept_bound;
        }
    }

    // The indices of y+, y- and their slacks.
    std::size_t up(std::size_t j) const { return box_begin_ + j; }
    std::size_t down(std::size_t j) const { return box_begin_ + p_.free + j; }

    // One step; false when rounding leaves nothing to gain.
    bool step() {
        if (p_.boxed)
            for (std::size_t j = 0; j < p_.free; ++j)
                box_curvature_[j] = multipliers_[up(j)] / slacks_[up(j)] + multipliers_[down(j)] / slacks_[down(j)];
        if (!form_.factorise(multipliers_.data(), slacks_.data(), box_curvature_.data())) return false;
        const double step_length = predictor_corrector();
        if (!(step_length > settings_.stalled_step_length)) return false;
        for (std::size_t i = 0; i < pairs_; ++i)
            if (!std::isfinite(d_multipliers_[i]) || !std::isfinite(d_slacks_[i])) return false;
        add_multiple(step_length, d_multipliers_.data(), multipliers_.data(), pairs_);
        add_multiple(step_length, d_slacks_.data(), slacks_.data(), pairs_);
        form_.move(multipliers_.data(), step_length);
        if (p_.boxed)
            for (double* b = form_.b(); b < form_.b() + p_.free; ++b)
                *b = std::clamp(*b, -p_.given.intercept_bound, p_.given.intercept_bound);
        form_.plane_values(plane_values_.data());
        ++steps_;
        return true;
    }

    // The direction of a step, and its length.
    double predictor_corrector() {
        double least = INFINITY, sum = 0.0;
#pragma omp simd reduction(+ : sum) reduction(min : least)
        for (std::size_t i = 0; i < pairs_; ++i) {
            products_[i] = multipliers_[i] * slacks_[i];
            change_[i] = -products_[i];
            least = std::min(least, products_[i]);
            sum += products_[i];
        }
        const double mu = sum / static_cast<double>(pairs_);
        compute_direction();
        const double sigma = std::pow(products_after(max_step_length()).mean / mu, 3);
        for (std::size_t i = 0; i < pairs_; ++i)
            change_[i] = sigma * mu - products_[i] - d_multipliers_[i] * d_slacks_[i];
        compute_direction();
        double length = std::min(1.0, settings_.fraction_to_boundary * max_step_length());
        if (length < settings_.min_step_length || products_after(length).mean > settings_.max_mu_ratio * mu) {
            for (std::size_t i = 0; i < pairs_; ++i) change_[i] = settings_.recentering_mu_ratio * mu - products_[i];
            compute_direction();
            length = std::min(1.0, settings_.fraction_to_boundary * max_step_length());
        }
        return backtrack(length, std::min(settings_.min_centrality, settings_.centrality_decrease * least / mu));
    }

    // Newton's direction that changes the products by `change_` and meets all constraints.
    void compute_direction() {
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double u = slacks_[m_ + p], from_t = change_[m_ + p] / multipliers_[m_ + p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) {
                const double dual_residual = u - plane_values_[i] - slacks_[i];
                right_[i] = change_[i] / multipliers_[i] - dual_residual - from_t;
            }
        }
        p_.intercept_sums(multipliers_.data(), residual_.data());
        for (std::size_t j = 0; j < p_.free; ++j) residual_[j] = -residual_[j];
        if (p_.boxed)
            for (std::size_t j = 0; j < p_.free; ++j) {
                residual_[j] -= multipliers_[up(j)] + change_[up(j)] / slacks_[up(j)];
                residual_[j] += multipliers_[down(j)] + change_[down(j)] / slacks_[down(j)];
            }
        form_.direction(right_, residual_.data(), d_multipliers_.data(), d_multipliers_.data() + m_);
        for (std::size_t i = m_; i < box_begin_; ++i) d_multipliers_[i] = -d_multipliers_[i];
        for (std::size_t i = 0; i < box_begin_; ++i)
            d_slacks_[i] = (change_[i] - slacks_[i] * d_multipliers_[i]) / multipliers_[i];
        if (!p_.boxed) return;
        for (std::size_t j = 0; j < p_.free; ++j) {
            d_slacks_[up(j)] = form_.db()[j];
            d_slacks_[down(j)] = -form_.db()[j];
        }
        for (std::size_t i = box_begin_; i < pairs_; ++i)
            d_multipliers_[i] = (change_[i] - multipliers_[i] * d_slacks_[i]) / slacks_[i];
    }

    // The longest step, up to 1 / fraction_to_boundary, that keeps all multipliers and slacks positive.
    double max_step_length() const {
        double steepest = settings_.fraction_to_boundary;
#pragma omp simd reduction(max : steepest)
        for (std::size_t i = 0; i < pairs_; ++i)
            steepest = std::max(steepest, std::max(-d_multipliers_[i] / multipliers_[i], -d_slacks_[i] / slacks_[i]));
        return 1.0 / steepest;
    }

    struct Products {
        double mean, least;
    };

    // The products of multipliers and slacks after such a step.
    Products products_after(double step_length) const {
        double sum = 0.0, least = INFINITY;
#pragma omp simd reduction(+ : sum) reduction(min : least)
        for (std::size_t i = 0; i < pairs_; ++i) {
            const double product =
                (multipliers_[i] + step_length * d_multipliers_[i]) * (slacks_[i] + step_length * d_slacks_[i]);
            sum += product;
            least = std::min(least, product);
        }
        return {sum / static_cast<double>(pairs_), least};
    }

    // The step length, shortened until no product is below `centrality` times their mean.
    double backtrack(double step_length, double centrality) const {
        for (int i = 0; i < settings_.max_backtracks; ++i) {
            const Products products = products_after(step_length);
            if (products.least >= centrality * products.mean) break;
            step_length *= settings_.backtracking;
        }
        return step_length;
    }

    // The value at w and b, and the lower bound from x made feasible; saves them if their gap is the smallest so far.
    void certify() {
        double risk = 0.0;
        for (std::size_t p = 0; p < p_.shards; ++p) risk += p_.shard_risk(p, plane_values_.data());
        const double value = form_.penalty() + C_ * risk;
        std::vector<double>& x = right_;  // not in use between steps
        x.assign(multipliers_.begin(), multipliers_.begin() + static_cast<std::ptrdiff_t>(m_));
        double products = 0.0, heights = 0.0;
        if (p_.boxed) {
            (*projection_)(x, multipliers_.data() + m_, multipliers_.data() + up(0), multipliers_.data() + down(0));
            for (std::size_t i = 0; i < m_; ++i) {
                const double cb = dot(p_.intercept_slopes(i), form_.b(), p_.free);
                products += x[i] * std::abs(plane_values_[i] - p_.o[i] - cb);
            }
        } else {
            within_shards(x);
            if (p_.free > 0) balance(x, p_.c);
#pragma omp simd reduction(+ : products)
            for (std::size_t i = 0; i < m_; ++i) products += x[i] * std::abs(plane_values_[i] - p_.o[i]);
        }
#pragma omp simd reduction(+ : heights)
        for (std::size_t i = 0; i < m_; ++i) heights += x[i] * std::abs(p_.o[i]);
        double linear = C_ * dot(p_.o.data(), x.data(), m_);
        linear -= settings_.rounding_error * C_ * (heights + products);
        if (p_.boxed) linear -= C_ * p_.given.intercept_bound * projection_->imbalance(x);
        const double lower = linear - 0.5 * form_.quadratic(x.data());
        if (steps_ > 0 && !(value - lower < best_.value - best_.lower)) return;
        best_ = {lower, value, risk, steps_};
        linear_ = linear;
        std::copy(x.begin(), x.end(), best_x_.begin());
        form_.save_best();
    }

    // Scales x down where its sum over a shard exceeds 1.
    void within_shards(std::vector<double>& x) const {
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double sum = p_.sum(p, [&](std::size_t i) { return x[i]; });
            if (sum > 1.0)  // by round-off
                for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) x[i] /= sum;
        }
    }

    const SortedPlanes& p_;
    const InteriorPointSettings settings_;
    double C_;
    std::size_t m_, box_begin_, pairs_;  // pairs from box_begin_ on are the box's
    Form form_;
    std::vector<double> multipliers_, slacks_, products_, change_, d_multipliers_, d_slacks_;
    std::vector<double> right_, plane_values_, best_x_, residual_, box_curvature_;
    std::optional<Projection> projection_;  // if b has a box
    ReducedResult best_{};
    double linear_ = 0.0;  // C o.x of the best bound, less its rounding errors and C bound |c'x|_1
    int steps_ = 0;
};

// Solves the reduced problem to an absolute tolerance of the objective.
// requires: at least one plane; a finite intercept_bound above 0 if free > 1; w has features + free entries, weights
// one per plane; warm_start is empty or has one weight >= 0 per plane.
// ensures: lower <= optimum <= value; value - lower <= tol unless rounding or max_steps ended the method; w attains
// value, weights are feasible and attain lower.
inline ReducedResult solve_reduced(const PlanesView& planes, double C, double tol, std::span<const double> warm_start,
                                   const InteriorPointSettings& settings, std::span<double> w,
                                   std::span<double> weights) {
    const SortedPlanes sorted(planes);
    if (planes.gram != nullptr) return InteriorPoint<ByPlanes>(sorted, C, settings, warm_start).solve(tol, w, weights);
    return InteriorPoint<ByFeatures>(sorted, C, settings, warm_start).solve(tol, w, weights);
}

}  // namespace cutsvm
