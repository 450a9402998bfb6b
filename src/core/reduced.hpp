// The reduced problem: the objective with planes in place of the risk.
//
//   min over w, b    |w|^2/2 + C sum_p max(0, max over the planes k of shard p of  a_k.w + c_k b + o_k)     (primal)
//   max over x       C o.x - C^2 |A'x|^2/2   with  x >= 0,  sum of x over each shard <= 1,  c.x = 0          (dual)
//
// with w = -C A'x. Any x that keeps to the constraints gives a lower bound. The method, its letters and its rules are
// those of cutsvm/reduced.py, a primal-dual interior point method with Mehrotra's predictor and corrector:
//
//   x, z, t, u = a start inside the constraints of both sides
//   repeat until value - bound <= tol
//       factorise  M = C A A' + diag(z/x) + E' diag(u/t) E     (E: which plane is whose shard)
//       predictor: Newton step towards complementarity 0; see how far it could go
//       corrector: Newton step towards complementarity sigma mu, with the predictor's second-order term
//       if that is short, or does not bring mu down: a step that only halves mu
//       go most of the way to the boundary, less if some product x z or t u would lag behind
//
// Pairs lie side by side: `inside` holds x and then t, `outside` their partners z and u. M is factorised as it is
// (ByPlanes), or by Woodbury's formula with one row per feature (ByFeatures). One thread: results repeat exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/cholesky.hpp"

namespace cutsvm {

// The constants of the method; reduced.py says what each is for, and has their values.
struct ReducedRules {
    int max_steps;
    double to_the_wall, lag, sink, shorter;
    int times;
    double too_short, less, back, stuck, round_off, floor, headroom, least_room;
};

// Planes as the caller holds them, in any order.
struct PlanesView {
    const double* slopes;  // one row (a_k, c_k) per plane, `stride` apart
    std::size_t stride, features, free;
    std::span<const double> offsets;
    std::span<const std::int64_t> shard;
    const double* gram;  // a_k.a_l, rows `gram_stride` apart; or null
    std::size_t gram_stride;
};

struct ReducedResult {
    double lower, value, risk;
    int steps;
};

// The planes side by side by shard; shards without planes say nothing.
struct SortedPlanes {
    const PlanesView& given;
    std::size_t m, shards = 0;
    std::vector<std::size_t> order, starts;  // starts: one more than shards
    std::vector<double> o, c;                // c is empty if it would be 0: b is not known to such planes

    explicit SortedPlanes(const PlanesView& planes) : given(planes), m(planes.offsets.size()), order(m), o(m) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (!std::is_sorted(given.shard.begin(), given.shard.end()))
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t k, std::size_t l) { return given.shard[k] < given.shard[l]; });
        bool leaning = false;
        for (std::size_t i = 0; i < m; ++i) {
            if (i == 0 || given.shard[order[i]] != given.shard[order[i - 1]]) starts.push_back(i);
            o[i] = given.offsets[order[i]];
            leaning = leaning || (given.free > 0 && slope(i)[given.features] != 0.0);
        }
        shards = starts.size();
        starts.push_back(m);
        if (leaning)
            for (std::size_t i = 0; i < m; ++i) c.push_back(slope(i)[given.features]);
    }

    const double* slope(std::size_t i) const { return given.slopes + order[i] * given.stride; }

    // term(i), summed over the planes i of shard p.
    template <class Term>
    double sum(std::size_t p, const Term& term) const {
        double total = 0.0;
#pragma omp simd reduction(+ : total)
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) total += term(i);
        return total;
    }

    // What the planes say of shard p's risk.
    double top(std::size_t p, const double* heights) const {
        double top = 0.0;
#pragma omp simd reduction(max : top)
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) top = std::max(top, heights[i]);
        return top;
    }

    // pull = A'x, from the slopes themselves. Block by block: slopes may be far wider than a cache.
    void combine(const double* x, std::span<double> pull) const {
        constexpr std::size_t WIDTH = 1024;
        std::fill(pull.begin(), pull.end(), 0.0);
        for (std::size_t j = 0; j < pull.size(); j += WIDTH) {
            const auto row = [&](std::size_t i) { return slope(i) + j; };
            add_rows(x, row, 0, m, pull.data() + j, std::min(WIDTH, pull.size() - j));
        }
    }
};

// M itself, one row per plane. w is held as x, which says all about it, and its products with the planes, -C A A'x.
class ByPlanes {
  public:
    ByPlanes(const SortedPlanes& planes, double C)
        : p_(planes), C_(C), M_(p_.m), gram_(p_.m * p_.m), across_(p_.c.size()), x_(p_.m), products_(p_.m) {
        for (std::size_t i = 0; i < p_.m; ++i) {
            const double* row = p_.given.gram + p_.order[i] * p_.given.gram_stride;
            for (std::size_t j = 0; j < p_.m; ++j) gram_[i * p_.m + j] = C * row[p_.order[j]];
        }
    }

    // w = -C A'x, b = 0
    void start(const double* x) { set(x); }

    // w and b after `reach` of the last direction, which led to x.
    void move(const double* x, double reach) {
        b_ -= reach * db_;
        set(x);
    }

    // A w + c b + o
    void heights(double* out) const {
        for (std::size_t i = 0; i < p_.m; ++i) out[i] = products_[i] + p_.o[i];
        if (!p_.c.empty()) add_multiple(b_, p_.c.data(), out, p_.m);
    }

    // |w|^2 / 2
    double penalty() const { return -0.5 * C_ * dot(x_.data(), products_.data(), p_.m); }

    // |C A'x|^2
    double cost(const double* x) const {
        if (std::equal(x_.begin(), x_.end(), x)) return 2.0 * penalty();
        double sum = 0.0;
        for (std::size_t i = 0; i < p_.m; ++i) sum += x[i] * dot(gram_.data() + i * p_.m, x, p_.m);
        return C_ * sum;
    }

    bool factorise(const double* inside, const double* outside) {
        const std::size_t m = p_.m;
        Symmetric& M = M_.H;
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double stiff = outside[m + p] / inside[m + p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) {
                double* row = M.row(i);
                std::copy(gram_.begin() + i * m + i, gram_.begin() + (i + 1) * m, row + i);
                row[i] += outside[i] / inside[i];
                for (std::size_t j = i; j < p_.starts[p + 1]; ++j) row[j] += stiff;
                std::fill(row + m, row + M.size, 0.0);
            }
        }
        if (!M_.factorise()) return false;
        if (!p_.c.empty()) {
            across_ = p_.c;
            M_.solve(across_.data());
        }
        return true;
    }

    // M dx + c db = r, c.dx = s; sums are those of dx over the shards.
    void direction(const std::vector<double>& r, double s, double* dx, double* sums) {
        std::copy(r.begin(), r.end(), dx);
        M_.solve(dx);
        if (!p_.c.empty()) {
            db_ = (dot(p_.c.data(), dx, p_.m) - s) / dot(p_.c.data(), across_.data(), p_.m);
            add_multiple(-db_, across_.data(), dx, p_.m);
        }
        for (std::size_t p = 0; p < p_.shards; ++p) sums[p] = p_.sum(p, [&](std::size_t i) { return dx[i]; });
    }

    // Remembers w and b; `kept` gives them back, with pull = A'x for the x of the bound that belongs to them.
    void keep() {
        kept_ = x_;
        kept_b_ = b_;
    }
    void kept(const double* x, std::span<double> pull, std::span<double> w, double& b) const {
        p_.combine(kept_.data(), w);
        if (std::equal(kept_.begin(), kept_.end(), x))
            std::copy(w.begin(), w.end(), pull.begin());
        else
            p_.combine(x, pull);
        for (double& coefficient : w) coefficient *= -C_;
        b = kept_b_;
    }

  private:
    void set(const double* x) {
        x_.assign(x, x + p_.m);
        for (std::size_t i = 0; i < p_.m; ++i) products_[i] = -dot(gram_.data() + i * p_.m, x, p_.m);
    }

    const SortedPlanes& p_;
    double C_;
    Cholesky M_;
    std::vector<double> gram_;  // C A A', in the order of the shards
    std::vector<double> across_, x_, products_, kept_;
    double b_ = 0.0, db_ = 0.0, kept_b_ = 0.0;
};

// M = K + B B' with B = sqrt(C) A and K the rest, which inverts shard by shard; then one row per feature, one for b.
// With k = x/z, its sum s over the shard and r = t/u:  (1/K) v = k (v - mean + mean r/(r + s)), mean = sum of k v / s.
// Written as distances from the mean, nothing large is subtracted from anything large. w is held as (w/sqrt(C), b), and
// follows its own step and not x: close to the solution x is known to fewer digits.
class ByFeatures {
  public:
    ByFeatures(const SortedPlanes& planes, double C)
        : p_(planes),
          root_(std::sqrt(C)),
          d_(p_.given.features),
          n_(d_ + !p_.c.empty()),
          width_(padded(n_)),
          B_(p_.m * width_),
          H_(n_),
          chunk_(CHUNK * width_),
          mean_(width_),
          w_(width_),
          dw_(width_),
          k_(p_.m),
          total_(p_.shards),
          rest_(p_.shards),
          left_(p_.m) {
        for (std::size_t i = 0; i < p_.m; ++i) {
            const double* slope = p_.slope(i);
            for (std::size_t j = 0; j < d_; ++j) B_[i * width_ + j] = root_ * slope[j];
            if (!p_.c.empty()) B_[i * width_ + d_] = p_.c[i];
        }
    }

    void start(const double* x) {
        combine(x, w_);
        for (double& coordinate : w_) coordinate = -coordinate;
        if (!p_.c.empty()) w_[d_] = 0.0;
    }

    void move(const double*, double reach) { add_multiple(-reach, dw_.data(), w_.data(), width_); }

    void heights(double* out) const {
        for (std::size_t i = 0; i < p_.m; ++i) out[i] = dot(row(i), w_.data(), width_) + p_.o[i];
    }

    double penalty() const { return 0.5 * root_ * root_ * dot(w_.data(), w_.data(), d_); }

    double cost(const double* x) {
        combine(x, dw_);
        return root_ * root_ * dot(dw_.data(), dw_.data(), d_);
    }

    // H = 1 + B' (1/K) B (without the 1 for b), as a sum of squares: distances from the shard's mean, and the mean.
    bool factorise(const double* inside, const double* outside) {
        const std::size_t m = p_.m;
        H_.H.clear();
        for (std::size_t j = 0; j < d_; ++j) H_.H.row(j)[j] = 1.0;
        for (std::size_t i = 0; i < m; ++i) k_[i] = inside[i] / outside[i];
        std::size_t used = 0;
        const auto next = [&] {
            if (used == CHUNK) {
                add_products(H_.H, chunk_.data(), width_, used);
                used = 0;
            }
            return chunk_.data() + width_ * used++;
        };
        for (std::size_t p = 0; p < p_.shards; ++p) {
            total_[p] = p_.sum(p, [&](std::size_t i) { return k_[i]; });
            const double r = inside[m + p] / outside[m + p];
            rest_[p] = r / (r + total_[p]);
            std::fill(mean_.begin(), mean_.end(), 0.0);
            const auto rows = [&](std::size_t i) { return row(i); };
            add_rows(k_.data(), rows, p_.starts[p], p_.starts[p + 1], mean_.data(), width_);
            for (double& coordinate : mean_) coordinate /= total_[p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) put(std::sqrt(k_[i]), row(i), next());
            double* last = next();
            std::fill(last, last + width_, 0.0);
            add_multiple(std::sqrt(rest_[p] * total_[p]), mean_.data(), last, width_);
        }
        add_products(H_.H, chunk_.data(), width_, used);
        return H_.factorise();
    }

    void direction(const std::vector<double>& r, double s, double* dx, double* sums) {
        over_K(r.data(), dx, sums);
        combine(dx, dw_);
        if (!p_.c.empty()) dw_[d_] -= s;
        H_.solve(dw_.data());
        for (std::size_t i = 0; i < p_.m; ++i) left_[i] = r[i] - dot(row(i), dw_.data(), width_);
        over_K(left_.data(), dx, sums);
    }

    void keep() { kept_ = w_; }
    void kept(const double* x, std::span<double> pull, std::span<double> w, double& b) const {
        p_.combine(x, pull);
        for (std::size_t j = 0; j < d_; ++j) w[j] = root_ * kept_[j];
        b = p_.c.empty() ? 0.0 : kept_[d_];
    }

  private:
    static constexpr std::size_t CHUNK = 64;  // rows that are multiplied at a time: they stay in the nearest cache

    const double* row(std::size_t i) const { return B_.data() + i * width_; }

    // to = scale (from - mean)
    void put(double scale, const double* from, double* to) const {
#pragma omp simd
        for (std::size_t j = 0; j < width_; ++j) to[j] = scale * (from[j] - mean_[j]);
    }

    // out = B'x
    void combine(const double* x, std::vector<double>& out) const {
        std::fill(out.begin(), out.end(), 0.0);
        add_rows(x, [&](std::size_t i) { return row(i); }, 0, p_.m, out.data(), width_);
    }

    // out = (1/K) v, and its sums over the shards without adding up what cancels.
    void over_K(const double* v, double* out, double* sums) const {
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double mean = p_.sum(p, [&](std::size_t i) { return k_[i] * v[i]; }) / total_[p];
            sums[p] = mean * rest_[p] * total_[p];
            const double astray = p_.sum(p, [&](std::size_t i) { return out[i] = k_[i] * (v[i] - mean); });
            const double back = (sums[p] - astray) / total_[p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) out[i] += k_[i] * back;
        }
    }

    const SortedPlanes& p_;
    double root_;
    std::size_t d_, n_, width_;
    std::vector<double> B_;  // (sqrt(C) A, c), padded with zeros
    Cholesky H_;
    std::vector<double> chunk_, mean_, w_, dw_, k_, total_, rest_, left_, kept_;
};

// x with c.x = 0: the heavier side made lighter, which keeps to every other constraint.
inline void balance(std::vector<double>& x, const std::vector<double>& c) {
    double up = 0.0, down = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) (c[i] > 0.0 ? up : down) += x[i] * std::abs(c[i]);
    if (up == down) return;
    const double lighter = up > down ? down / up : up / down;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (up > down ? c[i] > 0.0 : c[i] < 0.0) x[i] *= lighter;
}

template <class Form>
class InteriorPoint {
  public:
    // warm: weights to start from, in the order of the given planes; or none.
    InteriorPoint(const SortedPlanes& planes, double C, const ReducedRules& rules, std::span<const double> warm)
        : p_(planes),
          rules_(rules),
          C_(C),
          m_(p_.m),
          pairs_(m_ + p_.shards),
          form_(planes, C),
          inside_(pairs_),
          outside_(pairs_),
          products_(pairs_),
          change_(pairs_),
          din_(pairs_),
          dout_(pairs_),
          right_(m_),
          heights_(m_),
          best_x_(m_) {
        start(warm);
    }

    ReducedResult solve(double tol, std::span<double> w, std::span<double> weights) {
        certify();
        while (best_.value - best_.lower > tol && steps_ < rules_.max_steps && step()) certify();
        const std::size_t d = p_.given.features;
        std::vector<double> pull(d);
        std::fill(w.begin(), w.end(), 0.0);
        double b = 0.0;
        form_.kept(best_x_.data(), pull, w.first(d), b);
        if (!p_.c.empty()) w[d] = b;
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

    // One step; false when rounding leaves nothing to gain.
    bool step() {
        if (!form_.factorise(inside_.data(), outside_.data())) return false;
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
        const double off_balance = p_.c.empty() ? 0.0 : dot(inside_.data(), p_.c.data(), m_);
        form_.direction(right_, -off_balance, din_.data(), din_.data() + m_);
        for (std::size_t i = m_; i < pairs_; ++i) din_[i] = -din_[i];
        for (std::size_t i = 0; i < pairs_; ++i) dout_[i] = (change_[i] - outside_[i] * din_[i]) / inside_[i];
    }

    // The longest step, up to 1 / to_the_wall, that keeps x, t, z and u positive.
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

    // The products x z and t u after such a step.
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
        std::vector<double>& x = right_;  // not in use between steps
        x.assign(inside_.begin(), inside_.begin() + static_cast<std::ptrdiff_t>(m_));
        for (std::size_t p = 0; p < p_.shards; ++p) {
            risk += p_.top(p, heights_.data());
            const double sum = p_.sum(p, [&](std::size_t i) { return x[i]; });
            if (sum > 1.0)  // by round-off
                for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) x[i] /= sum;
        }
        const double value = form_.penalty() + C_ * risk;
        if (!p_.c.empty()) balance(x, p_.c);
        double travelled = 0.0;
#pragma omp simd reduction(+ : travelled)
        for (std::size_t i = 0; i < m_; ++i) travelled += x[i] * std::abs(heights_[i] - p_.o[i]);
        double gain = C_ * dot(p_.o.data(), x.data(), m_);
        gain -= rules_.round_off * (gain + C_ * travelled);
        const double lower = gain - 0.5 * form_.cost(x.data());
        if (steps_ > 0 && !(value - lower < best_.value - best_.lower)) return;
        best_ = {lower, value, risk, steps_};
        gain_ = gain;
        std::copy(x.begin(), x.end(), best_x_.begin());
        form_.keep();
    }

    const SortedPlanes& p_;
    const ReducedRules rules_;
    double C_;
    std::size_t m_, pairs_;
    Form form_;
    std::vector<double> inside_, outside_, products_, change_, din_, dout_, right_, heights_, best_x_;
    ReducedResult best_{};
    double gain_ = 0.0;  // C o.x of the best bound, less what rounding may have added
    int steps_ = 0;
};

// Solves to an absolute tolerance of the objective; the bound holds whatever the tolerance.
// requires: at least one plane; free is 0 or 1; w has features + free entries, weights one per plane, warm too or none.
inline ReducedResult solve_reduced(const PlanesView& planes, double C, double tol, std::span<const double> warm,
                                   const ReducedRules& rules, std::span<double> w, std::span<double> weights) {
    const SortedPlanes sorted(planes);
    if (planes.gram != nullptr) return InteriorPoint<ByPlanes>(sorted, C, rules, warm).solve(tol, w, weights);
    return InteriorPoint<ByFeatures>(sorted, C, rules, warm).solve(tol, w, weights);
}

}  // namespace cutsvm
