// Newton's equations of the interior-point method (core/reduced.hpp), with one row per plane or one per feature.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/cholesky.hpp"
#include "core/reduced_planes.hpp"

namespace cutsvm {

// M itself, one row per plane. w is held as x and -C A A'x, its products with the planes.
class ByPlanes {
  public:
    ByPlanes(const SortedPlanes& planes, double C, double regularization)
        : p_(planes),
          C_(C),
          regularization_(regularization),
          M_(p_.m),
          S_(p_.boxed ? p_.free : 0),
          gram_(p_.m * p_.m),
          M_inverse_c_(p_.c.size()),
          x_(p_.m),
          products_(p_.m),
          b_(p_.width),
          db_(p_.width),
          added_(p_.free),
          correction_(p_.free) {
        for (std::size_t i = 0; i < p_.m; ++i) {
            const double* row = p_.given.gram + p_.order[i] * p_.given.gram_stride;
            for (std::size_t j = 0; j < p_.m; ++j) gram_[i * p_.m + j] = C * row[p_.order[j]];
        }
    }

    // w = -C A'x, b = 0
    void start(const double* x) { set(x); }

    // w and b after `step_length` of the last direction, which led to x.
    void move(const double* x, double step_length) {
        for (std::size_t j = 0; j < p_.free; ++j) b_[j] -= step_length * db_[j];
        set(x);
    }

    // b, and the last direction of -b.
    double* b() { return b_.data(); }
    const double* db() const { return db_.data(); }

    // A w + c b + o
    void plane_values(double* out) const {
        for (std::size_t i = 0; i < p_.m; ++i) out[i] = products_[i] + p_.o[i];
        p_.add_intercepts(b_.data(), out);
    }

    // |w|^2 / 2
    double penalty() const { return -0.5 * C_ * dot(x_.data(), products_.data(), p_.m); }

    // |C A'x|^2
    double quadratic(const double* x) const {
        if (std::equal(x_.begin(), x_.end(), x)) return 2.0 * penalty();
        double sum = 0.0;
        for (std::size_t i = 0; i < p_.m; ++i) sum += x[i] * dot(gram_.data() + i * p_.m, x, p_.m);
        return C_ * sum;
    }

    // Factorises M, with the curvature that the box adds to b's equations; false where rounding makes it indefinite.
    bool factorise(const double* multipliers, const double* slacks, const double* box_curvature) {
        const std::size_t m = p_.m;
        Symmetric& M = M_.H;
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double ratio = slacks[m + p] / multipliers[m + p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) {
                double* row = M.row(i);
                std::copy(gram_.begin() + i * m + i, gram_.begin() + (i + 1) * m, row + i);
                row[i] += slacks[i] / multipliers[i];
                for (std::size_t j = i; j < p_.starts[p + 1]; ++j) row[j] += ratio;
                std::fill(row + m, row + M.size, 0.0);
            }
        }
        if (!M_.factorise()) return false;
        M_inverse_c_ = p_.c;
        if (p_.boxed) return factorise_b(box_curvature);
        if (p_.free > 0) M_.solve(M_inverse_c_.data());
        return true;
    }

    // M dx + c db = r, c'dx - box_curvature db = s; sums are those of dx over the shards.
    void direction(const std::vector<double>& r, const double* s, double* dx, double* sums) {
        std::copy(r.begin(), r.end(), dx);
        if (p_.boxed) {
            solve_boxed(s, dx);
        } else {
            M_.solve(dx);
            if (p_.free > 0) {
                db_[0] = (dot(p_.c.data(), dx, p_.m) - s[0]) / dot(p_.c.data(), M_inverse_c_.data(), p_.m);
                add_multiple(-db_[0], M_inverse_c_.data(), dx, p_.m);
            }
        }
        for (std::size_t p = 0; p < p_.shards; ++p) sums[p] = p_.sum(p, [&](std::size_t i) { return dx[i]; });
    }

    // Saves w and b; `best` returns them, with combined = A'x for the x of their lower bound.
    void save_best() {
        best_ = x_;
        best_b_ = b_;
    }
    void best(const double* x, std::span<double> combined, std::span<double> w, double* b) const {
        p_.combine(best_.data(), w);
        if (std::equal(best_.begin(), best_.end(), x))
            std::copy(w.begin(), w.end(), combined.begin());
        else
            p_.combine(x, combined);
        for (double& coefficient : w) coefficient *= -C_;
        std::copy(best_b_.begin(), best_b_.begin() + static_cast<std::ptrdiff_t>(p_.free), b);
    }

  private:
    const double* M_inverse_c(std::size_t i) const { return M_inverse_c_.data() + i * p_.width; }

    // With M = R'R and V = (1/R') c, b's equations are V'V + box_curvature, positive however M is conditioned.
    bool factorise_b(const double* box_curvature) {
        M_.forward(M_inverse_c_.data(), p_.width);
        S_.H.clear();
        add_products(S_.H, M_inverse_c_.data(), p_.width, p_.m);
        for (std::size_t j = 0; j < p_.free; ++j) S_.H.row(j)[j] += box_curvature[j];
        regularize_diagonal(S_.H, 0, regularization_, added_);
        return S_.factorise();
    }

    // Solves for db and dx; dx holds r before.
    void solve_boxed(const double* s, double* dx) {
        M_.forward(dx);
        std::fill(db_.begin(), db_.end(), 0.0);
        add_rows(dx, [&](std::size_t i) { return M_inverse_c(i); }, 0, p_.m, db_.data(), p_.width);
        for (std::size_t j = 0; j < p_.free; ++j) db_[j] -= s[j];
        S_.solve(db_.data());
        // One step of iterative refinement, for the matrix without `added_`.
        for (std::size_t j = 0; j < p_.free; ++j) correction_[j] = added_[j] * db_[j];
        S_.solve(correction_.data());
        for (std::size_t j = 0; j < p_.free; ++j) db_[j] += correction_[j];
        for (std::size_t i = 0; i < p_.m; ++i) dx[i] -= dot(M_inverse_c(i), db_.data(), p_.width);
        M_.backward(dx);
    }

    void set(const double* x) {
        x_.assign(x, x + p_.m);
        for (std::size_t i = 0; i < p_.m; ++i) products_[i] = -dot(gram_.data() + i * p_.m, x, p_.m);
    }

    const SortedPlanes& p_;
    double C_, regularization_;
    Cholesky M_, S_;
    std::vector<double> gram_;         // C A A', in the order of the shards
    std::vector<double> M_inverse_c_;  // (1/M) c; or V, if b has a box
    std::vector<double> x_, products_, best_, b_, db_, best_b_, added_, correction_;
};

// M = K + B B' with B = sqrt(C) A, inverted by Woodbury's formula: one row per feature, and those of b.
// K inverts shard by shard: with k = x/z, its sum s over the shard and r = t/u,
// (1/K) v = k (v - mean + mean r/(r + s)), mean = sum of k v / s. Written with distances from the mean, nothing large
// is subtracted from anything large. w is held as (w/sqrt(C), b), and updated by its own step, because x has fewer
// correct digits close to the solution.
class ByFeatures {
  public:
    ByFeatures(const SortedPlanes& planes, double C, double regularization)
        : p_(planes),
          root_(std::sqrt(C)),
          regularization_(regularization),
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
          remainder_(p_.shards),
          left_(p_.m),
          added_(p_.free),
          correction_(n_) {
        for (std::size_t i = 0; i < p_.m; ++i) {
            const double* slope = p_.slope(i);
            for (std::size_t j = 0; j < d_; ++j) B_[i * width_ + j] = root_ * slope[j];
            std::copy(p_.intercept_slopes(i), p_.intercept_slopes(i) + p_.free, B_.data() + i * width_ + d_);
        }
    }

    void start(const double* x) {
        combine(x, w_);
        for (double& coordinate : w_) coordinate = -coordinate;
        std::fill(b(), b() + p_.free, 0.0);
    }

    void move(const double*, double step_length) { add_multiple(-step_length, dw_.data(), w_.data(), width_); }

    double* b() { return w_.data() + d_; }
    const double* db() const { return dw_.data() + d_; }

    void plane_values(double* out) const {
        for (std::size_t i = 0; i < p_.m; ++i) out[i] = dot(row(i), w_.data(), width_) + p_.o[i];
    }

    double penalty() const { return 0.5 * root_ * root_ * dot(w_.data(), w_.data(), d_); }

    double quadratic(const double* x) {
        combine(x, dw_);
        return root_ * root_ * dot(dw_.data(), dw_.data(), d_);
    }

    // H = 1 + B' (1/K) B (without the 1 for b), as a sum of squares: distances from the shard's mean, and the mean.
    bool factorise(const double* multipliers, const double* slacks, const double* box_curvature) {
        const std::size_t m = p_.m;
        H_.H.clear();
        for (std::size_t j = 0; j < d_; ++j) H_.H.row(j)[j] = 1.0;
        for (std::size_t i = 0; i < m; ++i) k_[i] = multipliers[i] / slacks[i];
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
            const double r = multipliers[m + p] / slacks[m + p];
            remainder_[p] = r / (r + total_[p]);
            std::fill(mean_.begin(), mean_.end(), 0.0);
            const auto rows = [&](std::size_t i) { return row(i); };
            add_rows(k_.data(), rows, p_.starts[p], p_.starts[p + 1], mean_.data(), width_);
            for (double& coordinate : mean_) coordinate /= total_[p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) put(std::sqrt(k_[i]), row(i), next());
            double* last = next();
            std::fill(last, last + width_, 0.0);
            add_multiple(std::sqrt(remainder_[p] * total_[p]), mean_.data(), last, width_);
        }
        add_products(H_.H, chunk_.data(), width_, used);
        if (p_.boxed) {
            for (std::size_t j = 0; j < p_.free; ++j) H_.H.row(d_ + j)[d_ + j] += box_curvature[j];
            regularize_diagonal(H_.H, d_, regularization_, added_);
        }
        return H_.factorise();
    }

    void direction(const std::vector<double>& r, const double* s, double* dx, double* sums) {
        solve_K(r.data(), dx, sums);
        combine(dx, dw_);
        for (std::size_t j = 0; j < p_.free; ++j) dw_[d_ + j] -= s[j];
        H_.solve(dw_.data());
        if (p_.boxed) {  // one step of iterative refinement, for the matrix without `added_`
            std::fill(correction_.begin(), correction_.end(), 0.0);
            for (std::size_t j = 0; j < p_.free; ++j) correction_[d_ + j] = added_[j] * dw_[d_ + j];
            H_.solve(correction_.data());
            add_multiple(1.0, correction_.data(), dw_.data(), n_);
        }
        for (std::size_t i = 0; i < p_.m; ++i) left_[i] = r[i] - dot(row(i), dw_.data(), width_);
        solve_K(left_.data(), dx, sums);
    }

    void save_best() { best_ = w_; }
    void best(const double* x, std::span<double> combined, std::span<double> w, double* b) const {
        p_.combine(x, combined);
        for (std::size_t j = 0; j < d_; ++j) w[j] = root_ * best_[j];
        std::copy(best_.data() + d_, best_.data() + n_, b);
    }

  private:
    static constexpr std::size_t CHUNK = 64;  // rows that are multiplied at a time: they stay in the L1 cache

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

    // out = (1/K) v, and its sums over the shards without cancellation.
    void solve_K(const double* v, double* out, double* sums) const {
        for (std::size_t p = 0; p < p_.shards; ++p) {
            const double mean = p_.sum(p, [&](std::size_t i) { return k_[i] * v[i]; }) / total_[p];
            sums[p] = mean * remainder_[p] * total_[p];
            const double sum = p_.sum(p, [&](std::size_t i) { return out[i] = k_[i] * (v[i] - mean); });
            const double correction = (sums[p] - sum) / total_[p];
            for (std::size_t i = p_.starts[p]; i < p_.starts[p + 1]; ++i) out[i] += k_[i] * correction;
        }
    }

    const SortedPlanes& p_;
    double root_, regularization_;
    std::size_t d_, n_, width_;
    std::vector<double> B_;  // (sqrt(C) A, c), padded with zeros
    Cholesky H_;
    std::vector<double> chunk_, mean_, w_, dw_, k_, total_, remainder_, left_, best_, added_, correction_;
};

}  // namespace cutsvm
