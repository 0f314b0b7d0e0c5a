// Attributes and shapes of ops on blocked activations and rows of channels: BlockdnnBatchNorm,
// BlockdnnBatchNormGrad, BlockdnnLayerNormGrad.
#ifndef CC_TENSORFLOW_ATTRS_PIXELS_NORMALIZATION_ATTRS_H_
#define CC_TENSORFLOW_ATTRS_PIXELS_NORMALIZATION_ATTRS_H_

#include <vector>

#include "cc/tensorflow/attrs/shape_fns.h"

namespace bd {

struct NormalizationAttrs {
  int64_t channels = 0;
  float epsilon = 0.f;

  template <typename Context>
  Status Read(Context* c) {
    TF_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
    TF_RETURN_IF_ERROR(c->GetAttr("epsilon", &epsilon));
    return epsilon >= 0 ? absl::OkStatus() : Invalid("epsilon must not be negative: ", epsilon);
  }

  // Inputs before `first_row` are blocked activations of one shape, the others rows of channels.
  Status CheckShapes(const std::vector<PartialTensorShape>& inputs, int first_row) const {
    const int64_t blocks = channels / 16 + (channels % 16 != 0);
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const PartialTensorShape& shape = inputs[i];
      if (shape.unknown_rank()) continue;
      if (i >= first_row) {
        if (shape.IsCompatibleWith(PartialTensorShape({channels}))) continue;
        return Invalid("input ", i, " must be [", channels, "]; got ", shape.DebugString());
      }
      const int last = shape.dims() - 1;
      const auto is = [&](int axis, int64_t size) {
        return shape.dim_size(axis) < 0 || shape.dim_size(axis) == size;
      };
      if (last < 3 || last > 5 || !is(1, blocks) || !is(last, 16)) {
        return Invalid("input ", i, " must be blocked, [N, ", blocks, ", .., 16]; got ",
                       shape.DebugString());
      }
      if (!shape.IsCompatibleWith(inputs[0])) {
        return Invalid("inputs 0 and ", i, " differ: ", inputs[0].DebugString(), " and ",
                       shape.DebugString());
      }
    }
    return absl::OkStatus();
  }
};

// Three results: as the first input, and two rows of channels.
template <int kFirstRow>
Status NormalizationShapes(tensorflow::shape_inference::InferenceContext* c) {
  NormalizationAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(c));
  TF_RETURN_IF_ERROR(attrs.CheckShapes(InputShapes(c, 0), kFirstRow));
  c->set_output(0, c->input(0));
  for (int i : {1, 2}) c->set_output(i, c->Vector(attrs.channels));
  return absl::OkStatus();
}

}  // namespace bd

#endif  // CC_TENSORFLOW_ATTRS_PIXELS_NORMALIZATION_ATTRS_H_
