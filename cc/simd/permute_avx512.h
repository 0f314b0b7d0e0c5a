// Permutations on AVX-512. Included by cc/simd/permute.h only.
#pragma once

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

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

}  // namespace
}  // namespace bd::BD_ISA
