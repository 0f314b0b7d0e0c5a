// BlockdnnRnnGrad.
#include "cc/core/rnn/rnn_grad.h"

#include "cc/tensorflow/ops/products/rnn_attrs.h"

namespace bd {
namespace {

struct RnnGrad : RnnAttrs {
  using Plan = RnnGradPlan;
  static constexpr int kNumWeights = 1;
  static constexpr std::array<int, 1> kFixedInputs = {kRecurrent};
  // Inputs after those of BlockdnnRnn.
  enum { kWorkspace, kDstGrad, kStateGrad, kCellGrad };
  enum { kSums, kRecurrentSums, kBefore, kReset, kFirstState, kFirstCell };

  static OpSignature Signature() {
    std::vector<const char*> inputs = Inputs();
    inputs.insert(inputs.end(),
                  {"workspace: T", "dst_grad: T", "state_grad: T", "cell_state_grad: T"});
    return {"BlockdnnRnnGrad",
            inputs,
            {"sums_grad: T", "recurrent_sums_grad: T", "before: T", "reset: T",
             "initial_state_grad: T", "initial_cell_grad: T"},
            R"doc(
The way back through BlockdnnRnn with training, but for products over all steps.

workspace: of that op, whose inputs and attributes these are.
sums_grad: as src, rows of gates * units: by src * kernel + bias.
recurrent_sums_grad: the same by the state times recurrent_kernel, where that is another:
  gru with reset_after; otherwise empty.
before: as src, rows of units: the state that met recurrent_kernel at that step.
reset: gru without reset_after: the same for its third gate; otherwise empty.
initial_cell_grad: of lstm; otherwise empty.
)doc"};
  }

  bool has_reset() const { return is_gru() && !desc.reset_after; }

  bool keeps_batch() const { return false; }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    RnnDesc d;
    TF_RETURN_IF_ERROR(Sizes(in, &d));
    const auto add_rows = [&](bool wanted, int64_t width) {
      PartialTensorShape& shape = dst->emplace_back();
      if (!wanted) return BuildShape({0}, &shape);
      return time_major ? BuildShape({d.steps, d.batch, width}, &shape)
                        : BuildShape({d.batch, d.steps, width}, &shape);
    };
    const int64_t columns = d.units == kUnknown ? kUnknown : desc.gates() * d.units;
    TF_RETURN_IF_ERROR(add_rows(true, columns));
    TF_RETURN_IF_ERROR(add_rows(two_biases(), columns));
    TF_RETURN_IF_ERROR(add_rows(true, d.units));
    TF_RETURN_IF_ERROR(add_rows(has_reset(), d.units));
    PartialTensorShape of_dst, state;
    TF_RETURN_IF_ERROR(DstShape(d, &of_dst));
    TF_RETURN_IF_ERROR(BuildShape({d.batch, d.units}, &state));
    dst->push_back(state);
    dst->push_back(is_lstm() ? state : PartialTensorShape({0}));
    const int first = num_inputs();
    if (in[first + kDstGrad].IsCompatibleWith(of_dst) &&
        in[first + kStateGrad].IsCompatibleWith(state) &&
        (!is_lstm() || in[first + kCellGrad].IsCompatibleWith(state))) {
      return absl::OkStatus();
    }
    return Invalid("the derivatives must have the shapes of the outputs: dst ",
                   of_dst.DebugString(), ", states ", state.DebugString());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    RnnDesc& d = plan->forward.desc;
    TF_RETURN_IF_ERROR(Sizes(in, &d));
    if (d.batch == 0) return absl::OkStatus();
    if (d.steps > 0) {
      TF_RETURN_IF_ERROR(FromCore(MakeRnnGradPlan(RnnDesc(d), ActiveIsa(), site.threads, plan)));
    }
    const size_t workspace = in[num_inputs() + kWorkspace].num_elements() * sizeof(float);
    if (workspace == plan->forward.workspace_bytes) return absl::OkStatus();
    return Invalid("workspace has ", workspace, " bytes, not the ", plan->forward.workspace_bytes,
                   " of a training run of these sizes");
  }

  WeightsUse weights_use(int) const { return {0, WeightsChange::kOften}; }
  PackRequest Weights(const Plan& plan, int, OpKernelContext*, WeightsPacker pack) const {
    return {{"panels", dtype, 0, "rnn_grad"},
            {plan.forward.desc.units, desc.gates()},
            plan.packed_floats * static_cast<int64_t>(sizeof(float)),
            0,
            pack};
  }
  void Pack(const Plan& plan, int, const void* plain, OpKernelContext*, void* packed,
            ThreadPool& pool) const {
    PackRnnGradWeights(plan, static_cast<const float*>(plain), static_cast<float*>(packed), pool);
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    const RnnDesc& d = plan.forward.desc;
    const int first = num_inputs();
    RnnGradBuffers b;
    b.d_hn = m.in<float>(first + kStateGrad);
    b.d_h0 = m.out<float>(kFirstState);
    if (is_lstm()) {
      b.d_cn = m.in<float>(first + kCellGrad);
      b.d_c0 = m.out<float>(kFirstCell);
    }
    if (d.steps == 0) {  // states are handed on
      std::copy_n(b.d_hn, d.batch * d.units, b.d_h0);
      if (is_lstm()) std::copy_n(b.d_cn, d.batch * d.units, b.d_c0);
      return;
    }
    const auto rows = [&](int output, bool wanted, int64_t width) {
      return SequenceOf(d, wanted ? m.out<float>(output) : nullptr, width);
    };
    b.d_sums = rows(kSums, true, desc.gates() * d.units);
    b.d_recurrent = rows(kRecurrentSums, two_biases(), desc.gates() * d.units);
    b.before = rows(kBefore, true, d.units);
    b.reset = rows(kReset, has_reset(), d.units);
    b.packed = m.weights[0].as<float>();
    b.workspace = m.in<void>(first + kWorkspace);
    b.masked = num_masks > 0 || num_lengths > 0;
    b.d_dst = DstSequenceOf(d, m.in<float>(first + kDstGrad));
    b.scratch = m.scratch;
    RunRnnGrad(plan, b, pool);
  }
};

const OpRegistration<RnnGrad> rnn_grad_registration;

}  // namespace
}  // namespace bd
