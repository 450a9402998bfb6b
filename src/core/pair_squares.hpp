// The squared hinge loss over pairs of one query, its slopes and second derivatives; no pair is ever made.
//
// C.-P. Lee, C.-J. Lin: Large-scale linear rankSVM, Neural Computation 26, 2014: sums over the partners of each row
// from order statistics. Here by the two sweeps of core/pairwise.hpp, whose notation this is.
//
// The loss is the sum over all pairs of a query with y_i > y_j of  s_i s_j max(0, margin - (f_i - f_j))^2. The partners
// of a row are those with which it makes a pair that counts, f_i - f_j < margin. For numbers z of the rows,
//   above_i, above_i(z) = the sums of s_j and of s_j z_j over the partners of lower level
//   below_i, below_i(z) = those over the partners of higher level
// With z = f, counted from the middle of the query's scores,
//   up_i   = (margin - z_i) above_i + above_i(z)    is the sum of s_j (margin - (f_i - f_j)) over those of lower level
//   down_i = (margin + z_i) below_i - below_i(z)    is the sum of s_j (margin - (f_j - f_i)) over those of higher level
// Row i's slope is g_i = 2 s_i (down_i - up_i), and with L = sum_i s_i up_i, D = sum_i s_i z_i (down_i - up_i)
//   loss = margin L + D,    loss - g.f = margin L - D
// The second derivatives times a vector v are 2 s_i (v_i (above_i + below_i) - above_i(v) - below_i(v)).
//
// Rounding: loss and offset are made of at most 2 n + 64 additions each, n the rows of the query, and the slopes of
// n + 64. The absolute values of all terms sum to no more than
//   magnitude = sum_i s_i (above_i + below_i) (margin + 2 |z_i|)^2
// for loss and offset, by |z_i z_j| <= (z_i^2 + z_j^2) / 2, and of all slopes together to twice that without the
// square: i is a partner of j where j is one of i. So loss and offset are off by gamma(2 n + 64) magnitude at most. A
// pair whose difference of scores is rounded up to the margin does not count: the plane of the others lies below the
// loss as well.
#pragma once

#include "core/pairwise.hpp"

namespace cutsvm {

// One way: sums[k] and value_sums[k] = the sums over the partners of row k of lower level (DOWN) or of higher level.
// requires: rows in the order of ByScore; weights, values, sums and value_sums in that order; levels of all rows.
template <bool DOWN, class Levels>
void sweep_partners(const PairWorkspace& workspace, std::int64_t levels, double margin, Levels& by_level,
                    Levels& values_by_level, LargeVector<double>& sums, LargeVector<double>& value_sums) {
    const auto& rows = workspace.rows;
    const std::size_t n = rows.size();
    const auto at = [n](std::size_t m) { return DOWN ? n - 1 - m : m; };
    const auto level = [&rows, &at, highest = static_cast<std::int32_t>(levels - 1)](std::size_t m) {
        const std::int32_t own = rows[at(m)].level;
        return DOWN ? own : highest - own;  // those above are those below
    };
    const auto difference = [&rows, &at](std::size_t m, std::size_t other) {
        const double ahead = rows[at(m)].score - rows[at(other)].score;
        return DOWN ? ahead : -ahead;
    };
    by_level.clear(levels);
    values_by_level.clear(levels);
    std::size_t next = 0;
    for (std::size_t m = 0; m < n; ++m) {
        for (; next < n && difference(m, next) < margin; ++next) {
            if (next + AHEAD < n) {
                by_level.prefetch(level(next + AHEAD));
                values_by_level.prefetch(level(next + AHEAD));
            }
            const double weight = workspace.weights[at(next)];
            by_level.add(level(next), weight);
            values_by_level.add(level(next), weight * workspace.values[at(next)]);
        }
        sums[at(m)] = by_level.below(level(m));
        value_sums[at(m)] = values_by_level.below(level(m));
    }
}

// The rows of a query in order, and their sums over partners: those of s_j, and of s_j z_j with z_j = value(j).
// requires: 0 <= q < queries; f has one entry per row of all queries, finite in this one; value takes a row's number
//           within the query.
template <class Value>
void find_partners(const Pairs& p, std::int64_t q, const double* f, const Value& value, PairWorkspace& workspace,
                   int threads) {
    const std::int64_t begin = p.starts[q], n = p.starts[q + 1] - begin, levels = p.levels[q];
    if (n <= MANY_ROWS) threads = 1;
    auto& rows = workspace.rows;
    const auto row = [&](std::int64_t i) { return Ranked{f[begin + i], static_cast<std::int32_t>(i), p.y[begin + i]}; };
    workspace.put_in_order(n, row, ByScore{}, rows, threads);
    for (auto* sums : {&workspace.weights, &workspace.values, &workspace.above, &workspace.below,
                       &workspace.above_values, &workspace.below_values})
        sums->resize(n);
    for_blocks(n, threads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t k = first; k < last; ++k) {
            workspace.weights[k] = p.s[begin + rows[k].row];
            workspace.values[k] = value(rows[k].row);
        }
    });
    const auto with = [&](auto& sums, auto& value_sums) {
        sweep(
            [&] {
                sweep_partners<true>(workspace, levels, p.margin, sums[0], value_sums[0], workspace.above,
                                     workspace.above_values);
            },
            [&] {
                sweep_partners<false>(workspace, levels, p.margin, sums[1], value_sums[1], workspace.below,
                                      workspace.below_values);
            },
            threads);
    };
    if (levels > FewLevels::MOST) return with(workspace.many, workspace.many_values);
    with(workspace.few, workspace.few_values);
}

struct SquareSums {
    double weight = 0.0;              // of the pairs that count
    double loss = 0.0, offset = 0.0;  // of the plane that touches the loss: loss - g.f
    double size = 0.0;                // sum_i |g_i|
    double magnitude = 0.0;           // what rounding errors are a share of, as above
};

// Whether a query makes pairs.
inline bool has_pairs(const Pairs& p, std::int64_t q) { return p.starts[q + 1] - p.starts[q] > 1 && p.levels[q] > 1; }

// One query: its rows' slopes g, and the sums; slopes of 0 and NaN if a score is not finite.
// requires: 0 <= q < queries; f and g have one entry per row of all queries.
inline SquareSums query_squares(const Pairs& p, std::int64_t q, const double* f, double* g, PairWorkspace& workspace,
                                int threads) {
    const std::int64_t begin = p.starts[q], n = p.starts[q + 1] - begin;
    const double *first = f + begin, *last = first + n;
    const bool finite = std::all_of(first, last, [](double score) { return std::isfinite(score); });
    if (!has_pairs(p, q) || !finite) {
        constexpr double UNKNOWN = std::numeric_limits<double>::quiet_NaN();
        std::fill(g + begin, g + begin + n, 0.0);
        if (has_pairs(p, q)) return {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
        return {};
    }
    const auto [lowest, highest] = std::minmax_element(first, last);
    const double middle = 0.5 * *lowest + 0.5 * *highest;
    find_partners(p, q, f, [&](std::int32_t i) { return first[i] - middle; }, workspace, threads);
    const double margin = p.margin;
    const auto total = sum_blocks<5>(n, n <= MANY_ROWS ? 1 : threads, [&](std::int64_t from, std::int64_t to) {
        std::array<double, 5> sums{};
        for (std::int64_t k = from; k < to; ++k) {
            const double s = workspace.weights[k], z = workspace.values[k];
            const double above = workspace.above[k], below = workspace.below[k];
            // Sums of what is not below 0.
            const double up = s * std::max(0.0, (margin - z) * above + workspace.above_values[k]);
            const double down = s * std::max(0.0, (margin + z) * below - workspace.below_values[k]);
            const double slope = 2.0 * (down - up);
            g[begin + workspace.rows[k].row] = slope;
            sums[0] += s * above;
            sums[1] += up;
            sums[2] += z * (down - up);
            sums[3] += std::abs(slope);
            const double width = margin + 2.0 * std::abs(z);
            sums[4] += s * (above + below) * width * width;
        }
        return sums;
    });
    return {total[0], std::max(0.0, margin * total[1] + total[2]), margin * total[1] - total[2], total[3], total[4]};
}

// g = slopes of all rows; sums[q] = those of query q, as in SquareSums.
// requires: f and g have one entry per row, sums one per query; 0 <= y < levels[q] in query q; margin >= 0; a query
//           has fewer than 2^31 rows.
// ensures: the same bits for any number of threads.
inline void pair_squares(const Pairs& p, View<const double> f, View<double> g, View<SquareSums> sums,
                         PairMemory& memory, int threads) {
    for_queries(p, memory, threads, [&](std::int64_t q, PairWorkspace& own, int inside) {
        sums[q] = query_squares(p, q, f.data(), g.data(), own, inside);
    });
}

// product = the second derivatives of the loss at f times v, diagonal = those in each score by itself.
// requires: as `pair_squares`; v, product and diagonal have one entry per row; finite f.
// ensures: the same bits for any number of threads.
inline void pair_products(const Pairs& p, View<const double> f, View<const double> v, View<double> product,
                          View<double> diagonal, PairMemory& memory, int threads) {
    for_queries(p, memory, threads, [&](std::int64_t q, PairWorkspace& own, int inside) {
        const std::int64_t begin = p.starts[q], n = p.starts[q + 1] - begin;
        if (!has_pairs(p, q)) {
            for (auto out : {product, diagonal}) std::fill_n(out.data() + begin, n, 0.0);
            return;
        }
        find_partners(p, q, f.data(), [&](std::int32_t i) { return v[begin + i]; }, own, inside);
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int64_t i = begin + own.rows[k].row;
            diagonal[i] = 2.0 * own.weights[k] * (own.above[k] + own.below[k]);
            product[i] = diagonal[i] * v[i] - 2.0 * own.weights[k] * (own.above_values[k] + own.below_values[k]);
        }
    });
}

}  // namespace cutsvm
