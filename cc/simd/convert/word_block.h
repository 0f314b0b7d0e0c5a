// The 16 bytes of a pixel as unsigned words, which add up exactly to 65535.
//
//   WordBlock           16 words
//   SetWordBlock(x)     x in all; WidenedBytes(p): 16 bytes in memory
//   LoadWordBlock(p), StoreWordBlock(p, x)   words in memory
//   StoreAsBytes(p, x)  words of up to 255 as bytes
//   AddWords, SubWords, ShiftWordsLeft<k>   modulo 2^16; AndWords
//   HighProducts(x, y)  x y / 2^16; SignWords(x): x / 2^15; both rounded down
#pragma once

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

#if defined(__AVX2__)
using WordBlock = __m256i;
inline WordBlock SetWordBlock(uint16_t x) { return _mm256_set1_epi16(static_cast<int16_t>(x)); }
inline WordBlock WidenedBytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline WordBlock LoadWordBlock(const uint16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline void StoreWordBlock(uint16_t* p, WordBlock x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
}
inline void StoreAsBytes(uint8_t* p, WordBlock x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}
inline WordBlock AddWords(WordBlock x, WordBlock y) { return _mm256_add_epi16(x, y); }
inline WordBlock SubWords(WordBlock x, WordBlock y) { return _mm256_sub_epi16(x, y); }
inline WordBlock AndWords(WordBlock x, WordBlock y) { return _mm256_and_si256(x, y); }
template <int kBits>
inline WordBlock ShiftWordsLeft(WordBlock x) {
  return _mm256_slli_epi16(x, kBits);
}
inline WordBlock HighProducts(WordBlock x, WordBlock y) { return _mm256_mulhi_epu16(x, y); }
inline WordBlock SignWords(WordBlock x) { return _mm256_srli_epi16(x, 15); }
#else
struct WordBlock {
  __m128i low, high;
};
inline WordBlock SetWordBlock(uint16_t x) {
  const __m128i words = _mm_set1_epi16(static_cast<int16_t>(x));
  return {words, words};
}
inline WordBlock WidenedBytes(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm_unpacklo_epi8(bytes, _mm_setzero_si128()),
          _mm_unpackhi_epi8(bytes, _mm_setzero_si128())};
}
inline WordBlock LoadWordBlock(const uint16_t* p) {
  const __m128i* const words = reinterpret_cast<const __m128i*>(p);
  return {_mm_loadu_si128(words), _mm_loadu_si128(words + 1)};
}
inline void StoreWordBlock(uint16_t* p, WordBlock x) {
  __m128i* const words = reinterpret_cast<__m128i*>(p);
  _mm_storeu_si128(words, x.low);
  _mm_storeu_si128(words + 1, x.high);
}
inline void StoreAsBytes(uint8_t* p, WordBlock x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(x.low, x.high));
}
inline WordBlock AddWords(WordBlock x, WordBlock y) {
  return {_mm_add_epi16(x.low, y.low), _mm_add_epi16(x.high, y.high)};
}
inline WordBlock SubWords(WordBlock x, WordBlock y) {
  return {_mm_sub_epi16(x.low, y.low), _mm_sub_epi16(x.high, y.high)};
}
inline WordBlock AndWords(WordBlock x, WordBlock y) {
  return {_mm_and_si128(x.low, y.low), _mm_and_si128(x.high, y.high)};
}
template <int kBits>
inline WordBlock ShiftWordsLeft(WordBlock x) {
  return {_mm_slli_epi16(x.low, kBits), _mm_slli_epi16(x.high, kBits)};
}
inline WordBlock HighProducts(WordBlock x, WordBlock y) {
  return {_mm_mulhi_epu16(x.low, y.low), _mm_mulhi_epu16(x.high, y.high)};
}
inline WordBlock SignWords(WordBlock x) {
  return {_mm_srli_epi16(x.low, 15), _mm_srli_epi16(x.high, 15)};
}
#endif

}  // namespace
}  // namespace bd::BD_ISA
