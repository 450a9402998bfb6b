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
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "core/cholesky.hpp"

namespace cutsvm {

// The constants of the method; reduced.py says what each is for, and has their values.
struct ReducedRules {
    int max_steps;
    double to_the_wall, lag, sink, shorter;
    int times;
    double too_short, less, back, stuck, round_off, floor, headroom, least_room, fine, guard;
    int polish;
};

// Planes as the caller holds them, in any order.
struct PlanesView {
    const double* slopes;  // one row (a_k, c_k) per plane, `stride` apart
    std::size_t stride, features, free;
    std::span<const double> offsets;
    std::span<const std::int64_t> shard;
    const double* gram;  // a_k.a_l, rows `gram_stride` apart; or null
    std::size_t gram_stride;
    double radius = INFINITY;  // |b_j| <= radius; heeded if free > 1
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
    std::vector<std::size_t> leaning;        // the free coordinates that planes know; the others stay 0
    std::size_t free = 0, width = 0;         // how many those are; the length of a row of c, zeros at its end
    bool boxed = false;                      // whether they keep to the radius
    std::vector<double> o, c;

    explicit SortedPlanes(const PlanesView& planes) : given(planes), m(planes.offsets.size()), order(m), o(m) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (!std::is_sorted(given.shard.begin(), given.shard.end()))
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t k, std::size_t l) { return given.shard[k] < given.shard[l]; });
        std::vector<bool> known(given.free, false);
        for (std::size_t i = 0; i < m; ++i) {
            if (i == 0 || given.shard[order[i]] != given.shard[order[i - 1]]) starts.push_back(i);
            o[i] = given.offsets[order[i]];
            for (std::size_t j = 0; j < given.free; ++j)
                if (slope(i)[given.features + j] != 0.0) known[j] = true;
        }
        shards = starts.size();
        starts.push_back(m);
        for (std::size_t j = 0; j < given.free; ++j)
            if (known[j]) leaning.push_back(j);
        free = leaning.size();
        boxed = given.free > 1 && free > 0;
        width = boxed ? padded(free) : free;
        c.resize(m * width);
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < free; ++j) c[i * width + j] = slope(i)[given.features + leaning[j]];
    }

    const double* slope(std::size_t i) const { return given.slopes + order[i] * given.stride; }
    const double* lean(std::size_t i) const { return c.data() + i * width; }

    // out += c b
    void add_leaning(const double* b, double* out) const {
        if (!boxed) {
            if (free > 0) add_multiple(b[0], c.data(), out, m);
            return;
        }
        for (std::size_t i = 0; i < m; ++i) out[i] += dot(lean(i), b, free);
    }

    // out = c'x
    void weigh(const double* x, double* out) const {
        if (!boxed) {
            if (free > 0) out[0] = dot(x, c.data(), m);
            return;
        }
        std::fill(out, out + width, 0.0);
        add_rows(x, [&](std::size_t i) { return lean(i); }, 0, m, out, width);
    }

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

// Makes the diagonal larger from row `first` on, where rows may depend on each other; `added` has one entry for each.
inline void guard_diagonal(Symmetric& H, std::size_t first, double guard, std::vector<double>& added) {
    for (std::size_t j = first; j < H.n; ++j) {
        double& at = H.row(j)[j];
        added[j - first] = at > 0.0 ? guard * static_cast<double>(H.n) * at : 1.0;
        at += added[j - first];
    }
}

// M itself, one row per plane. w is held as x, which says all about it, and its products with the planes, -C A A'x.
class ByPlanes {
  public:
    ByPlanes(const SortedPlanes& planes, double C, double guard)
        : p_(planes),
          C_(C),
          guard_(guard),
          M_(p_.m),
          S_(p_.boxed ? p_.free : 0),
          gram_(p_.m * p_.m),
          across_(p_.c.size()),
          x_(p_.m),
          products_(p_.m),
          b_(p_.width),
          db_(p_.width),
          added_(p_.free),
          again_(p_.free) {
        for (std::size_t i = 0; i < p_.m; ++i) {
            const double* row = p_.given.gram + p_.order[i] * p_.given.gram_stride;
            for (std::size_t j = 0; j < p_.m; ++j) gram_[i * p_.m + j] = C * row[p_.order[j]];
        }
    }

    // w = -C A'x, b = 0
    void start(const double* x) { set(x); }

    // w and b after `reach` of the last direction, which led to x.
    void move(const double* x, double reach) {
        for (std::size_t j = 0; j < p_.free; ++j) b_[j] -= reach * db_[j];
        set(x);
    }

    // b, and the last direction of -b.
    double* b() { return b_.data(); }
    const double* db() const { return db_.data(); }

    // A w + c b + o
    void heights(double* out) const {
        for (std::size_t i = 0; i < p_.m; ++i) out[i] = products_[i] + p_.o[i];
        p_.add_leaning(b_.data(), out);
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

    // walls: what the box adds to the equations of b.
    bool factorise(const double* inside, const double* outside, const double* walls) {
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
        across_ = p_.c;
        if (p_.boxed) return factorise_b(walls);
        if (p_.free > 0) M_.solve(across_.data());
        return true;
    }

    // M dx + c db = r, c'dx - walls db = s; sums are those of dx over the shards.
    void direction(const std::vector<double>& r, const double* s, double* dx, double* sums) {
        std::copy(r.begin(), r.end(), dx);
        if (p_.boxed) {
            M_.forward(dx);
            std::fill(db_.begin(), db_.end(), 0.0);
            add_rows(dx, [&](std::size_t i) { return across(i); }, 0, p_.m, db_.data(), p_.width);
            for (std::size_t j = 0; j < p_.free; ++j) db_[j] -= s[j];
            S_.solve(db_.data());
            // As if there were no guard, but where rows depend on each other.
            for (std::size_t j = 0; j < p_.free; ++j) again_[j] = added_[j] * db_[j];
            S_.solve(again_.data());
            for (std::size_t j = 0; j < p_.free; ++j) db_[j] += again_[j];
            for (std::size_t i = 0; i < p_.m; ++i) dx[i] -= dot(across(i), db_.data(), p_.width);
            M_.backward(dx);
        } else {
            M_.solve(dx);
            if (p_.free > 0) {
                db_[0] = (dot(p_.c.data(), dx, p_.m) - s[0]) / dot(p_.c.data(), across_.data(), p_.m);
                add_multiple(-db_[0], across_.data(), dx, p_.m);
            }
        }
        for (std::size_t p = 0; p < p_.shards; ++p) sums[p] = p_.sum(p, [&](std::size_t i) { return dx[i]; });
    }

    // Remembers w and b; `kept` gives them back, with pull = A'x for the x of the bound that belongs to them.
    void keep() {
        kept_ = x_;
        kept_b_ = b_;
    }
    void kept(const double* x, std::span<double> pull, std::span<double> w, double* b) const {
        p_.combine(kept_.data(), w);
        if (std::equal(kept_.begin(), kept_.end(), x))
            std::copy(w.begin(), w.end(), pull.begin());
        else
            p_.combine(x, pull);
        for (double& coefficient : w) coefficient *= -C_;
        std::copy(kept_b_.begin(), kept_b_.begin() + static_cast<std::ptrdiff_t>(p_.free), b);
    }

  private:
    const double* across(std::size_t i) const { return across_.data() + i * p_.width; }

    // With M = R'R and V = (1/R') c, b's equations are V'V + walls: a sum of squares, however M is conditioned.
    bool factorise_b(const double* walls) {
        M_.forward(across_.data(), p_.width);
        S_.H.clear();
        add_products(S_.H, across_.data(), p_.width, p_.m);
        for (std::size_t j = 0; j < p_.free; ++j) S_.H.row(j)[j] += walls[j];
        guard_diagonal(S_.H, 0, guard_, added_);
        return S_.factorise();
    }

    void set(const double* x) {
        x_.assign(x, x + p_.m);
        for (std::size_t i = 0; i < p_.m; ++i) products_[i] = -dot(gram_.data() + i * p_.m, x, p_.m);
    }

    const SortedPlanes& p_;
    double C_, guard_;
    Cholesky M_, S_;
    std::vector<double> gram_;    // C A A', in the order of the shards
    std::vector<double> across_;  // (1/M) c; or V, if b has a box
    std::vector<double> x_, products_, kept_, b_, db_, kept_b_, added_, again_;
};

// M = K + B B' with B = sqrt(C) A and K the rest, which inverts shard by shard; then one row per feature, and b's.
// With k = x/z, its sum s over the shard and r = t/u:  (1/K) v = k (v - mean + mean r/(r + s)), mean = sum of k v / s.
// Written as distances from the mean, nothing large is subtracted from anything large. w is held as (w/sqrt(C), b), and
// follows its own step and not x: close to the solution x is known to fewer digits.
class ByFeatures {
  public:
    ByFeatures(const SortedPlanes& planes, double C, double guard)
        : p_(planes),
          root_(std::sqrt(C)),
          guard_(guard),
          d_(p_.given.features),
          n_(d_ + p_.free),
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
          left_(p_.m),
          added_(p_.free),
          again_(n_) {
        for (std::size_t i = 0; i < p_.m; ++i) {
            const double* slope = p_.slope(i);
            for (std::size_t j = 0; j < d_; ++j) B_[i * width_ + j] = root_ * slope[j];
            std::copy(p_.lean(i), p_.lean(i) + p_.free, B_.data() + i * width_ + d_);
        }
    }

    void start(const double* x) {
        combine(x, w_);
        for (double& coordinate : w_) coordinate = -coordinate;
        std::fill(b(), b() + p_.free, 0.0);
    }

    void move(const double*, double reach) { add_multiple(-reach, dw_.data(), w_.data(), width_); }

    double* b() { return w_.data() + d_; }
    const double* db() const { return dw_.data() + d_; }

    void heights(double* out) const {
        for (std::size_t i = 0; i < p_.m; ++i) out[i] = dot(row(i), w_.data(), width_) + p_.o[i];
    }

    double penalty() const { return 0.5 * root_ * root_ * dot(w_.data(), w_.data(), d_); }

    double cost(const double* x) {
        combine(x, dw_);
        return root_ * root_ * dot(dw_.data(), dw_.data(), d_);
    }

    // H = 1 + B' (1/K) B (without the 1 for b), as a sum of squares: distances from the shard's mean, and the mean.
    bool factorise(const double* inside, const double* outside, const double* walls) {
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
        if (p_.boxed) {
            for (std::size_t j = 0; j < p_.free; ++j) H_.H.row(d_ + j)[d_ + j] += walls[j];
            guard_diagonal(H_.H, d_, guard_, added_);
        }
        return H_.factorise();
    }

    void direction(const std::vector<double>& r, const double* s, double* dx, double* sums) {
        over_K(r.data(), dx, sums);
        combine(dx, dw_);
        for (std::size_t j = 0; j < p_.free; ++j) dw_[d_ + j] -= s[j];
        H_.solve(dw_.data());
        if (p_.boxed) {  // as if there were no guard, but where rows depend on each other
            std::fill(again_.begin(), again_.end(), 0.0);
            for (std::size_t j = 0; j < p_.free; ++j) again_[d_ + j] = added_[j] * dw_[d_ + j];
            H_.solve(again_.data());
            add_multiple(1.0, again_.data(), dw_.data(), n_);
        }
        for (std::size_t i = 0; i < p_.m; ++i) left_[i] = r[i] - dot(row(i), dw_.data(), width_);
        over_K(left_.data(), dx, sums);
    }

    void keep() { kept_ = w_; }
    void kept(const double* x, std::span<double> pull, std::span<double> w, double* b) const {
        p_.combine(x, pull);
        for (std::size_t j = 0; j < d_; ++j) w[j] = root_ * kept_[j];
        std::copy(kept_.data() + d_, kept_.data() + n_, b);
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
    double root_, guard_;
    std::size_t d_, n_, width_;
    std::vector<double> B_;  // (sqrt(C) A, c), padded with zeros
    Cholesky H_;
    std::vector<double> chunk_, mean_, w_, dw_, k_, total_, rest_, left_, kept_, added_, again_;
};

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
        certify();
        while (best_.value - best_.lower > tol && steps_ < rules_.max_steps && step()) certify();
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
