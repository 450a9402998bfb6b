// Arguments that describe the problems of pairs of classes, checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "bindings/arrays.hpp"
#include "bindings/matrix.hpp"
#include "core/machines.hpp"

using Rows32 = Vector<std::int32_t>;
using Counts = Vector<std::int64_t>;

inline void check_within(const Rows32& places, std::int64_t least, std::int64_t end, const char* what) {
    for (const std::int32_t i : view(places)) check(least <= i && i < end, what);
}

inline cutsvm::Problems problems_of(const Rows32& rows, const Vector<double>& a, const Counts& first) {
    check(rows.shape(0) == a.shape(0), "rows and a differ in length");
    check(first.shape(0) > 1, "first: one more than problems expected");
    const auto all = view(first);
    check(all.front() == 0 && all.back() == extent(rows) &&
              std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) == all.end(),
          "first: rising from 0 to the number of rows expected");
    return {view(rows), view(a), all};
}
