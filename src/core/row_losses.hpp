// Losses of one score f per row, row by row: what solvers ask of them, whatever the loss.
//
//   value      l_i(f) >= 0, convex
//   slope      l_i'(f), one of them where there are several
//   curvature  l_i''(f), where the slope is continuous
//   offset     the largest o with o + g f <= l_i(f) for all f, that is -l_i*(g), l_i* the convex conjugate
//   terms      the absolute values of the terms of the offset, added up
//   dual       the best dual variable: the beta = -C l_i'(f) at the f that minimises C l_i(f) + (f - z)^2 / (2 q). z is
//              the score without the row's own part of w, and q = |x_i|^2. For q = 0 it is -C l_i'(z)
//   top        dual variables lie within: |beta| <= top, infinite where there is no limit
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
// targets t_i the residual is r = f - t_i, the weight is s_i, and epsilon >= 0.
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

// What the losses of two classes share.
struct Labels {
    View<const double> a;

    std::int64_t size() const { return a.size(); }
    double weight(std::int64_t i) const { return std::abs(a[i]); }
    double label(std::int64_t i) const { return std::copysign(1.0, a[i]); }
    double slack(std::int64_t i, double f) const { return 1.0 - label(i) * f; }
};

// What the losses with targets share.
struct Targets {
    View<const double> t, s;
    double epsilon;

    std::int64_t size() const { return t.size(); }
    double weight(std::int64_t i) const { return s[i]; }
    double residual(std::int64_t i, double f) const { return f - t[i]; }
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
    double top(std::int64_t i, double C) const { return C * weight(i); }
    double dual(std::int64_t i, double z, double q, double C) const {
        const double short_of = slack(i, z), most = C * weight(i);
        if (q > 0.0) return label(i) * std::clamp(short_of / q, 0.0, most);
        return short_of > 0.0 ? label(i) * most : 0.0;
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
        return s > 0.0 ? std::abs(g) - g * g / (4.0 * s) : 0.0;
    }
    double terms(std::int64_t i, double g) const { return 2.0 * std::abs(g) - offset(i, g); }
    double top(std::int64_t, double) const { return NO_LIMIT; }
    double dual(std::int64_t i, double z, double q, double C) const {
        const double s = 2.0 * C * weight(i);
        return label(i) * s * std::max(0.0, slack(i, z)) / (1.0 + q * s);
    }
};

// exp(-x) for x >= 0, without calls and branches so that loops over it are vectorised: 2^-n exp(r), |r| <= log(2) / 2,
// and 14 terms of the series. Off by a few units in the last place; 0 from x = 708 on.
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

// log(1 + e) for 0 <= e <= 1, likewise: 2 artanh(e / (2 + e)).
inline double log_one_plus(double e) {
    const double s = e / (2.0 + e), square = s * s;
    double sum = 1.0 / 35.0;
#pragma GCC unroll 17
    for (int k = 33; k > 0; k -= 2) sum = sum * square + 1.0 / k;
    return 2.0 * s * sum;
}

// log(1 + exp(-m)), and 1 / (1 + exp(m)), without overflow.
inline double log_one_plus_exp(double m) { return std::max(0.0, -m) + log_one_plus(exp_minus(std::abs(m))); }
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
    double top(std::int64_t i, double C) const { return C * weight(i); }
    // alpha = S / (1 + exp(m + q alpha)) with S = C s and m the margin at z. In u = m + q alpha, the margin after the
    // step, that is u - m = q S / (1 + exp(u)): the left side rises, the right side falls. Newton's method, kept inside
    // a bracket that shrinks with every step.
    double dual(std::int64_t i, double z, double q, double C) const {
        const double S = C * weight(i), m = label(i) * z, far = q * S;
        double low = m, high = m + far, u = m + far * sigmoid_of_minus(m + 0.5 * far);
        for (int step = 0; step < 50 && far > 0.0; ++step) {
            const double p = sigmoid_of_minus(u), excess = u - m - far * p;
            (excess > 0.0 ? high : low) = u;
            double next = u - excess / (1.0 + far * p * (1.0 - p));
            if (!(low < next && next < high)) next = 0.5 * (low + high);
            if (std::abs(next - u) <= 1e-14 * (1.0 + std::abs(u))) break;
            u = next;
        }
        return label(i) * S * sigmoid_of_minus(u);
    }
};

struct Tube : Targets {
    double below, above;
    static constexpr int HINGES = 2;  // below the target, above it

    double steepness(std::int64_t i, int b) const { return s[i] * (b == 0 ? below : -above); }
    double height(std::int64_t i, int b, double f) const { return s[i] * (b == 0 ? below : above) * gap(i, b, f); }
    double gap(std::int64_t i, int b, double f) const { return (b == 0 ? -1.0 : 1.0) * residual(i, f) - epsilon; }
    double scale(std::int64_t i, double f) const { return std::abs(t[i]) + std::abs(f) + epsilon; }
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
    double top(std::int64_t i, double C) const { return C * s[i] * std::max(below, above); }
    double dual(std::int64_t i, double z, double q, double C) const {
        const double r = residual(i, z), over = std::abs(r) - epsilon;
        if (!(over > 0.0)) return 0.0;
        const double most = C * s[i] * (r < 0.0 ? below : above);
        const double beta = q > 0.0 ? std::min(over / q, most) : most;
        return r < 0.0 ? beta : -beta;
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
        return s[i] > 0.0 ? -g * t[i] - epsilon * std::abs(g) - g * g / (4.0 * s[i]) : 0.0;
    }
    double terms(std::int64_t i, double g) const {
        return s[i] > 0.0 ? std::abs(g) * (std::abs(t[i]) + epsilon + std::abs(g) / (4.0 * s[i])) : 0.0;
    }
    double top(std::int64_t, double) const { return NO_LIMIT; }
    double dual(std::int64_t i, double z, double q, double C) const {
        const double twice = 2.0 * C * s[i];
        return -twice * excess(i, z) / (1.0 + q * twice);
    }
};

struct Huber : Targets {
    double value(std::int64_t i, double f) const {
        const double r = std::abs(residual(i, f)), inside = std::min(r, epsilon);
        return s[i] * inside * (r - 0.5 * inside);
    }
    double slope(std::int64_t i, double f) const { return s[i] * std::clamp(residual(i, f), -epsilon, epsilon); }
    double curvature(std::int64_t i, double f) const { return std::abs(residual(i, f)) < epsilon ? s[i] : 0.0; }
    double offset(std::int64_t i, double g) const { return s[i] > 0.0 ? -g * t[i] - g * g / (2.0 * s[i]) : 0.0; }
    double terms(std::int64_t i, double g) const {
        return s[i] > 0.0 ? std::abs(g) * (std::abs(t[i]) + std::abs(g) / (2.0 * s[i])) : 0.0;
    }
    double top(std::int64_t i, double C) const { return C * s[i] * epsilon; }
    double dual(std::int64_t i, double z, double q, double C) const {
        const double S = C * s[i], most = S * epsilon;
        return std::clamp(-S * residual(i, z) / (1.0 + q * S), -most, most);
    }
};

// Whether a loss is a sum of hinges.
template <class Loss>
inline constexpr bool PIECEWISE = requires { Loss::HINGES; };

}  // namespace cutsvm
