// Vec on plain x86-64 (SSE2): 4 floats. Included by cc/simd/vec.h only.
#pragma once

#include <emmintrin.h>

#include <cstdint>

namespace bd::BD_ISA {
namespace {

using Vec = __m128;
using IVec = __m128i;
constexpr int kLanes = 4;
inline IVec Bits(Vec v) { return _mm_castps_si128(v); }
inline Vec FromBits(IVec i) { return _mm_castsi128_ps(i); }
#define BD_MM(intrinsic) _mm_##intrinsic
#include "cc/simd/vec_common_inl.h"

inline Vec LoadN(const float* p, int n) {
  float t[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) t[i] = p[i];
  return _mm_loadu_ps(t);
}
inline void StoreN(float* p, Vec v, int n) {
  float t[4];
  _mm_storeu_ps(t, v);
  for (int i = 0; i < n; ++i) p[i] = t[i];
}
inline Vec Fma(Vec a, Vec b, Vec c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
inline __m128d FmaOnce(__m128d a, __m128d b, __m128d c) {
  // The product of two floats is exact. Where the sum is not, the neighbour of it on the error's
  // side or itself, whichever is odd, rounds to the float to which the exact sum rounds (Boldo and
  // Melquiond, Emulation of a FMA and correctly rounded sums, 2008).
  const __m128d product = _mm_mul_pd(a, b), sum = _mm_add_pd(product, c);
  const __m128d of_c = _mm_sub_pd(sum, product);
  const __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, of_c)), _mm_sub_pd(c, of_c));
  const __m128d zero = _mm_setzero_pd();
  const __m128i above = _mm_castpd_si128(_mm_cmpgt_pd(error, zero));
  const __m128i below = _mm_castpd_si128(_mm_cmplt_pd(error, zero));
  const __m128i inexact = _mm_or_si128(above, below), bits = _mm_castpd_si128(sum);
  const __m128i one = _mm_set_epi32(0, 1, 0, 1);
  const __m128i even = _mm_andnot_si128(bits, one);
  // -1 where the exact sum is nearer to zero than the rounded one, else 0.
  const __m128i nearer = _mm_xor_si128(below, _mm_castpd_si128(_mm_cmplt_pd(sum, zero)));
  const __m128i step = _mm_sub_epi64(_mm_xor_si128(even, nearer), nearer);
  return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(step, inexact)));
}
inline Vec FmaOnce(Vec a, Vec b, Vec c) {
  const auto high = [](Vec v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); };
  const __m128d low = FmaOnce(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(FmaOnce(high(a), high(b), high(c))));
}
inline Vec FmaAt(const float* a, Vec b, Vec c) { return Fma(Set1(*a), b, c); }
inline void FmaInto(Vec a, Vec b, Vec* c) { *c = Fma(a, b, *c); }
inline Vec Set1InOrder(const float* p) { return Set1(*static_cast<const volatile float*>(p)); }
inline float ReduceAdd(Vec v) {
  __m128 s = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
inline float ReduceMax(Vec v) {
  __m128 s = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

inline Vec LoadQuads(const float* p, int64_t) { return Load(p); }
inline void StoreQuads(float* p, int64_t, Vec v) { Store(p, v); }
inline Vec SwapPairs(Vec v) { return _mm_shuffle_ps(v, v, 0x4e); }
inline Vec SwapNeighbours(Vec v) { return _mm_shuffle_ps(v, v, 0xb1); }

inline Vec NegFma(Vec a, Vec b, Vec c) { return _mm_sub_ps(c, _mm_mul_ps(a, b)); }
inline Vec ProductError(Vec a, Vec b, Vec product) {
  // Dekker: halves of 12 bits, whose products are exact.
  const Vec high = _mm_castsi128_ps(_mm_set1_epi32(~0xfff));
  const Vec ah = And(a, high), bh = And(b, high), al = Sub(a, ah), bl = Sub(b, bh);
  const Vec sum = Sub(Mul(ah, bh), product);
  return Add(Add(Add(sum, Mul(ah, bl)), Mul(al, bh)), Mul(al, bl));
}

using Mask = __m128;
inline Mask Less(Vec a, Vec b) { return _mm_cmplt_ps(a, b); }
inline Mask Equal(Vec a, Vec b) { return _mm_cmpeq_ps(a, b); }
inline Mask IsNan(Vec a) { return _mm_cmpunord_ps(a, a); }
inline bool All(Mask m) { return _mm_movemask_ps(m) == 0xf; }
inline Vec Select(Mask m, Vec a, Vec b) { return Or(And(m, a), _mm_andnot_ps(m, b)); }
inline Vec KeepFirst(Vec v, int n) {
  const __m128i lane = _mm_setr_epi32(0, 1, 2, 3);
  return And(v, _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32(n), lane)));
}
inline Vec Round(Vec a) {
  // Adding 2^23 (of the sign of a) drops the fraction; larger ones have none.
  const Vec sign = And(a, Set1(-0.f)), magic = Or(Set1(8388608.f), sign);
  const Vec rounded = Or(Sub(Add(a, magic), magic), sign);
  return Select(Less(Xor(a, sign), Set1(8388608.f)), rounded, a);
}

inline IVec MulInt(IVec a, IVec b) {  // SSE2 multiplies every other lane
  const __m128i even = _mm_mul_epu32(a, b);
  const __m128i odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32));
  return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x08), _mm_shuffle_epi32(odd, 0x08));
}
inline IVec OrXor(IVec acc, IVec a, IVec b) { return _mm_or_si128(acc, _mm_xor_si128(a, b)); }
inline bool HasAny(IVec i, int32_t bits) {
  const __m128i none = _mm_cmpeq_epi32(_mm_and_si128(i, SetInt(bits)), _mm_setzero_si128());
  return _mm_movemask_epi8(none) != 0xffff;
}

}  // namespace
}  // namespace bd::BD_ISA
