// Conversions on AVX2 + F16C. Included by cc/simd/convert/convert.h only.
#pragma once

#include "cc/base/data_type.h"
#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

inline __m128i Load64(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
inline __m128i Load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline void Store64(void* p, __m128i i) { _mm_storel_epi64(static_cast<__m128i*>(p), i); }
inline void Store128(void* p, __m128i i) { _mm_storeu_si128(static_cast<__m128i*>(p), i); }

inline IVec LoadInt(const int32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline IVec LoadInt(const int8_t* p) { return _mm256_cvtepi8_epi32(Load64(p)); }
inline IVec LoadInt(const uint8_t* p) { return _mm256_cvtepu8_epi32(Load64(p)); }
inline IVec LoadInt(const uint16_t* p) { return _mm256_cvtepu16_epi32(Load128(p)); }

// 8 int32 as int16, saturated.
inline __m128i Narrow(IVec i) {
  return _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
}
inline void StoreInt(int32_t* p, IVec i) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), i); }
inline void StoreInt(int8_t* p, IVec i) { Store64(p, _mm_packs_epi16(Narrow(i), Narrow(i))); }
inline void StoreInt(uint8_t* p, IVec i) { Store64(p, _mm_packus_epi16(Narrow(i), Narrow(i))); }
// 16 int32 as unsigned bytes, saturated.
inline void StoreIntBlock(uint8_t* p, IVec low, IVec high) {
  const IVec words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
  Store128(p, _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
inline void StoreInt(uint16_t* p, IVec i) { Store128(p, Narrow(i)); }
inline void StoreBytes(uint8_t* p, const IVec* i, const ByteBounds& b) {
  IVec low = _mm256_packs_epi32(i[0], i[1]), high = _mm256_packs_epi32(i[2], i[3]);
  if (b.shifts) {
    low = _mm256_adds_epi16(low, b.zero_point);
    high = _mm256_adds_epi16(high, b.zero_point);
  }
  // Both halves hold four bytes of each vector.
  const IVec order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  IVec bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
  if (b.bounds) bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, b.low), b.high);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bytes);
}

inline IVec RoundToInt(Vec v) { return _mm256_cvtps_epi32(Round(v)); }

inline Vec FloatFromHalf(const Float16* p) { return _mm256_cvtph_ps(Load128(p)); }
inline void StoreHalf(Float16* p, Vec v) {
  Store128(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace
}  // namespace bd::BD_ISA
