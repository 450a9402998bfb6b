// What the programs of tests/cpp share.
#pragma once

#include <cmath>
#include <cstdio>

inline int failures = 0;

inline void expect(bool fine, const char* what, long detail) {
    if (fine) return;
    std::fprintf(stderr, "FAILED %s (%ld)\n", what, detail);
    ++failures;
}

inline bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * (1.0 + std::abs(a) + std::abs(b)); }
