// What the numbers of an integer tensor stand for.
#pragma once

#include <cstdint>

#include "cc/base/data_type.h"

namespace bd {

// A stored number q stands for scale * (q - zero_point). Tensors of floats stand for themselves,
// which is what the defaults say. A real number x is stored as
//
//   q = saturate(round(x / scale) + zero_point), ties to even; NaN as zero_point
//
// so that zero is exact: channel tails and padding hold zero_point.
struct Quantization {
  float scale = 1.f;
  int32_t zero_point = 0;

  bool operator==(const Quantization& other) const {
    return scale == other.scale && zero_point == other.zero_point;
  }
  bool operator!=(const Quantization& other) const { return !(*this == other); }
};

// How an element is stored, and what it stands for.
struct ElementType {
  DataType dtype = DataType::f32;
  Quantization quantization;

  bool operator==(const ElementType& other) const {
    return dtype == other.dtype && quantization == other.quantization;
  }
  bool operator!=(const ElementType& other) const { return !(*this == other); }
};

}  // namespace bd
