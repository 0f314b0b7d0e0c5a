// Words of 16 bits, made of the bytes of a pixel.
//
//   WordBlock               kWordLanes words: 16, generic 8
//   SetWordBlock(x)         x in all
//   WidenedBytes(p)         kWordLanes bytes in memory
//   StoreWordBlock(p, x)    to memory
//   AddWords, SubWords, ShiftWordsLeft<k>   modulo 2^16
#pragma once

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(__AVX2__)
using WordBlock = __m256i;
inline WordBlock SetWordBlock(int16_t x) { return _mm256_set1_epi16(x); }
inline WordBlock WidenedBytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline void StoreWordBlock(uint16_t* p, WordBlock x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
}
inline WordBlock AddWords(WordBlock x, WordBlock y) { return _mm256_add_epi16(x, y); }
inline WordBlock SubWords(WordBlock x, WordBlock y) { return _mm256_sub_epi16(x, y); }
template <int kBits>
inline WordBlock ShiftWordsLeft(WordBlock x) {
  return _mm256_slli_epi16(x, kBits);
}
#else
using WordBlock = __m128i;
inline WordBlock SetWordBlock(int16_t x) { return _mm_set1_epi16(x); }
inline WordBlock WidenedBytes(const uint8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
}
inline void StoreWordBlock(uint16_t* p, WordBlock x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), x);
}
inline WordBlock AddWords(WordBlock x, WordBlock y) { return _mm_add_epi16(x, y); }
inline WordBlock SubWords(WordBlock x, WordBlock y) { return _mm_sub_epi16(x, y); }
template <int kBits>
inline WordBlock ShiftWordsLeft(WordBlock x) {
  return _mm_slli_epi16(x, kBits);
}
#endif
constexpr int kWordLanes = sizeof(WordBlock) / sizeof(uint16_t);

}  // namespace
}  // namespace bd::BD_ISA
