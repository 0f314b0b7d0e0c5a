// Shapes of the ops that work on pixels, whatever their places: blocked activations of 1 to 3
// spatial dimensions, or any axes with the channels last.
#pragma once

#include <cmath>
#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"
#include "cc/tensorflow/op_base/tails.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {

// Ops that normalise channels.
struct NormalizationAttrs : OpDefaults {
  int64_t channels = 0;
  float epsilon = 0.f;

  Status Check() const {
    if (epsilon >= 0 && (IsZero(epsilon) || !std::signbit(epsilon))) return absl::OkStatus();
    return Invalid("epsilon must not be negative; got ", epsilon);
  }
};

// Whether a tensor in `layout` has no axes of a plane: nhwc stands for any.
inline bool IsRows(Layout layout, const PartialTensorShape& src) {
  return layout == Layout::nhwc && (src.unknown_rank() || src.dims() != 4);
}

// Checks src and sets what is known of its plane; all rows are one plane.
Status PixelPlane(Layout layout, const ChannelPart& part, int64_t channels,
                  const PartialTensorShape& src, Plane* plane);

// Inputs before `first_row` must be blocked activations of one shape, the others rows of channels.
// The results are as the first input, and two rows of channels.
Status NormalizationShapes(int64_t channels, int first_row,
                           const std::vector<PartialTensorShape>& in,
                           std::vector<PartialTensorShape>* dst);

// Pixels of an image of a blocked activation.
inline int64_t PixelsOf(const PartialTensorShape& blocked) {
  return NumElements(blocked, 2, blocked.dims() - 1);
}

// Inputs [0, activations) and the first output of those ops.
BlockedTensors BlockedActivations(int64_t channels, int activations,
                                  const std::vector<PartialTensorShape>& in);

}  // namespace bd
