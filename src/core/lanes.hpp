// Numbers that are worked on together: as many as a register holds, and eight of them in as many registers as it takes.
//
// A vector type of eight doubles would say the same in one line, but where registers are narrower g++ takes it apart: a
// choice between two such vectors becomes eight jumps. With AVX2 `multi_evaluate` took 30 times as long that way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace cutsvm {

// Doubles in a register.
#if defined(__AVX512F__)
inline constexpr std::size_t LANES = 8;
#elif defined(__AVX__)
inline constexpr std::size_t LANES = 4;
#else
inline constexpr std::size_t LANES = 2;
#endif

// They may lie anywhere in memory.
typedef double Lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(alignof(double)), may_alias));

inline Lanes& lanes(double* at) { return *reinterpret_cast<Lanes*>(at); }
inline const Lanes& lanes(const double* at) { return *reinterpret_cast<const Lanes*>(at); }

inline constexpr std::int64_t BATCH = 8;
inline constexpr std::size_t REGISTERS = BATCH / LANES;
using Register [[gnu::vector_size(LANES * sizeof(double))]] = double;

template <class Part>
struct Eight {
    Part parts[REGISTERS];
};
using Batch = Eight<Register>;
using Bits = decltype(Register{} > Register{});  // all set for yes, none for no
using Mask = Eight<Bits>;

// make(p) for each register p.
template <class Make>
[[gnu::always_inline]] inline auto eight(const Make& make) {
    return [&]<std::size_t... P>(std::index_sequence<P...>) {
        return Eight<decltype(make(0))>{{make(P)...}};
    }(std::make_index_sequence<REGISTERS>{});
}

inline Batch broadcast(double value) {
    return eight([&](std::size_t) { return Register{} + value; });
}
inline Mask broadcast(std::int64_t yes) {  // -1 for yes, 0 for no
    return eight([&](std::size_t) { return Bits{} + yes; });
}
inline Batch operator+(const Batch& a, const Batch& b) {
    return eight([&](std::size_t p) { return a.parts[p] + b.parts[p]; });
}
inline Batch operator-(const Batch& a, const Batch& b) {
    return eight([&](std::size_t p) { return a.parts[p] - b.parts[p]; });
}
inline Batch operator*(const Batch& a, const Batch& b) {
    return eight([&](std::size_t p) { return a.parts[p] * b.parts[p]; });
}
inline Batch operator*(double a, const Batch& b) {
    return eight([&](std::size_t p) { return a * b.parts[p]; });
}
inline Batch& operator+=(Batch& a, const Batch& b) { return a = a + b; }

inline Mask operator>(const Batch& a, const Batch& b) {
    return eight([&](std::size_t p) { return a.parts[p] > b.parts[p]; });
}
inline Mask operator>=(const Batch& a, const Batch& b) {
    return eight([&](std::size_t p) { return a.parts[p] >= b.parts[p]; });
}
inline Mask operator==(const Batch& a, const Batch& b) {
    return eight([&](std::size_t p) { return a.parts[p] == b.parts[p]; });
}
inline Mask operator|(const Mask& a, const Mask& b) {
    return eight([&](std::size_t p) { return a.parts[p] | b.parts[p]; });
}
inline Mask operator^(const Mask& a, const Mask& b) {
    return eight([&](std::size_t p) { return a.parts[p] ^ b.parts[p]; });
}
inline Mask operator&(const Mask& a, const Mask& b) {
    return eight([&](std::size_t p) { return a.parts[p] & b.parts[p]; });
}
inline Batch select(const Mask& choice, const Batch& yes, const Batch& no) {
    return eight([&](std::size_t p) {
        const Bits bits = choice.parts[p];
        if constexpr (LANES > 2)
            return bits ? yes.parts[p] : no.parts[p];
        else  // SSE2 cannot compare integers of 64 bits, which is what a choice by them begins with
            return reinterpret_cast<Register>((bits & reinterpret_cast<Bits>(yes.parts[p])) |
                                              (~bits & reinterpret_cast<Bits>(no.parts[p])));
    });
}

// Register by register: a copy in pieces of another size would have to wait until it is written.
inline Batch load(const double* from) {
    return eight([&](std::size_t p) { return Register(lanes(from + p * LANES)); });
}
inline void store(const Batch& values, double* to) {
#pragma GCC unroll 4
    for (std::size_t p = 0; p < REGISTERS; ++p) lanes(to + p * LANES) = values.parts[p];
}

}  // namespace cutsvm
