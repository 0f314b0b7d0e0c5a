// What the ops on packed weights share: plan by input shapes, weights packed at first use, run.
// Their inputs are src, the weights and the operands of the chains.
#ifndef CC_TENSORFLOW_OP_KERNELS_CONV_CONV_OP_H_
#define CC_TENSORFLOW_OP_KERNELS_CONV_CONV_OP_H_

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cc/core/conv/conv.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/op_base/plan_cache.h"
#include "cc/tensorflow/weights/weights_cache.h"

namespace bd {

using InputShapeList = std::vector<PartialTensorShape>;

// What the attribute "algorithm" says.
ConvAlgorithm AlgorithmOf(const std::string& name);

// The convolution that the attributes make of full shapes, and the shape of its
// result, after all checks.
Status DescribeConv(const ConvAttrs& attrs, const PartialTensorShape& src,
                    const PartialTensorShape& weights, const InputShapeList& args, ConvDesc* desc,
                    PartialTensorShape* dst);

// Memory of one execution; src and dst start where the op's parts do.
struct ConvOpMemory {
  const float* src;
  const WeightsLease* weights;  // one for each input of weights
  const float* const* args;     // of all chains, one after the other
  float* dst;
  void* scratch;

  ConvBuffers buffers() const;
};

// What the verbose log says about a plan beside shapes, memory and chains.
struct ConvOpNote {
  Isa isa;
  std::string algorithm;
  Layout src_layout, dst_layout;
  std::string window;
};
std::string WindowNote(const ConvDesc& d);

// Base of what ConvOp and PlanConvMemory ask about an op:
//
//   static constexpr char kPrimitive[];  what the verbose log calls it
//   static constexpr int kNumWeights;    inputs of weights, from kWeights on
//   using Plan = ...;                    of cc/core, with scratch_bytes()
//
//   Status Read(Context* c);  the attributes
//   const PackedWeightsAttrs& half(int i) const;  weights i and the chain behind them
//   BlockedTensors Blocked() const;  which of its inputs and outputs have tails
//   Status MakePlan(const InputShapeList& inputs, bool changes_weights, int threads, Plan* plan,
//                   TensorShape* dst_shape) const;  of full shapes, after all checks
//
//   static PackRequest Weights(const Plan& plan, int i, WeightsPacker pack);
//   static void Pack(const Plan& plan, int i, const float* plain, const float* src, float* packed,
//                    ThreadPool& pool);
//   static void Run(const Plan& plan, const ConvOpMemory& memory, ThreadPool& pool);
//   static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory);
//   static ConvOpNote Note(const Plan& plan);
struct ConvOpSpec {
  static constexpr int kSrc = 0, kWeights = 1;

  // Where src and dst lie, if in wider tensors.
  struct Parts {
    ChannelPart src;
    DstPart dst;
  };
  Parts parts() const { return {}; }

  static InputShapeList From(const InputShapeList& inputs, int first) {
    return InputShapeList(inputs.begin() + first, inputs.end());
  }
};

// An op whose plan is that of one convolution.
struct OneConvSpec : ConvOpSpec {
  static constexpr int kNumWeights = 1;
  using Plan = ConvPlan;

  static PackRequest Weights(const ConvPlan& plan, int, WeightsPacker pack);
  static void Pack(const ConvPlan& plan, int, const float* plain, const float* src, float* packed,
                   ThreadPool& pool) {
    PackConvWeights(plan, plain, packed, pool, src);
  }
  static void Run(const ConvPlan& plan, const ConvOpMemory& memory, ThreadPool& pool) {
    RunConv(plan, memory.buffers(), pool);
  }
  static void FillMemoryPlan(const ConvPlan& plan, MemoryPlan* memory);
  static ConvOpNote Note(const ConvPlan& plan);
};

template <typename Spec>
struct ConvOpPlan {
  typename Spec::Plan core;
  TensorShape dst_shape;
};

// For MemoryPlanRow.
template <typename Spec>
Status PlanConvMemory(const NodeAttrs& attrs, const InputShapeList& inputs, int threads,
                      MemoryPlan* plan) {
  Spec spec;
  TF_RETURN_IF_ERROR(spec.Read(&attrs));
  ConvOpPlan<Spec> made;
  TF_RETURN_IF_ERROR(spec.MakePlan(inputs, false, threads, &made.core, &made.dst_shape));
  Spec::FillMemoryPlan(made.core, plan);
  return absl::OkStatus();
}

template <typename Spec>
struct ConvLaunch {
  static constexpr int kFirstArg = Spec::kWeights + Spec::kNumWeights;

  std::shared_ptr<const ConvOpPlan<Spec>> plan;
  std::array<WeightsLease, Spec::kNumWeights> weights;
  int64_t src_offset = 0, dst_offset = 0;  // of parts

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return plan->core.scratch_bytes(); }
  absl::Span<const int> fixed_inputs() const {
    static constexpr int kFixed[] = {Spec::kWeights, Spec::kWeights + 1};
    return absl::MakeConstSpan(kFixed, Spec::kNumWeights);
  }
  int64_t bytes_packed() const {
    int64_t bytes = 0;
    for (const WeightsLease& lease : weights) bytes += lease.bytes_packed();
    return bytes;
  }
  bool lasts() const {
    return std::all_of(weights.begin(), weights.end(), [](const auto& w) { return w.lasts(); });
  }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    Spec::Run(plan->core,
              {memory.inputs[Spec::kSrc] + src_offset, weights.data(), memory.inputs + kFirstArg,
               memory.dst() + dst_offset, memory.scratch},
              pool);
  }
};

// The kernel of an op that Spec describes.
template <typename Spec>
class ConvOp : public LaunchOpKernel<ConvLaunch<Spec>> {
 public:
  explicit ConvOp(OpKernelConstruction* ctx) : LaunchOpKernel<ConvLaunch<Spec>>(ctx) {
    OP_REQUIRES_OK(ctx, spec_.Read(ctx));
    OP_REQUIRES_OK(ctx, this->scratchpad_.Read(ctx));
    int first_arg = ConvLaunch<Spec>::kFirstArg;  // of the last chain, which makes dst
    for (int i = 0; i < Spec::kNumWeights; ++i) {
      const PackedWeightsAttrs& half = spec_.half(i);
      weights_[i] = std::make_unique<WeightsCache>(
          half.weights_offset,
          half.constant_weights ? WeightsChange::kNever : WeightsChange::kOften);
      if (i + 1 < Spec::kNumWeights) first_arg += half.post_ops.num_args;
    }
    for (int arg : last_chain().ReusableInputs()) {
      this->reusable_inputs_.push_back(first_arg + arg);
    }
  }

 private:
  const PostOpChain& last_chain() const { return spec_.half(Spec::kNumWeights - 1).post_ops.chain; }

  Status Resolve(OpKernelContext* ctx, ConvLaunch<Spec>* launch) override {
    bool changing = false;
    for (const auto& weights : weights_) changing |= weights->changing();
    const auto make = [&](ConvOpPlan<Spec>* made) {
      return spec_.MakePlan(InputShapes(ctx, 0), changing, this->pool().num_threads(), &made->core,
                            &made->dst_shape);
    };
    TF_RETURN_IF_ERROR((changing ? changing_plans_ : plans_).Get(ctx, make, &launch->plan));
    if (launch->dst_shape().num_elements() == 0) return absl::OkStatus();
    const typename Spec::Plan& plan = launch->plan->core;
    std::tie(launch->src_offset, launch->dst_offset) = PartOffsets(ctx, launch->dst_shape());
    const float* src = InputData(ctx, Spec::kSrc) + launch->src_offset;
    for (int i = 0; i < Spec::kNumWeights; ++i) {
      const auto pack = [&](const void* plain, void* packed) {
        Spec::Pack(plan, i, static_cast<const float*>(plain), src, static_cast<float*>(packed),
                   this->pool());
      };
      TF_RETURN_IF_ERROR(weights_[i]->Take(ctx, Spec::kWeights + i, Spec::Weights(plan, i, pack),
                                           &launch->weights[i]));
    }
    return absl::OkStatus();
  }

  // In floats; tensors of which something is a part are [N, C / 16, H, W, 16].
  std::pair<int64_t, int64_t> PartOffsets(OpKernelContext* ctx, const TensorShape& dst) const {
    const auto pixels = [](const TensorShape& shape) {
      return shape.dims() == 5 ? shape.dim_size(2) * shape.dim_size(3) : 0;
    };
    const ConvOpSpec::Parts parts = spec_.parts();
    return {parts.src.offset(pixels(ctx->input(Spec::kSrc).shape())),
            parts.dst.offset(pixels(dst))};
  }

  std::string Describe(OpKernelContext* ctx, const ConvLaunch<Spec>& launch,
                       bool in_place) const override {
    const ConvOpNote note = Spec::Note(launch.plan->core);
    const ConvOpSpec::Parts parts = spec_.parts();
    const int64_t packed = launch.bytes_packed();
    std::string line =
        absl::StrCat(Spec::kPrimitive, " ", IsaName(note.isa), " ", note.algorithm, " ",
                     LayoutName(note.src_layout), ctx->input(Spec::kSrc).shape().DebugString(),
                     "->", LayoutName(note.dst_layout), launch.dst_shape().DebugString(), " ",
                     note.window, " scratch ", launch.scratch_bytes(), " ",
                     this->scratchpad_.mode(), packed > 0 ? absl::StrCat(" packs ", packed) : "",
                     SumNote(last_chain(), in_place && !parts.dst.has_into),
                     PartNote(parts.src, parts.dst, in_place));
    for (int i = 0; i < Spec::kNumWeights; ++i) {
      absl::StrAppend(&line, " \"", spec_.half(i).post_ops.chain.ToString(), "\"");
    }
    return line;
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return spec_.Blocked(); }
  bool has_into() const override { return spec_.parts().dst.has_into; }
  void ReleaseWeights() override {
    for (const auto& weights : weights_) weights->Release();
  }

  Spec spec_;
  PlanCache<ConvOpPlan<Spec>> plans_, changing_plans_;  // for weights that stay, that change
  std::array<std::unique_ptr<WeightsCache>, Spec::kNumWeights> weights_;
};

}  // namespace bd

#endif  // CC_TENSORFLOW_OP_KERNELS_CONV_CONV_OP_H_
