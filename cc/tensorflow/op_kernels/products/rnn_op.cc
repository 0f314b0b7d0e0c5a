#include "cc/tensorflow/op_kernels/products/rnn_op.h"

namespace bd {
namespace {

RnnActivation ActivationOf(const std::string& name) {
  if (name == "tanh") return RnnActivation::kTanh;
  if (name == "sigmoid") return RnnActivation::kLogistic;
  if (name == "relu") return RnnActivation::kRelu;
  if (name == "hard_sigmoid") return RnnActivation::kHardLogistic;
  return RnnActivation::kLinear;
}

}  // namespace

RnnDesc DescribeRnn(const RnnAttrs& attrs, const RnnSizes& sizes) {
  RnnDesc d;
  d.cell = attrs.cell == "lstm"  ? RnnCell::kLstm
           : attrs.cell == "gru" ? RnnCell::kGru
                                 : RnnCell::kVanilla;
  d.activation = ActivationOf(attrs.activation);
  d.recurrent_activation = ActivationOf(attrs.recurrent_activation);
  d.reset_after = attrs.reset_after;
  d.backwards = attrs.go_backwards;
  d.reorders = attrs.restores_order;
  d.sequences = attrs.return_sequences;
  d.zeros_masked = attrs.zero_output_for_mask;
  d.training = attrs.training;
  d.direct = attrs.direct;
  d.batch = sizes.batch;
  d.steps = sizes.steps;
  d.inputs = sizes.inputs;
  d.units = sizes.units;
  return d;
}

Status TakeMemory(OpKernelContext* ctx, size_t bytes, Tensor* memory) {
  TF_RETURN_IF_ERROR(
      ctx->allocate_temp(tensorflow::DT_UINT8, TensorShape({static_cast<int64_t>(bytes)}), memory));
  PreferHugePages(memory->data(), bytes);
  return absl::OkStatus();
}

}  // namespace bd
