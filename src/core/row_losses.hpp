// Losses of one score f per row, row by row: what solvers ask of them, whatever the loss.
//
//   value      l_i(f) >= 0, convex
//   slope      l_i'(f), one of them where there are several
//   curvature  l_i''(f), where the slope is continuous
//   offset     the largest o with o + g f <= l_i(f) for all f, that is -l_i*(g), l_i* the convex conjugate
//   terms      the absolute values of the terms of the offset, added up
//
// A piecewise linear loss is a sum of hinges, l_i(f) = sum over b < HINGES of max(0, a_ib (t_ib - f)), and also has
//
//   steepness  a_ib
//   height     a_ib (t_ib - f)
//   gap        the same per unit of slope, |a_ib| gap = height: how far the score is from the breakpoint t_ib. At most
//              one of a row's gaps is above 0
//   scale      a gap below round-off times this is round-off
//   group      in which sifting puts rows on this piece
//
// Two classes: label and weight come as one number, a_i = y_i s_i, as in hinge.hpp, and m = y_i f is the margin. With
// targets t_i the residual is r = f - t_i, the weight is s_i, epsilon >= 0, and y_i stands for 1 below.
//
// The dual variable alpha of a row stands for its slope: g = -y_i alpha / C is a slope of l_i at the row's score f, at
// the optimum. With m = y_i f:
//
//   label       y_i
//   limits      where alpha lies; infinite where there is no limit
//   optimality  the row's share of primal - dual, C l_i(f) - C offset_i(g) - C g f >= 0; and the range of the m at
//               which g is a slope of l_i, so that it is 0
//   step        the alpha at which that share is 0 after the step, which moves f by its own change, q = |x_i|^2 times:
//               at m + q (change of alpha). `slope` is m less the nearest m of the range
//
//   Hinge         s max(0, 1 - m)
//   SquaredHinge  s max(0, 1 - m)^2
//   Logistic      s log(1 + exp(-m))
//   Tube          s (below max(0, -r - epsilon) + above max(0, r - epsilon)): epsilon-insensitive, absolute, pinball
//   SquaredTube   s max(0, |r| - epsilon)^2
//   Huber         s r^2 / 2 where |r| <= epsilon, s epsilon (|r| - epsilon / 2) beyond
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/view.hpp"

namespace cutsvm {

inline constexpr double NO_LIMIT = std::numeric_limits<double>::infinity();

struct Range {
    double low, high;
};

struct Optimality {
    double gap;
    Range margins;
};

// A row without weight: any score will do.
inline constexpr Optimality NO_WEIGHT{0.0, {-NO_LIMIT, NO_LIMIT}};

// What the losses of two classes share.
struct Labels {
    View<const double> a;

    std::int64_t size() const { return a.size(); }
    double weight(std::int64_t i) const { return std::abs(a[i]); }
    double label(std::int64_t i) const { return std::copysign(1.0, a[i]); }
    double slack(std::int64_t i, double f) const { return 1.0 - label(i) * f; }
    void restrict(std::int64_t first, std::int64_t count) { a = a.part(first, count); }
    void prefetch(std::int64_t i) const { __builtin_prefetch(&a[i]); }
};

// What the losses with targets share.
struct Targets {
    View<const double> t, s;
    double epsilon;

    std::int64_t size() const { return t.size(); }
    double weight(std::int64_t i) const { return s[i]; }
    double label(std::int64_t) const { return 1.0; }
    double residual(std::int64_t i, double f) const { return f - t[i]; }
    void restrict(std::int64_t first, std::int64_t count) {
        t = t.part(first, count);
        s = s.part(first, count);
    }
    void prefetch(std::int64_t i) const {
        __builtin_prefetch(&t[i]);
        __builtin_prefetch(&s[i]);
    }
};

struct Hinge : Labels {
    static constexpr int HINGES = 1;

    double steepness(std::int64_t i, int) const { return a[i]; }
    double height(std::int64_t i, int, double f) const { return std::abs(a[i]) - a[i] * f; }
    double gap(std::int64_t i, int, double f) const { return slack(i, f); }
    double scale(std::int64_t, double f) const { return 1.0 + std::abs(f); }
    std::int32_t group(std::int64_t i, int) const { return a[i] < 0.0; }

    double value(std::int64_t i, double f) const { return std::max(0.0, height(i, 0, f)); }
    double slope(std::int64_t i, double f) const { return slack(i, f) > 0.0 ? -a[i] : 0.0; }
    double offset(std::int64_t, double g) const { return std::abs(g); }
    double terms(std::int64_t, double g) const { return std::abs(g); }
    Range limits(std::int64_t i, double C) const { return {0.0, C * weight(i)}; }
    Optimality optimality(std::int64_t i, double alpha, double m, double C) const {
        const double top = C * weight(i), g = m - 1.0;
        return {top * std::max(0.0, -g) + alpha * g, {alpha == top ? -NO_LIMIT : 1.0, alpha == 0.0 ? NO_LIMIT : 1.0}};
    }
    // For a row of zeros the dual is linear.
    double step(std::int64_t i, double alpha, double slope, double, double q, double C) const {
        const double top = C * weight(i);
        if (q > 0.0) return std::clamp(alpha - slope / q, 0.0, top);
        return slope < 0.0 ? top : 0.0;
    }
};

struct SquaredHinge : Labels {
    double value(std::int64_t i, double f) const {
        const double e = std::max(0.0, slack(i, f));
        return weight(i) * e * e;
    }
    double slope(std::int64_t i, double f) const { return -2.0 * a[i] * std::max(0.0, slack(i, f)); }
    double curvature(std::int64_t i, double f) const { return slack(i, f) > 0.0 ? 2.0 * weight(i) : 0.0; }
    double offset(std::int64_t i, double g) const {
        const double s = weight(i);
        return s > 0.0 ? std::abs(g) - g * (g / (4.0 * s)) : 0.0;  // g^2 could underflow
    }
    double terms(std::int64_t i, double g) const { return 2.0 * std::abs(g) - offset(i, g); }
    Range limits(std::int64_t i, double) const { return {0.0, a[i] != 0.0 ? NO_LIMIT : 0.0}; }
    Optimality optimality(std::int64_t i, double alpha, double m, double C) const {
        const double S = C * weight(i);
        if (!(S > 0.0)) return NO_WEIGHT;
        const double own = alpha / (2.0 * S), off = std::max(0.0, 1.0 - m) - own;
        return {S * off * off + alpha * std::max(0.0, m - 1.0), {1.0 - own, alpha == 0.0 ? NO_LIMIT : 1.0 - own}};
    }
    double step(std::int64_t i, double alpha, double slope, double, double q, double C) const {
        const double twice = 2.0 * C * weight(i);
        return std::max(0.0, alpha - slope * twice / (1.0 + q * twice));
    }
};

// exp(-x) for x >= 0, without calls and branches so that loops over it are vectorised: 2^-n exp(r), |r| <= log(2) / 2,
// and 14 terms of the series; 0 from x = 708 on.
// requires: x >= 0.
// ensures: off by a few units in the last place.
inline double exp_minus(double x) {
    constexpr double ROUND = 0x1.8p52;  // added and subtracted, it rounds to an integer, which its last bits are then
    constexpr double HIGH = 0x1.62e42fefa0000p-1, LOW = 0x1.cf79abc9e3b3ap-40;  // log(2) in two parts
    const double clipped = std::min(x, 708.0), shifted = clipped * 0x1.71547652b82fep0 + ROUND, n = shifted - ROUND;
    const double r = (n * HIGH - clipped) + n * LOW;
    double sum = 1.0 / 6227020800.0;
    constexpr double FACTORIALS[] = {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0,
                                     720.0,       120.0,      24.0,      6.0,      2.0,     1.0};
#pragma GCC unroll 12
    for (const double factorial : FACTORIALS) sum = sum * r + 1.0 / factorial;
    sum = sum * r + 1.0;
    const auto exponent = std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(ROUND);
    const double scale = std::bit_cast<double>((1023 - exponent) << 52);
    return x >= 708.0 ? 0.0 : sum * scale;
}

// log(1 + e), likewise: 2 artanh(e / (2 + e)).
// requires: 0 <= e <= 1.
// ensures: off by a few units in the last place.
inline double log_one_plus(double e) {
    const double s = e / (2.0 + e), square = s * s;
    double sum = 1.0 / 35.0;
#pragma GCC unroll 17
    for (int k = 33; k > 0; k -= 2) sum = sum * square + 1.0 / k;
    return 2.0 * s * sum;
}

// log(1 + exp(-m))
// ensures: no overflow.
inline double log_one_plus_exp(double m) { return std::max(0.0, -m) + log_one_plus(exp_minus(std::abs(m))); }

// 1 / (1 + exp(m))
// ensures: no overflow.
inline double sigmoid_of_minus(double m) {
    const double e = exp_minus(std::abs(m));
    return (m > 0.0 ? e : 1.0) / (1.0 + e);
}

struct Logistic : Labels {
    double value(std::int64_t i, double f) const { return weight(i) * log_one_plus_exp(label(i) * f); }
    double slope(std::int64_t i, double f) const { return -a[i] * sigmoid_of_minus(label(i) * f); }
    double curvature(std::int64_t i, double f) const {
        const double e = exp_minus(std::abs(f));
        return weight(i) * e / ((1.0 + e) * (1.0 + e));
    }
    // The entropy s H(p) of p = |g| / s.
    double offset(std::int64_t i, double g) const {
        const double s = weight(i), p = std::abs(g), rest = s - p;
        return (p > 0.0 ? -p * std::log(p / s) : 0.0) + (rest > 0.0 ? -rest * std::log1p(-p / s) : 0.0);
    }
    double terms(std::int64_t i, double g) const { return offset(i, g); }
    Range limits(std::int64_t i, double C) const { return {0.0, C * weight(i)}; }
    // With p = alpha / S, S = C s, and sigma = 1 / (1 + exp(m)) the gap is S times the divergence of the distributions
    // (p, 1 - p) and (sigma, 1 - sigma), and the margin that belongs to p is log((1 - p) / p).
    Optimality optimality(std::int64_t i, double alpha, double m, double C) const {
        constexpr double SURE = 30.0;  // margins beyond which 1 - sigma has lost its digits
        const double S = C * weight(i), rest = S - alpha;
        if (!(S > 0.0)) return NO_WEIGHT;
        if (!(alpha > 0.0)) return {S * log_one_plus_exp(m), {NO_LIMIT, NO_LIMIT}};
        if (!(rest > 0.0)) return {S * log_one_plus_exp(-m), {-NO_LIMIT, -NO_LIMIT}};
        if (std::abs(m) > SURE) {
            const double own = std::log(rest / alpha);
            const double entropy = alpha * std::log(alpha / S) + rest * std::log(rest / S);
            return {S * log_one_plus_exp(m) + alpha * m + entropy, {own, own}};
        }
        const double e = std::exp(m), scale = (1.0 + e) / S;
        // log(p / sigma), and log((1 - p) / (1 - sigma))
        const double up = std::log(alpha * scale), down = std::log(rest * scale / e);
        return {alpha * up + rest * down, {m + (down - up), m + (down - up)}};
    }
    // In u, the margin after the step, the condition is u - m = q (S / (1 + exp(u)) - alpha): the left side rises, the
    // right side falls. Newton's method, kept inside a bracket that shrinks; its error after a step of length h is at
    // most h^2 / 2. It begins at the margin that belongs to alpha, where the right side is 0.
    double step(std::int64_t i, double alpha, double slope, double m, double q, double C) const {
        constexpr double SHORT = 1e-5;
        constexpr int MOST = 100;
        const double S = C * weight(i), far = q * S, base = m - q * alpha;
        double low = base, high = base + far, u = m - slope, p = alpha / S;
        if (!std::isfinite(slope)) {
            u = base + far * sigmoid_of_minus(base + 0.5 * far);
            p = sigmoid_of_minus(u);
        }
        for (int count = 0; count < MOST; ++count) {
            const double excess = u - base - far * p;
            if (excess > 0.0)
                high = std::min(high, u);
            else
                low = std::max(low, u);
            double next = u - excess / (1.0 + far * p * (1.0 - p));
            if (!(low <= next && next <= high)) next = 0.5 * (low + high);
            const double length = std::abs(next - u);
            u = next;
            p = sigmoid_of_minus(u);
            if (length <= SHORT) break;
        }
        return S * p;
    }
};

struct Tube : Targets {
    double below, above;
    double largest = 1.0;  // |t_i|: a score near a target of 0 has the round-off of its terms, which are no smaller
    static constexpr int HINGES = 2;  // below the target, above it

    double steepness(std::int64_t i, int b) const { return s[i] * (b == 0 ? below : -above); }
    double height(std::int64_t i, int b, double f) const { return s[i] * (b == 0 ? below : above) * gap(i, b, f); }
    double gap(std::int64_t i, int b, double f) const { return (b == 0 ? -1.0 : 1.0) * residual(i, f) - epsilon; }
    double scale(std::int64_t, double f) const { return largest + std::abs(f) + epsilon; }
    std::int32_t group(std::int64_t, int b) const { return b; }

    double value(std::int64_t i, double f) const {
        return std::max(0.0, height(i, 0, f)) + std::max(0.0, height(i, 1, f));
    }
    double slope(std::int64_t i, double f) const {
        const double r = residual(i, f);
        return s[i] * (r > epsilon ? above : r < -epsilon ? -below : 0.0);
    }
    double offset(std::int64_t i, double g) const { return -g * t[i] - epsilon * std::abs(g); }
    double terms(std::int64_t i, double g) const { return std::abs(g) * (std::abs(t[i]) + epsilon); }
    Range limits(std::int64_t i, double C) const { return {-(C * s[i]) * above, C * s[i] * below}; }
    Optimality optimality(std::int64_t i, double alpha, double f, double C) const {
        const auto [least, most] = limits(i, C);
        const double r = residual(i, f), lower = t[i] - epsilon, upper = t[i] + epsilon;
        const double loss = most * std::max(0.0, -r - epsilon) - least * std::max(0.0, r - epsilon);
        const double low = alpha == most ? -NO_LIMIT : alpha < 0.0 ? upper : lower;
        const double high = alpha == least ? NO_LIMIT : alpha > 0.0 ? lower : upper;
        return {loss + alpha * r + std::abs(alpha) * epsilon, {low, high}};
    }
    double step(std::int64_t i, double alpha, double, double f, double q, double C) const {
        const auto [least, most] = limits(i, C);
        const double r = residual(i, f);
        if (!(q > 0.0)) return r < -epsilon ? most : r > epsilon ? least : 0.0;
        const double up = alpha - (r + epsilon) / q, down = alpha - (r - epsilon) / q;
        return up > 0.0 ? std::min(up, most) : down < 0.0 ? std::max(down, least) : 0.0;
    }
};

struct SquaredTube : Targets {
    double excess(std::int64_t i, double f) const {
        const double r = residual(i, f);
        return std::copysign(std::max(0.0, std::abs(r) - epsilon), r);
    }
    double value(std::int64_t i, double f) const {
        const double e = excess(i, f);
        return s[i] * e * e;
    }
    double slope(std::int64_t i, double f) const { return 2.0 * s[i] * excess(i, f); }
    double curvature(std::int64_t i, double f) const { return excess(i, f) != 0.0 ? 2.0 * s[i] : 0.0; }
    double offset(std::int64_t i, double g) const {
        return s[i] > 0.0 ? -g * t[i] - epsilon * std::abs(g) - g * (g / (4.0 * s[i])) : 0.0;
    }
    double terms(std::int64_t i, double g) const {
        return s[i] > 0.0 ? std::abs(g) * (std::abs(t[i]) + epsilon + std::abs(g) / (4.0 * s[i])) : 0.0;
    }
    Range limits(std::int64_t i, double) const {
        const double most = s[i] > 0.0 ? NO_LIMIT : 0.0;
        return {-most, most};
    }
    Optimality optimality(std::int64_t i, double alpha, double f, double C) const {
        const double S = C * s[i], r = residual(i, f), e = excess(i, f);
        if (!(S > 0.0)) return NO_WEIGHT;
        const double own = alpha / (2.0 * S), off = e + own, size = std::abs(alpha);
        const double gap = S * off * off + alpha * std::clamp(r, -epsilon, epsilon) + size * epsilon;
        const double low = t[i] - own + (alpha < 0.0 ? epsilon : -epsilon);
        const double high = t[i] - own + (alpha > 0.0 ? -epsilon : epsilon);
        return {gap, {low, high}};
    }
    double step(std::int64_t i, double alpha, double, double f, double q, double C) const {
        const double twice = 2.0 * C * s[i], r = residual(i, f), scale = 1.0 + q * twice;
        const double up = alpha - ((r + epsilon) * twice + alpha) / scale;
        const double down = alpha - ((r - epsilon) * twice + alpha) / scale;
        return up > 0.0 ? up : down < 0.0 ? down : 0.0;
    }
};

struct Huber : Targets {
    double value(std::int64_t i, double f) const {
        const double r = std::abs(residual(i, f)), inside = std::min(r, epsilon);
        return s[i] * inside * (r - 0.5 * inside);
    }
    double slope(std::int64_t i, double f) const { return s[i] * std::clamp(residual(i, f), -epsilon, epsilon); }
    double curvature(std::int64_t i, double f) const { return std::abs(residual(i, f)) < epsilon ? s[i] : 0.0; }
    double offset(std::int64_t i, double g) const { return s[i] > 0.0 ? -g * t[i] - g * (g / (2.0 * s[i])) : 0.0; }
    double terms(std::int64_t i, double g) const {
        return s[i] > 0.0 ? std::abs(g) * (std::abs(t[i]) + std::abs(g) / (2.0 * s[i])) : 0.0;
    }
    Range limits(std::int64_t i, double C) const { return {-(C * s[i]) * epsilon, C * s[i] * epsilon}; }
    Optimality optimality(std::int64_t i, double alpha, double f, double C) const {
        const double S = C * s[i], r = residual(i, f), inside = std::clamp(r, -epsilon, epsilon), top = S * epsilon;
        if (!(S > 0.0)) return NO_WEIGHT;
        const double own = t[i] - alpha / S, off = inside + alpha / S, beyond = std::abs(r - inside);
        return {0.5 * S * off * off + beyond * (top + (r > 0.0 ? alpha : -alpha)),
                {alpha == top ? -NO_LIMIT : own, alpha == -top ? NO_LIMIT : own}};
    }
    double step(std::int64_t i, double alpha, double slope, double, double q, double C) const {
        const double S = C * s[i], top = S * epsilon;
        return std::clamp(alpha - slope * S / (1.0 + q * S), -top, top);
    }
};

// Whether a loss is a sum of hinges.
template <class Loss>
inline constexpr bool PIECEWISE = requires { Loss::HINGES; };

}  // namespace cutsvm
