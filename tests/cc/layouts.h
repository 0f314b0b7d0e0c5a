// What tests of layouts loop over, tails of blocked tensors, and windows of three dimensions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cc/layout/layout.h"
#include "cc/layout/tensor_view.h"
#include "cc/layout/window.h"

namespace bd {

inline std::vector<Layout> AllLayouts() {
#define BD_LAYOUT_VALUE(name) Layout::name,
  return {BD_LAYOUTS(BD_LAYOUT_VALUE)};
#undef BD_LAYOUT_VALUE
}

// Dims that the layout can have: blocks that are whole, cut and single.
inline Dims TestDims(Layout layout, int seed = 0) {
  constexpr int64_t kSizes[][kMaxRank] = {
      {2, 17, 3, 4, 2, 3}, {1, 1, 1, 1, 1, 1}, {33, 8, 2, 1, 3, 2}, {3, 16, 20, 2, 1, 2}};
  return Dims(kSizes[seed % 4], PartsOf(layout).rank);
}

// Calls fn(index) for all indices below `counts`, the last one fastest.
inline void ForIndices(const Dims& counts, const std::function<void(const Dims&)>& fn) {
  for (int64_t count : counts) {
    if (count == 0) return;
  }
  Dims index = Dims::Filled(counts.size(), 0);
  for (;;) {
    fn(index);
    int d = counts.size() - 1;
    for (; d >= 0 && ++index[d] == counts[d]; --d) index[d] = 0;
    if (d < 0) return;
  }
}

// Whether element i of the memory that the view reaches lies between its images.
inline bool IsBeside(const TensorView& view, int64_t i) {
  return i % view.image_stride() >= view.image_elements();
}

// Whether it lies after the last channel of an image.
inline bool IsTail(const TensorView& view, int64_t i) {
  const int64_t block = i % view.image_stride() / view.block_stride();
  return !IsBeside(view, i) && i % view.lanes() >= view.lanes_of(block);
}

// As ResolveWindow for all three; the error of the first that has one.
inline std::string ResolveWindows(Padding padding, Windows* windows) {
  for (Window1d* window : {&windows->d, &windows->h, &windows->w}) {
    if (std::string error = ResolveWindow(padding, window); !error.empty()) return error;
  }
  return "";
}

// Zeros in the tails of data[view.elements()].
inline void ClearTails(const TensorView& view, float* data) {
  for (int64_t i = 0; i < view.elements(); ++i) {
    if (IsTail(view, i)) data[i] = 0.f;
  }
}

}  // namespace bd
