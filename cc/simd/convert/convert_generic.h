// Conversions on plain x86-64 (SSE2). Included by cc/simd/convert/convert.h only.
#pragma once

#include <string.h>

#include "cc/base/data_type.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

inline __m128i Load32(const void* p) {
  int32_t bits;
  memcpy(&bits, p, sizeof(bits));
  return _mm_cvtsi32_si128(bits);
}
inline void Store32(void* p, __m128i i) {
  const int32_t bits = _mm_cvtsi128_si32(i);
  memcpy(p, &bits, sizeof(bits));
}
inline __m128i Load64(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
inline void Store64(void* p, __m128i i) { _mm_storel_epi64(static_cast<__m128i*>(p), i); }

inline IVec LoadInt(const int32_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline IVec LoadInt(const int8_t* p) {
  // Each byte to the top of its lane, then down with its sign.
  const __m128i bytes = Load32(p), words = _mm_unpacklo_epi8(bytes, bytes);
  return _mm_srai_epi32(_mm_unpacklo_epi16(words, words), 24);
}
inline IVec LoadInt(const uint8_t* p) {
  const __m128i zero = _mm_setzero_si128();
  return _mm_unpacklo_epi16(_mm_unpacklo_epi8(Load32(p), zero), zero);
}
inline IVec LoadInt(const uint16_t* p) {
  return _mm_unpacklo_epi16(Load64(p), _mm_setzero_si128());
}

inline void StoreInt(int32_t* p, IVec i) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), i); }
inline void StoreInt(int8_t* p, IVec i) {
  const __m128i words = _mm_packs_epi32(i, i);
  Store32(p, _mm_packs_epi16(words, words));
}
inline void StoreInt(uint8_t* p, IVec i) {
  const __m128i words = _mm_packs_epi32(i, i);
  Store32(p, _mm_packus_epi16(words, words));
}
inline void StoreInt(uint16_t* p, IVec i) { Store64(p, _mm_packs_epi32(i, i)); }

inline void StoreBytes(uint8_t* p, const IVec* i, const ByteBounds& b) {
  const IVec low = _mm_adds_epi16(_mm_packs_epi32(i[0], i[1]), b.zero_point);
  const IVec high = _mm_adds_epi16(_mm_packs_epi32(i[2], i[3]), b.zero_point);
  const IVec bytes = _mm_packus_epi16(low, high);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_min_epu8(_mm_max_epu8(bytes, b.low), b.high));
}

inline IVec RoundToInt(Vec v) { return _mm_cvtps_epi32(Round(v)); }

// A half is a sign, 5 bits of exponent (bias 15) and 10 of mantissa.
inline Vec FloatFromHalf(const Float16* p) {
  const IVec half = LoadInt(&p->bits);
  const IVec magnitude = _mm_and_si128(half, SetInt(0x7fff));
  const Vec sign = FromBits(ShiftLeft<16>(_mm_and_si128(half, SetInt(0x8000))));
  // Into place; the biases differ by 112. The largest exponent, 31, becomes 255, and
  // NaNs become quiet.
  const IVec placed = AddInt(ShiftLeft<13>(magnitude), SetInt(112 << 23));
  const Vec large = FromBits(AddInt(placed, SetInt(112 << 23)));
  const Vec quiet = Or(large, FromBits(SetInt(0x400000)));
  // Exponent 0: multiples of 2^-24.
  const Vec tiny = Mul(ToFloat(magnitude), Set1(0x1p-24f));
  const auto above = [&](int32_t bound) {
    return _mm_castsi128_ps(_mm_cmpgt_epi32(magnitude, SetInt(bound)));
  };
  const Vec special = Select(above(0x7c00), quiet, large);
  const Vec finite = Select(above(0x03ff), FromBits(placed), tiny);
  return Or(Select(above(0x7bff), special, finite), sign);
}

inline void StoreHalf(Float16* p, Vec v) {
  const Vec sign = And(v, Set1(-0.f)), a = Xor(v, sign);
  // 13 bits of the mantissa go: half a unit of the last place kept, and the even one
  // of two equally near. A carry into the exponent is right, up to infinity.
  const IVec odd = _mm_and_si128(ShiftRight<13>(Bits(a)), SetInt(1));
  const IVec biased = AddInt(Bits(a), SetInt(0xfff - (112 << 23)));
  const IVec normal = ShiftRight<13>(AddInt(biased, odd));
  const IVec tiny = RoundToInt(Mul(a, Set1(0x1p24f)));
  const Vec payload = And(FromBits(ShiftRight<13>(Bits(a))), FromBits(SetInt(0x3ff)));
  const Vec quiet = Or(payload, FromBits(SetInt(0x7e00)));
  Vec half = Select(Less(a, Set1(0x1p-14f)), FromBits(tiny), FromBits(normal));
  half = Select(Less(a, Set1(65520.f)), half, FromBits(SetInt(0x7c00)));
  half = Select(IsNan(v), quiet, half);
  // With the sign extended over 32 bits, as StoreInt wants it.
  StoreInt(&p->bits, Bits(Or(half, FromBits(ShiftRight<16>(Bits(sign))))));
}

}  // namespace
}  // namespace bd::BD_ISA
