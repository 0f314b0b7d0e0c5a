// Permutations of the lanes of a vector by numbers in memory; not on generic.
//
// Three kinds of lanes, of 1, 2 and 4 bytes: ByteLanes (128 bits), WordLanes (avx512 only) and
// DwordLanes (a whole Vec). Of each:
//
//   Data, Control            a vector of bits; the numbers of its lanes, as registers hold them
//   Nothing()                all bits zero
//   LoadControl(p)           from sizeof(Data) bytes: one number a lane, as wide as the lane
//   Take(acc, control, src)  acc with lanes replaced: lane i becomes lane control[i] of the vector
//                            at src, unless the sign bit of control[i] is set. Of ByteLanes acc
//                            is zero in all lanes that are replaced.
//   Store(dst, data)
#pragma once

#include "cc/simd/vec.h"

#if defined(__AVX2__)

namespace bd::BD_ISA {
namespace {

struct ByteLanes {
  using Data = __m128i;
  using Control = __m128i;
  static Data Nothing() { return _mm_setzero_si128(); }
  static Control LoadControl(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static Data Take(Data acc, Control control, const uint8_t* src) {
    return _mm_or_si128(acc, _mm_shuffle_epi8(LoadControl(src), control));
  }
  static void Store(uint8_t* dst, Data data) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), data);
  }
};

#if defined(BD_EMULATED)

// Those of AVX-512, lane by lane: Number is a signed integer as wide as a lane.
template <typename Number>
struct EmulatedLanes {
  static constexpr int kCount = 64 / sizeof(Number);
  struct Data {
    Number lane[kCount];
  };
  using Control = Data;
  static Data Nothing() { return {}; }
  static Control LoadControl(const uint8_t* p) {
    Control control;
    __builtin_memcpy(&control, p, sizeof(control));
    return control;
  }
  // As the instruction does: the whole vector at src is read, and of a number the low bits count.
  static Data Take(Data acc, Control control, const uint8_t* src) {
    const Data data = LoadControl(src);
    for (int i = 0; i < kCount; ++i) {
      if (control.lane[i] >= 0) acc.lane[i] = data.lane[control.lane[i] % kCount];
    }
    return acc;
  }
  static void Store(uint8_t* dst, Data data) { __builtin_memcpy(dst, &data, sizeof(data)); }
};

using WordLanes = EmulatedLanes<int16_t>;
using DwordLanes = EmulatedLanes<int32_t>;

#elif defined(BD_AVX512)

struct WideData {
  using Data = __m512i;
  static Data Nothing() { return _mm512_setzero_si512(); }
  static void Store(uint8_t* dst, Data data) { _mm512_storeu_si512(dst, data); }
};

struct WordLanes : WideData {
  struct Control {
    __m512i lanes;
    __mmask32 mask;
  };
  static Control LoadControl(const uint8_t* p) {
    const __m512i lanes = _mm512_loadu_si512(p);
    return {lanes, _knot_mask32(_mm512_movepi16_mask(lanes))};
  }
  static Data Take(Data acc, Control control, const uint8_t* src) {
    return _mm512_mask_permutexvar_epi16(acc, control.mask, control.lanes, _mm512_loadu_si512(src));
  }
};

struct DwordLanes : WideData {
  struct Control {
    __m512i lanes;
    __mmask16 mask;
  };
  static Control LoadControl(const uint8_t* p) {
    const __m512i lanes = _mm512_loadu_si512(p);
    return {lanes, _knot_mask16(_mm512_movepi32_mask(lanes))};
  }
  static Data Take(Data acc, Control control, const uint8_t* src) {
    return _mm512_mask_permutexvar_epi32(acc, control.mask, control.lanes, _mm512_loadu_si512(src));
  }
};

#else

// The blend takes the old lane where the sign bit is set.
struct DwordLanes {
  using Data = __m256;
  using Control = __m256i;
  static Data Nothing() { return _mm256_setzero_ps(); }
  static Control LoadControl(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Data Take(Data acc, Control control, const uint8_t* src) {
    const Data data = _mm256_loadu_ps(reinterpret_cast<const float*>(src));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(data, control), acc,
                            _mm256_castsi256_ps(control));
  }
  static void Store(uint8_t* dst, Data data) {
    _mm256_storeu_ps(reinterpret_cast<float*>(dst), data);
  }
};

#endif

}  // namespace
}  // namespace bd::BD_ISA

#endif  // __AVX2__
