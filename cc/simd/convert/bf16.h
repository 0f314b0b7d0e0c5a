// Products of bfloat16 numbers, added up in float32.
//
//   Pairs                kLanes pairs of numbers
//   LoadPairs(p)         those at p, pair i being p[2 i] and p[2 i + 1]
//   SetPair(p)           p[0] and p[1] in all lanes
//   InterleavePairs(p, q)  p[i] and q[i]
//   LoadSingles(p)       p[i] and zero
//   PairsOfFloats(v, w)  lanes of v and w, which are bfloat16 numbers
//   DotPairs(acc, a, b)  acc + a.second * b.second, rounded, + a.first * b.first, rounded
//
// With AVX512_BF16 this is VDPBF16PS, which takes denormal numbers for zero, of acc too, and gives
// zero instead of them, whatever the modes of the processor. (A product of two such numbers is
// exact in float32, so each of the two roundings is one of a fused multiply-add.) On other sets
// denormal numbers count as the processor's mode says.
#pragma once

#include "cc/base/data_type.h"
#include "cc/simd/convert/convert.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(BD_AVX512_BF16) && !defined(BD_EMULATED)

using Pairs = __m512bh;

inline Pairs LoadPairs(const Bfloat16* p) { return reinterpret_cast<Pairs>(_mm512_loadu_si512(p)); }
inline Pairs SetPair(const Bfloat16* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return reinterpret_cast<Pairs>(_mm512_set1_epi32(pair));
}
inline Pairs InterleavePairs(const Bfloat16* p, const Bfloat16* q) {
  const auto load = [](const Bfloat16* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  };
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(load(p)), load(q), 1);
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i of_q = _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(16)), 16);
  return reinterpret_cast<Pairs>(_mm512_permutexvar_epi16(_mm512_or_si512(lanes, of_q), both));
}
inline Pairs LoadSingles(const Bfloat16* p) {
  return reinterpret_cast<Pairs>(
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
}
inline Pairs PairsOfFloats(Vec v, Vec w) {
  const __m512i upper = _mm512_and_si512(Bits(w), _mm512_set1_epi32(-65536));
  return reinterpret_cast<Pairs>(_mm512_or_si512(_mm512_srli_epi32(Bits(v), 16), upper));
}
inline Vec DotPairs(Vec acc, Pairs a, Pairs b) { return _mm512_dpbf16_ps(acc, a, b); }

#else

// As floats: a bfloat16 is the upper half of one.
struct Pairs {
  Vec first, second;
};

inline Pairs PairsOf(IVec bits) {
  const IVec upper = Bits(And(FromBits(bits), FromBits(SetInt(-65536))));
  return {FromBits(ShiftLeft<16>(bits)), FromBits(upper)};
}

#if defined(BD_AVX512_BF16)

// The instruction's way with denormal numbers.
constexpr float kLeastNormal = 0x1p-126f;
inline Vec DenormalsAreZero(Vec v) {
  const Vec sign = And(v, Set1(-0.f));
  return Select(Less(Xor(v, sign), Set1(kLeastNormal)), sign, v);
}
inline Pairs Normal(Pairs p) { return {DenormalsAreZero(p.first), DenormalsAreZero(p.second)}; }

// c + a * b. A result counts as denormal if it is one before its exponent is bounded: what lies
// within half a unit below the least normal number may round up to it, and yet is flushed. So the
// bound is looked at in the same sum times 2^32, which rounds like normal numbers do.
inline Vec FlushedFma(Vec a, Vec b, Vec c) {
  const Vec up = Set1(0x1p32f), sum = Fma(a, b, c), sign = And(sum, Set1(-0.f));
  const Vec scaled = Fma(Mul(a, up), b, Mul(c, up));
  const Vec magnitude = Xor(scaled, And(scaled, Set1(-0.f)));
  return Select(Less(magnitude, Set1(kLeastNormal * 0x1p32f)), sign, sum);
}
inline Vec DotPairs(Vec acc, Pairs a, Pairs b) {
  const Vec second = FlushedFma(a.second, b.second, DenormalsAreZero(acc));
  return FlushedFma(a.first, b.first, second);
}

#else

inline Pairs Normal(Pairs p) { return p; }
inline Vec DotPairs(Vec acc, Pairs a, Pairs b) {
  return Fma(a.first, b.first, Fma(a.second, b.second, acc));
}

#endif

inline Pairs LoadPairs(const Bfloat16* p) {
  return Normal(PairsOf(Bits(Load(reinterpret_cast<const float*>(p)))));
}
inline Pairs SetPair(const Bfloat16* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return Normal(PairsOf(SetInt(pair)));
}
inline Pairs InterleavePairs(const Bfloat16* p, const Bfloat16* q) {
  return Normal({LoadAs(p), LoadAs(q)});
}
inline Pairs LoadSingles(const Bfloat16* p) { return Normal({LoadAs(p), Zero()}); }
inline Pairs PairsOfFloats(Vec v, Vec w) { return Normal({v, w}); }

#endif

}  // namespace
}  // namespace bd::BD_ISA
