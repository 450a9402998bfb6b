// Numbers that are worked on together: as many as a register holds, and eight of them in as many registers as it takes.
//
// A vector type of eight doubles would say the same in one line, but where registers are narrower g++ takes it apart: a
// choice between two such vectors becomes eight jumps. With AVX2 `multi_look` took 30 times as long that way.
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

inline constexpr std::int64_t ABREAST = 8;
inline constexpr std::size_t REGISTERS = ABREAST / LANES;
using Register [[gnu::vector_size(LANES * sizeof(double))]] = double;

template <class Part>
struct Eight {
    Part parts[REGISTERS];
};
using Abreast = Eight<Register>;
using Bits = decltype(Register{} > Register{});  // all set for yes, none for no
using Choice = Eight<Bits>;

// make(p) for each register p.
template <class Make>
[[gnu::always_inline]] inline auto eight(const Make& make) {
    return [&]<std::size_t... P>(std::index_sequence<P...>) {
        return Eight<decltype(make(0))>{{make(P)...}};
    }(std::make_index_sequence<REGISTERS>{});
}

inline Abreast all(double value) {
    return eight([&](std::size_t) { return Register{} + value; });
}
inline Choice all(std::int64_t yes) {  // -1 for yes, 0 for no
    return eight([&](std::size_t) { return Bits{} + yes; });
}
inline Abreast operator+(const Abreast& a, const Abreast& b) {
    return eight([&](std::size_t p) { return a.parts[p] + b.parts[p]; });
}
inline Abreast operator-(const Abreast& a, const Abreast& b) {
    return eight([&](std::size_t p) { return a.parts[p] - b.parts[p]; });
}
inline Abreast operator*(const Abreast& a, const Abreast& b) {
    return eight([&](std::size_t p) { return a.parts[p] * b.parts[p]; });
}
inline Abreast operator*(double a, const Abreast& b) {
    return eight([&](std::size_t p) { return a * b.parts[p]; });
}
inline Abreast& operator+=(Abreast& a, const Abreast& b) { return a = a + b; }

inline Choice operator>(const Abreast& a, const Abreast& b) {
    return eight([&](std::size_t p) { return a.parts[p] > b.parts[p]; });
}
inline Choice operator>=(const Abreast& a, const Abreast& b) {
    return eight([&](std::size_t p) { return a.parts[p] >= b.parts[p]; });
}
inline Choice operator==(const Abreast& a, const Abreast& b) {
    return eight([&](std::size_t p) { return a.parts[p] == b.parts[p]; });
}
inline Choice operator|(const Choice& a, const Choice& b) {
    return eight([&](std::size_t p) { return a.parts[p] | b.parts[p]; });
}
inline Choice operator^(const Choice& a, const Choice& b) {
    return eight([&](std::size_t p) { return a.parts[p] ^ b.parts[p]; });
}
inline Choice operator&(const Choice& a, const Choice& b) {
    return eight([&](std::size_t p) { return a.parts[p] & b.parts[p]; });
}
inline Abreast pick(const Choice& choice, const Abreast& yes, const Abreast& no) {
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
inline Abreast load(const double* from) {
    return eight([&](std::size_t p) { return Register(lanes(from + p * LANES)); });
}
inline void store(const Abreast& values, double* to) {
#pragma GCC unroll 4
    for (std::size_t p = 0; p < REGISTERS; ++p) lanes(to + p * LANES) = values.parts[p];
}

}  // namespace cutsvm
