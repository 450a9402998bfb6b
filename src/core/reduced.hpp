// The reduced problem: the objective with planes in place of the risk.
//
//   min over w, b    |w|^2/2 + C sum_p max(0, max over the planes k of shard p of  a_k.w + c_k.b + o_k)     (primal)
//   max over x       C o.x - C^2 |A'x|^2/2   with  x >= 0,  sum of x over each shard <= 1,  c'x = 0          (dual)
//
// with w = -C A'x and b the free coordinates. Any x that keeps to the constraints gives a lower bound. With two free
// coordinates and more, c'x = 0 cannot be had exactly, and these are solved instead:
//
//   min over w, b    as above, with |b_j| <= radius
//   max over x       C o.x - C^2 |A'x|^2/2 - C radius |c'x|_1   with  x >= 0,  sum of x over each shard <= 1
//
// The caller knows a radius beyond which b need not go. The method, its letters and its rules are those of
// cutsvm/reduced.py, a primal-dual interior point method with Mehrotra's predictor and corrector:
//
//   x, z, t, u = a start inside the constraints of both sides
//   repeat until value - bound <= tol
//       factorise  M = C A A' + diag(z/x) + E' diag(u/t) E     (E: which plane is whose shard)
//       predictor: Newton step towards complementarity 0; see how far it could go
//       corrector: Newton step towards complementarity sigma mu, with the predictor's second-order term
//       if that is short, or does not bring mu down: a step that only halves mu
//       go most of the way to the boundary, less if some product x z or t u would lag behind
//
// Pairs lie side by side: `inside` holds x and then t, `outside` their partners z and u. If b has a box, there follow
// the multipliers y+ and y- of its walls (c'x + y+ - y- = 0), with radius - b and radius + b. M is factorised as it is
// (ByPlanes), or by Woodbury's formula with one row per feature (ByFeatures). One thread: results repeat exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/interrupt.hpp"
#include "core/reduced_forms.hpp"
#include "core/reduced_planes.hpp"
#include "core/reduced_polish.hpp"

namespace cutsvm {

template <class Form>
class InteriorPoint {
  public:
    // warm: weights to start from, in the order of the given planes; or none.
    InteriorPoint(const SortedPlanes& planes, double C, const ReducedRules& rules, std::span<const double> warm)
        : p_(planes),
          rules_(rules),
          C_(C),
          m_(p_.m),
          walls_(m_ + p_.shards),
          pairs_(walls_ + (p_.boxed ? 2 * p_.free : 0)),
          form_(planes, C, rules.guard),
          inside_(pairs_),
          outside_(pairs_),
          products_(pairs_),
          change_(pairs_),
          din_(pairs_),
          dout_(pairs_),
          right_(m_),
          heights_(m_),
          best_x_(m_),
          off_(p_.width),
          stiff_(p_.width) {
        if (p_.boxed) polish_.emplace(p_, rules_);
        start(warm);
        if (p_.boxed) start_walls();
    }

    ReducedResult solve(double tol, std::span<double> w, std::span<double> weights) {
        Interrupt interrupt;
        certify();
        while (best_.value - best_.lower > tol && steps_ < rules_.max_steps && step()) {
            certify();
            interrupt.check();
        }
        const std::size_t d = p_.given.features;
        std::vector<double> pull(d), b(p_.free);
        std::fill(w.begin(), w.end(), 0.0);
        form_.kept(best_x_.data(), pull, w.first(d), b.data());
        for (std::size_t j = 0; j < p_.free; ++j) w[d + p_.leaning[j]] = b[j];
        for (std::size_t i = 0; i < m_; ++i) weights[p_.order[i]] = best_x_[i];
        best_.lower = std::max(0.0, gain_ - 0.5 * C_ * C_ * dot(pull.data(), pull.data(), d));
        return best_;
    }

  private:
    void start(std::span<const double> warm) {
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double equal = 1.0 / static_cast<double>(p_.starts[p + 1] - p_.starts[p] + 1);
            double sum = 0.0;
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i)
                sum += inside_[i] = warm.empty() ? equal : std::max(warm[p_.order[i]], rules_.floor * equal);
            if (warm.empty()) continue;
            const double over = std::max(1.0, sum * (1.0 + rules_.floor * equal));
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) inside_[i] /= over;
        }
        // Far off balance the method may go in circles: where both sides have weight, it starts from balance.
        if (!p_.boxed && p_.free == 1 && std::ranges::any_of(p_.c, [](double c) { return c > 0.0; }) &&
            std::ranges::any_of(p_.c, [](double c) { return c < 0.0; }))
            balance(std::span(inside_).first(m_), p_.c);
        // The best multiple of x: the dual is a parabola along it.
        form_.start(inside_.data());
        const double gain = C_ * dot(p_.o.data(), inside_.data(), m_), cost = 2.0 * form_.penalty();
        if (0.0 < gain && gain < cost) {
            for (std::size_t i = 0; i < m_; ++i) inside_[i] *= gain / cost;
            form_.start(inside_.data());
        }
        form_.heights(heights_.data());
        double room = 0.0, largest = 0.0;
        for (std::size_t p = 0; p < p_.shards; ++p) {
            outside_[m_ + p] = p_.top(p, heights_.data());
            inside_[m_ + p] = 1.0 - p_.sum(p, [&](std::size_t i) { return inside_[i]; });
            room += p_.sum(p, [&](std::size_t i) { return outside_[m_ + p] - heights_[i]; });
        }
        for (const double o : p_.o) largest = std::max(largest, std::abs(o));
        const double mean = room / static_cast<double>(m_);
        const double raise = std::max({rules_.headroom * mean, rules_.least_room * largest, 1e-300});
        for (std::size_t p = 0; p < p_.shards; ++p) {
            outside_[m_ + p] += raise;
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) outside_[i] = outside_[m_ + p] - heights_[i];
        }
    }

    // b = 0 is as far from all walls.
    void start_walls() {
        const double mean = dot(inside_.data(), outside_.data(), walls_) / static_cast<double>(walls_);
        for (std::size_t i = walls_; i < pairs_; ++i) {
            inside_[i] = mean / p_.given.radius;
            outside_[i] = p_.given.radius;
        }
    }

    // The places of y+, y- and their partners.
    std::size_t up(std::size_t j) const { return walls_ + j; }
    std::size_t down(std::size_t j) const { return walls_ + p_.free + j; }

    // One step; false when rounding leaves nothing to gain.
    bool step() {
        if (p_.boxed)
            for (std::size_t j = 0; j < p_.free; ++j)
                stiff_[j] = inside_[up(j)] / outside_[up(j)] + inside_[down(j)] / outside_[down(j)];
        if (!form_.factorise(inside_.data(), outside_.data(), stiff_.data())) return false;
        double least = INFINITY, sum = 0.0;
#pragma omp simd reduction(+ : sum) reduction(min : least)
        for (std::size_t i = 0; i < pairs_; ++i) {
            products_[i] = inside_[i] * outside_[i];
            change_[i] = -products_[i];
            least = std::min(least, products_[i]);
            sum += products_[i];
        }
        const double mu = sum / static_cast<double>(pairs_);
        direct();
        const double sigma = std::pow(ahead(reach()).mean / mu, 3);
        for (std::size_t i = 0; i < pairs_; ++i) change_[i] = sigma * mu - products_[i] - din_[i] * dout_[i];
        direct();
        double far = std::min(1.0, rules_.to_the_wall * reach());
        if (far < rules_.too_short || ahead(far).mean > rules_.less * mu) {  // astray: back to the central path first
            for (std::size_t i = 0; i < pairs_; ++i) change_[i] = rules_.back * mu - products_[i];
            direct();
            far = std::min(1.0, rules_.to_the_wall * reach());
        }
        far = central(far, std::min(rules_.lag, rules_.sink * least / mu));
        if (!(far > rules_.stuck)) return false;
        for (std::size_t i = 0; i < pairs_; ++i)
            if (!std::isfinite(din_[i]) || !std::isfinite(dout_[i])) return false;
        add_multiple(far, din_.data(), inside_.data(), pairs_);
        add_multiple(far, dout_.data(), outside_.data(), pairs_);
        form_.move(inside_.data(), far);
        if (p_.boxed)
            for (double* b = form_.b(); b < form_.b() + p_.free; ++b)
                *b = std::clamp(*b, -p_.given.radius, p_.given.radius);
        form_.heights(heights_.data());
        ++steps_;
        return true;
    }

    // Newton's direction that changes the products by `change_` and meets all constraints.
    void direct() {
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double u = outside_[m_ + p], from_t = change_[m_ + p] / inside_[m_ + p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i)
                right_[i] = change_[i] / inside_[i] - (u - heights_[i] - outside_[i]) - from_t;
        }
        p_.weigh(inside_.data(), off_.data());
        for (std::size_t j = 0; j < p_.free; ++j) off_[j] = -off_[j];
        if (p_.boxed)
            for (std::size_t j = 0; j < p_.free; ++j) {
                off_[j] -= inside_[up(j)] + change_[up(j)] / outside_[up(j)];
                off_[j] += inside_[down(j)] + change_[down(j)] / outside_[down(j)];
            }
        form_.direction(right_, off_.data(), din_.data(), din_.data() + m_);
        for (std::size_t i = m_; i < walls_; ++i) din_[i] = -din_[i];
        for (std::size_t i = 0; i < walls_; ++i) dout_[i] = (change_[i] - outside_[i] * din_[i]) / inside_[i];
        if (!p_.boxed) return;
        for (std::size_t j = 0; j < p_.free; ++j) {
            dout_[up(j)] = form_.db()[j];
            dout_[down(j)] = -form_.db()[j];
        }
        for (std::size_t i = walls_; i < pairs_; ++i) din_[i] = (change_[i] - inside_[i] * dout_[i]) / outside_[i];
    }

    // The longest step, up to 1 / to_the_wall, that keeps all pairs positive.
    double reach() const {
        double steepest = rules_.to_the_wall;
#pragma omp simd reduction(max : steepest)
        for (std::size_t i = 0; i < pairs_; ++i)
            steepest = std::max(steepest, std::max(-din_[i] / inside_[i], -dout_[i] / outside_[i]));
        return 1.0 / steepest;
    }

    struct Products {
        double mean, least;
    };

    // The products of the pairs after such a step.
    Products ahead(double reach) const {
        double sum = 0.0, least = INFINITY;
#pragma omp simd reduction(+ : sum) reduction(min : least)
        for (std::size_t i = 0; i < pairs_; ++i) {
            const double product = (inside_[i] + reach * din_[i]) * (outside_[i] + reach * dout_[i]);
            sum += product;
            least = std::min(least, product);
        }
        return {sum / static_cast<double>(pairs_), least};
    }

    // The step made shorter until no product lags far behind their mean.
    double central(double reach, double lag) const {
        for (int i = 0; i < rules_.times; ++i) {
            const Products products = ahead(reach);
            if (products.least >= lag * products.mean) break;
            reach *= rules_.shorter;
        }
        return reach;
    }

    // The value at w and b, and a bound from x, made to keep to the constraints exactly; the best pair so far is kept.
    void certify() {
        double risk = 0.0;
        for (std::size_t p = 0; p < p_.shards; ++p) risk += p_.top(p, heights_.data());
        const double value = form_.penalty() + C_ * risk;
        std::vector<double>& x = right_;  // not in use between steps
        x.assign(inside_.begin(), inside_.begin() + static_cast<std::ptrdiff_t>(m_));
        double travelled = 0.0;
        if (p_.boxed) {
            (*polish_)(x, inside_.data() + m_, inside_.data() + up(0), inside_.data() + down(0));
            for (std::size_t i = 0; i < m_; ++i)
                travelled += x[i] * std::abs(heights_[i] - p_.o[i] - dot(p_.lean(i), form_.b(), p_.free));
        } else {
            within_shards(x);
            if (p_.free > 0) balance(x, p_.c);
#pragma omp simd reduction(+ : travelled)
            for (std::size_t i = 0; i < m_; ++i) travelled += x[i] * std::abs(heights_[i] - p_.o[i]);
        }
        double gain = C_ * dot(p_.o.data(), x.data(), m_);
        gain -= rules_.round_off * (gain + C_ * travelled);
        if (p_.boxed) gain -= C_ * p_.given.radius * polish_->off_balance(x);
        const double lower = gain - 0.5 * form_.cost(x.data());
        if (steps_ > 0 && !(value - lower < best_.value - best_.lower)) return;
        best_ = {lower, value, risk, steps_};
        gain_ = gain;
        std::copy(x.begin(), x.end(), best_x_.begin());
        form_.keep();
    }

    void within_shards(std::vector<double>& x) const {
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double sum = p_.sum(p, [&](std::size_t i) { return x[i]; });
            if (sum > 1.0)  // by round-off
                for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) x[i] /= sum;
        }
    }

    const SortedPlanes& p_;
    const ReducedRules rules_;
    double C_;
    std::size_t m_, walls_, pairs_;  // pairs from walls_ on are the box's
    Form form_;
    std::vector<double> inside_, outside_, products_, change_, din_, dout_, right_, heights_, best_x_, off_, stiff_;
    std::optional<Polish> polish_;  // if b has a box
    ReducedResult best_{};
    double gain_ = 0.0;  // C o.x of the best bound, less what rounding may have added and what is off balance
    int steps_ = 0;
};

// Solves to an absolute tolerance of the objective; the bound holds whatever the tolerance.
// requires: at least one plane; a finite radius above 0 if free > 1; w has features + free entries, weights one per
// plane, warm too or none.
inline ReducedResult solve_reduced(const PlanesView& planes, double C, double tol, std::span<const double> warm,
                                   const ReducedRules& rules, std::span<double> w, std::span<double> weights) {
    const SortedPlanes sorted(planes);
    if (planes.gram != nullptr) return InteriorPoint<ByPlanes>(sorted, C, rules, warm).solve(tol, w, weights);
    return InteriorPoint<ByFeatures>(sorted, C, rules, warm).solve(tol, w, weights);
}

}  // namespace cutsvm
