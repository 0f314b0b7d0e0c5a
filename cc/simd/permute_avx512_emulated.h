// The permutations of permute_avx512.h, lane by lane. Included by cc/simd/permute.h only.
#pragma once

#include "cc/simd/vec.h"

namespace bd::BD_ISA {
namespace {

// Number is a signed integer as wide as a lane.
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

}  // namespace
}  // namespace bd::BD_ISA
