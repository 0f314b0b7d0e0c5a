// The place of an element in a view, as references and tests look for it.
#pragma once

#include <cstdint>

#include "cc/layout/tensor_view.h"

namespace bd {

// In elements from the first one of the tensor; `pixel` counts as in TensorView.
inline int64_t ElementOf(const TensorView& view, int64_t n, int64_t channel, int64_t pixel) {
  return view.offset(n, channel / view.lanes(), pixel) + channel % view.lanes();
}

}  // namespace bd
