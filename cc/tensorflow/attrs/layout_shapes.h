// Shapes of TensorFlow tensors against layouts: one set of rules for every layout,
// for partly known shapes as for full ones.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cc/layout/layout.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace bd {

using tensorflow::PartialTensorShape;

constexpr int64_t kUnknown = -1;  // a dimension that is not known yet

inline bool Differs(int64_t dim, int64_t expected) {
  return dim != kUnknown && expected != kUnknown && dim != expected;
}

// The shape of these dims, of which some may be kUnknown; an error where no memory could hold a
// tensor of it. TensorFlow's constructors end the process there.
absl::Status BuildShape(absl::Span<const int64_t> dims, PartialTensorShape* shape);

// The shape of a dense tensor in `layout`; dims may be kUnknown.
absl::Status ShapeOf(Layout layout, const Dims& dims, PartialTensorShape* shape);

// Checks `shape` against the layout and the dims, of which some may be kUnknown,
// and sets those that the shape tells. `name` is what errors call the tensor.
absl::Status ReadDims(const char* name, const PartialTensorShape& shape, Layout layout, Dims* dims);

}  // namespace bd
