// What BlockdnnRnn and BlockdnnRnnGrad share.
#pragma once

#include <vector>

#include "cc/core/rnn/rnn.h"
#include "cc/tensorflow/attrs/shape_fns.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {

struct RnnAttrs : OpDefaults {
  RnnDesc desc;  // but for the sizes
  bool time_major = false, constant_weights = false;
  int num_biases = 0, num_states = 0, num_masks = 0, num_lengths = 0;

  // Inputs: src, kernel, recurrent_kernel, then those that are there.
  enum { kSrc, kKernel, kRecurrent, kBias };
  int first_state() const { return kBias + num_biases; }
  int mask() const { return first_state() + num_states; }
  int lengths() const { return mask() + num_masks; }
  int num_inputs() const { return lengths() + num_lengths; }
  static std::vector<const char*> Inputs() {
    return {"src: T",
            "kernel: T",
            "recurrent_kernel: T",
            "bias: num_biases * T",
            "initial_state: num_states * T",
            "mask: num_masks * bool",
            "lengths: num_lengths * int32"};
  }

  bool is_lstm() const { return desc.cell == RnnCell::kLstm; }
  bool is_gru() const { return desc.cell == RnnCell::kGru; }
  bool two_biases() const { return is_gru() && desc.reset_after; }
  const char* cell_name() const { return is_lstm() ? "lstm" : is_gru() ? "gru" : "vanilla"; }

  void Visit(AttrVisitor& v);
  Status Check() const;

  // All inputs against each other; *sizes becomes desc with the sizes, kUnknown where the inputs
  // do not say.
  Status Sizes(const ShapeList& in, RnnDesc* sizes) const;
  // [batch, steps, units], or time before batch, or [batch, units].
  Status DstShape(const RnnDesc& sizes, PartialTensorShape* dst) const;

  // A tensor of rows of `width` for every step and sample, as src lies.
  template <typename T>
  RnnSequence<T> SequenceOf(const RnnDesc& d, T* data, int64_t width) const {
    if (time_major) return {data, width, d.batch * width};
    return {data, d.steps * width, width};
  }
  // As dst lies.
  template <typename T>
  RnnSequence<T> DstSequenceOf(const RnnDesc& d, T* data) const {
    if (!desc.sequences) return {data, d.units, 0};
    return SequenceOf(d, data, d.units);
  }
};

}  // namespace bd
