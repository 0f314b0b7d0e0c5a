#include "cc/tensorflow/attrs/products/rnn_attrs.h"
#include "tensorflow/core/framework/op.h"

using tensorflow::shape_inference::InferenceContext;

namespace {

absl::Status RnnShapes(InferenceContext* c) {
  bd::RnnAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(c));
  bd::RnnSizes sizes;
  TF_RETURN_IF_ERROR(bd::ReadRnnSizes(attrs, bd::InputShapes(c, 0), &sizes));
  bd::PartialTensorShape dst;
  TF_RETURN_IF_ERROR(bd::RnnDstShape(attrs, sizes, &dst));
  TF_RETURN_IF_ERROR(bd::SetOutputShape(c, dst));
  const auto dim = [&](int64_t size) {
    return size == bd::kUnknown ? c->UnknownDim() : c->MakeDim(size);
  };
  const auto state = c->Matrix(dim(sizes.batch), dim(sizes.units));
  c->set_output(1, state);
  c->set_output(2, attrs.cell == "lstm" ? state : c->Vector(0));
  c->set_output(3, attrs.training ? c->Vector(c->UnknownDim()) : c->Vector(0));
  return absl::OkStatus();
}

absl::Status RnnGradShapes(InferenceContext* c) {
  bd::RnnAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(c));
  std::vector<bd::PartialTensorShape> inputs = bd::InputShapes(c, 0);
  inputs.resize(attrs.num_inputs());
  bd::RnnSizes sizes;
  TF_RETURN_IF_ERROR(bd::ReadRnnSizes(attrs, inputs, &sizes));
  const auto dim = [&](int64_t size) {
    return size == bd::kUnknown ? c->UnknownDim() : c->MakeDim(size);
  };
  const auto rows = [&](bool wanted, int64_t width) {
    if (!wanted) return c->Vector(0);
    return attrs.time_major ? c->MakeShape({dim(sizes.steps), dim(sizes.batch), dim(width)})
                            : c->MakeShape({dim(sizes.batch), dim(sizes.steps), dim(width)});
  };
  const int64_t columns = sizes.units == bd::kUnknown ? bd::kUnknown : attrs.gates() * sizes.units;
  const auto state = c->Matrix(dim(sizes.batch), dim(sizes.units));
  c->set_output(0, rows(true, columns));
  c->set_output(1, rows(attrs.two_biases(), columns));
  c->set_output(2, rows(true, sizes.units));
  c->set_output(3, rows(attrs.cell == "gru" && !attrs.reset_after, sizes.units));
  c->set_output(4, state);
  c->set_output(5, attrs.cell == "lstm" ? state : c->Vector(0));
  return absl::OkStatus();
}

}  // namespace

// Attributes of both ops.
#define BD_RNN_ATTRS                                                                       \
  Attr("T: {float} = DT_FLOAT")                                                            \
      .Attr("num_biases: int >= 0")                                                        \
      .Attr("num_states: int >= 0")                                                        \
      .Attr("num_masks: int >= 0")                                                         \
      .Attr("num_lengths: int >= 0")                                                       \
      .Attr("cell: {'vanilla', 'lstm', 'gru'}")                                            \
      .Attr("activation: {'tanh', 'relu', 'sigmoid', 'linear'} = 'tanh'")                  \
      .Attr(                                                                               \
          "recurrent_activation: {'sigmoid', 'hard_sigmoid', 'tanh', 'relu', 'linear'} = " \
          "'sigmoid'")                                                                     \
      .Attr("reset_after: bool = true")                                                    \
      .Attr("go_backwards: bool = false")                                                  \
      .Attr("restore_order: bool = false")                                                 \
      .Attr("return_sequences: bool = false")                                              \
      .Attr("zero_output_for_mask: bool = false")                                          \
      .Attr("time_major: bool = false")                                                    \
      .Attr("training: bool = false")                                                      \
      .Attr("algorithm: {'auto', 'direct'} = 'auto'")                                      \
      .Attr("constant_weights: bool = false")

REGISTER_OP("BlockdnnRnn")
    .Input("src: T")
    .Input("kernel: T")
    .Input("recurrent_kernel: T")
    .Input("bias: num_biases * T")
    .Input("initial_state: num_states * T")
    .Input("mask: num_masks * bool")
    .Input("lengths: num_lengths * int32")
    .Output("dst: T")
    .Output("state: T")
    .Output("cell_state: T")
    .Output("workspace: T")
    .BD_RNN_ATTRS.SetShapeFn(RnnShapes)
    .Doc(R"doc(
A recurrent layer over a whole sequence, with weights that are packed once.

src: [batch, steps, inputs].
kernel: [inputs, gates * units]; gates of lstm i, f, c, o, of gru z, r, h.
recurrent_kernel: [units, gates * units].
bias: [gates * units], or [2, gates * units] for gru with reset_after; or none.
initial_state: [batch, units], and the cell's for lstm; none: zero.
mask: [batch, steps]; false: the step leaves the state as it is.
lengths: [batch]; steps from there on are masked.
dst: [batch, steps, units], or [batch, units] of the last step.
state: [batch, units] after all steps.
cell_state: the same of lstm's cell; otherwise empty.
workspace: what the gradient needs; empty unless training.
go_backwards: from the last step to the first; dst is in the order of computation.
restore_order: with go_backwards: dst is in the order of src.
zero_output_for_mask: outputs of masked steps are zero, not those of the step before.
time_major: steps come before batch in src, dst and mask.
algorithm: direct sums products as they are; auto multiplies several rows in pairs on a
  CPU that gains from it.
constant_weights: kernel and recurrent_kernel never change, so their packed form may be kept for
  the life of the op; otherwise it is until they have changed.
)doc");

REGISTER_OP("BlockdnnRnnGrad")
    .Input("src: T")
    .Input("kernel: T")
    .Input("recurrent_kernel: T")
    .Input("bias: num_biases * T")
    .Input("initial_state: num_states * T")
    .Input("mask: num_masks * bool")
    .Input("lengths: num_lengths * int32")
    .Input("workspace: T")
    .Input("dst_grad: T")
    .Input("state_grad: T")
    .Input("cell_state_grad: T")
    .Output("sums_grad: T")
    .Output("recurrent_sums_grad: T")
    .Output("before: T")
    .Output("reset: T")
    .Output("initial_state_grad: T")
    .Output("initial_cell_grad: T")
    .BD_RNN_ATTRS.SetShapeFn(RnnGradShapes)
    .Doc(R"doc(
The way back through BlockdnnRnn with training, but for products over all steps.

workspace: of that op, whose inputs and attributes these are.
dst_grad: as dst; state_grad and cell_state_grad likewise.
sums_grad: as src, rows of gates * units: by src * kernel + bias.
recurrent_sums_grad: the same by the state times recurrent_kernel, where that is another:
  gru with reset_after; otherwise empty.
before: as src, rows of units: the state that met recurrent_kernel at that step.
reset: gru without reset_after: the same for its third gate; otherwise empty.
initial_state_grad: [batch, units].
initial_cell_grad: the same for lstm; otherwise empty.
)doc");
