// BlockdnnRnn.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "cc/base/verbose.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/op_kernels/products/rnn_op.h"
#include "cc/tensorflow/weights/weights_cache.h"

namespace bd {
namespace {

class RnnOp : public PoolOpKernel {
 public:
  explicit RnnOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    weights_.emplace(0, attrs_.constant_weights ? WeightsChange::kNever
                        : attrs_.training       ? WeightsChange::kOften
                                                : WeightsChange::kSeldom);
  }

 protected:
  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>*) override {
    RnnSizes sizes;
    OP_REQUIRES_OK(ctx, ReadRnnSizes(attrs_, InputShapes(ctx, 0), &sizes));
    RnnPlan plan;
    std::array<Tensor*, 4> outputs;
    if (sizes.steps == 0) {
      OP_REQUIRES_OK(ctx, Allocate(ctx, plan, sizes, &outputs));
      return KeepStates(ctx, outputs);
    }
    OP_REQUIRES_OK(ctx, FromCore(MakeRnnPlan(DescribeRnn(attrs_, sizes), ActiveIsa(),
                                             pool().num_threads(), &plan)));
    OP_REQUIRES_OK(ctx, Allocate(ctx, plan, sizes, &outputs));
    if (sizes.batch == 0) return;
    WeightsLease weights;
    OP_REQUIRES_OK(ctx, Pack(ctx, plan, &weights));
    RnnBuffers b;
    b.packed = weights.data;
    Tensor scratch;
    OP_REQUIRES_OK(ctx, TakeMemory(ctx, plan.scratch_bytes(), &scratch));
    b.scratch = scratch.data();
    SetInputs(ctx, plan.desc, sizes, &b);
    b.dst = DstSequenceOf(attrs_, sizes, static_cast<float*>(outputs[0]->data()));
    b.hn = static_cast<float*>(outputs[1]->data());
    if (attrs_.cell == "lstm") b.cn = static_cast<float*>(outputs[2]->data());
    b.workspace = outputs[3]->data();
    RunLogged(
        [&] {
          return absl::StrCat("rnn ", IsaName(ActiveIsa()), " ", attrs_.cell, " batch ",
                              sizes.batch, " steps ", sizes.steps, " inputs ", sizes.inputs,
                              " units ", sizes.units, attrs_.go_backwards ? " backwards" : "",
                              weights.kept == nullptr ? " packs weights" : "");
        },
        [&] { RunRnn(plan, b, pool()); });
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }

 private:
  Status Allocate(OpKernelContext* ctx, const RnnPlan& plan, const RnnSizes& sizes,
                  std::array<Tensor*, 4>* outputs) const {
    TensorShape dst;
    PartialTensorShape of_sizes;
    TF_RETURN_IF_ERROR(RnnDstShape(attrs_, sizes, &of_sizes));
    TF_RETURN_IF_ERROR(ToFullShape(of_sizes, &dst));
    const TensorShape state({sizes.batch, sizes.units}), none({0});
    // The workspace begins on a cache line: TensorFlow aligns tensors to 64 bytes.
    const int64_t kept = static_cast<int64_t>(plan.workspace_bytes / sizeof(float));
    const TensorShape shapes[] = {dst, state, attrs_.cell == "lstm" ? state : none,
                                  attrs_.training && sizes.batch > 0 ? TensorShape({kept}) : none};
    for (int i = 0; i < 4; ++i) {
      TF_RETURN_IF_ERROR(ctx->allocate_output(i, shapes[i], &(*outputs)[i]));
    }
    PreferHugePages((*outputs)[3]->data(), (*outputs)[3]->TotalBytes());
    return absl::OkStatus();
  }

  // After no steps the states are as before, and the last output is zero.
  void KeepStates(OpKernelContext* ctx, const std::array<Tensor*, 4>& outputs) const {
    for (int i = 0; i < 3; ++i) {
      float* const data = static_cast<float*>(outputs[i]->data());
      const int64_t count = outputs[i]->NumElements();
      if (i > 0 && i <= attrs_.num_states) {
        std::copy_n(InputData(ctx, attrs_.first_state() + i - 1), count, data);
      } else {
        std::fill_n(data, count, 0.f);
      }
    }
  }

  Status Pack(OpKernelContext* ctx, const RnnPlan& plan, WeightsLease* lease) {
    const float* const recurrent = InputData(ctx, RnnAttrs::kRecurrent);
    const auto pack = [&](const void* kernel, void* packed) {
      PackRnnWeights(plan, static_cast<const float*>(kernel), recurrent,
                     static_cast<float*>(packed), pool());
    };
    const RnnDesc& d = plan.desc;
    const PackRequest request = {{"panels", DataType::f32, plan.w.unscale >= 0, "rnn"},
                                 {d.inputs, d.units, d.gates()},
                                 plan.packed_floats * static_cast<int64_t>(sizeof(float)),
                                 0,
                                 pack,
                                 &ctx->input(RnnAttrs::kRecurrent)};
    return weights_->Take(ctx, RnnAttrs::kKernel, request, lease);
  }

  void SetInputs(OpKernelContext* ctx, const RnnDesc& d, const RnnSizes& sizes,
                 RnnBuffers* b) const {
    const bool tm = attrs_.time_major;
    b->src = SequenceOf(attrs_, sizes, InputData(ctx, RnnAttrs::kSrc), d.inputs);
    if (attrs_.has_bias) b->bias = InputData(ctx, RnnAttrs::kBias);
    if (attrs_.num_states > 0) b->h0 = InputData(ctx, attrs_.first_state());
    if (attrs_.num_states > 1) b->c0 = InputData(ctx, attrs_.first_state() + 1);
    if (attrs_.has_mask) {
      b->mask.data = static_cast<const bool*>(ctx->input(attrs_.mask()).data());
      b->mask.batch_stride = tm ? 1 : d.steps;
      b->mask.step_stride = tm ? d.batch : 1;
    }
    if (attrs_.has_lengths) {
      b->lengths = static_cast<const int32_t*>(ctx->input(attrs_.lengths()).data());
    }
  }

  RnnAttrs attrs_;
  std::optional<WeightsCache> weights_;
};

Status PlanRnnMemory(const NodeAttrs& node, const std::vector<PartialTensorShape>& inputs,
                     int threads, MemoryPlan* memory) {
  RnnAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  RnnSizes sizes;
  TF_RETURN_IF_ERROR(ReadRnnSizes(attrs, inputs, &sizes));
  if (sizes.batch == 0 || sizes.steps == 0) return absl::OkStatus();
  RnnPlan plan;
  TF_RETURN_IF_ERROR(FromCore(MakeRnnPlan(DescribeRnn(attrs, sizes), ActiveIsa(), threads, &plan)));
  memory->scratch = plan.scratch;
  memory->packed_weights = plan.packed_floats * static_cast<int64_t>(sizeof(float));
  memory->blocking = {
      {"units", plan.block}, {"rows", plan.part}, {"steps_at_once", plan.steps_at_once}};
  return absl::OkStatus();
}

const MemoryPlanRow row("BlockdnnRnn", PlanRnnMemory);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnRnn").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), RnnOp);

}  // namespace
}  // namespace bd
