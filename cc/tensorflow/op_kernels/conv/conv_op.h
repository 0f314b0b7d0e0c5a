// What the ops on packed weights share: plan by input shapes, weights packed at
// first use, run. Their inputs are src, weights and the operands of the chain.
#ifndef CC_TENSORFLOW_OP_KERNELS_CONV_CONV_OP_H_
#define CC_TENSORFLOW_OP_KERNELS_CONV_CONV_OP_H_

#include <memory>
#include <string>
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

// What the verbose log says about a window, and about weights that were packed for
// one execution only.
std::string WindowNote(const ConvDesc& d);
std::string PacksNote(int64_t bytes);

// An op as a convolution: its attributes, and what they make of input shapes.
// Executing and sizing (memory_plan.h) share it.
class ConvOpSpec {
 public:
  static constexpr int kSrc = 0, kWeights = 1, kFirstArg = 2;

  virtual ~ConvOpSpec() = default;

  // The convolution of full shapes of all inputs and the shape of its result,
  // after all checks.
  virtual Status Describe(const InputShapeList& inputs, ConvDesc* desc,
                          TensorShape* dst_shape) const = 0;

  // Which of its inputs and outputs have tails.
  virtual BlockedTensors Blocked() const = 0;

  // Where src and dst lie, if in wider tensors.
  struct Parts {
    ChannelPart src;
    DstPart dst;
  };
  virtual Parts parts() const { return {}; }

 protected:
  static InputShapeList ArgShapes(const InputShapeList& inputs) {
    return InputShapeList(inputs.begin() + kFirstArg, inputs.end());
  }
};

struct ConvOpPlan {
  ConvPlan conv;
  TensorShape dst_shape;
};

// `changes_weights`: ConvDesc.
Status PlanConvOp(const ConvOpSpec& spec, const InputShapeList& inputs, bool changes_weights,
                  int threads, ConvOpPlan* plan);

void FillMemoryPlan(const ConvPlan& conv, MemoryPlan* plan);

// The weights of a plan out of `cache`: the op's input `weights`, which will meet `src`.
Status TakeWeights(OpKernelContext* ctx, int weights, const float* src, const ConvPlan& plan,
                   ThreadPool& pool, WeightsCache* cache, WeightsLease* lease);

// For MemoryPlanRow.
template <typename Spec>
Status PlanConvMemory(const NodeAttrs& attrs, const InputShapeList& inputs, int threads,
                      MemoryPlan* plan) {
  Spec spec;
  TF_RETURN_IF_ERROR(spec.Read(&attrs));
  ConvOpPlan made;
  TF_RETURN_IF_ERROR(PlanConvOp(spec, inputs, false, threads, &made));
  FillMemoryPlan(made.conv, plan);
  return absl::OkStatus();
}

struct ConvLaunch {
  std::shared_ptr<const ConvOpPlan> plan;
  WeightsLease weights;
  int64_t src_offset = 0, dst_offset = 0;  // of parts

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return plan->conv.scratch_bytes(); }
  absl::Span<const int> fixed_inputs() const;
  bool lasts() const { return weights.bytes_packed() == 0; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const;
};

class ConvOpBase : public LaunchOpKernel<ConvLaunch> {
 public:
  // `primitive` is what the verbose log calls it.
  ConvOpBase(OpKernelConstruction* ctx, const char* primitive)
      : LaunchOpKernel(ctx), primitive_(primitive) {
    OP_REQUIRES_OK(ctx, scratchpad_.Read(ctx));
  }

 protected:
  // To be called by constructors, once the attributes are read.
  void Init(const ChainAttrs& chain, int64_t weights_offset, bool constant_weights);

 private:
  virtual const ConvOpSpec& spec() const = 0;
  Status Resolve(OpKernelContext* ctx, ConvLaunch* launch) override;
  std::string Describe(OpKernelContext* ctx, const ConvLaunch& launch,
                       bool in_place) const override;
  bool has_into() const override { return spec().parts().dst.has_into; }
  BlockedTensors Blocked(OpKernelContext*) const override { return spec().Blocked(); }
  void ReleaseWeights() override { weights_->Release(); }

  const char* const primitive_;
  PlanCache<ConvOpPlan> plans_, changing_plans_;
  std::unique_ptr<WeightsCache> weights_;
};

// The kernel of an op that Spec describes.
template <typename Spec>
class ConvOp : public ConvOpBase {
 public:
  explicit ConvOp(OpKernelConstruction* ctx) : ConvOpBase(ctx, Spec::kPrimitive) {
    OP_REQUIRES_OK(ctx, spec_.Read(ctx));
    const auto& attrs = spec_.attrs();
    Init(attrs.post_ops, attrs.weights_offset, attrs.constant_weights);
  }

 private:
  const ConvOpSpec& spec() const override { return spec_; }

  Spec spec_;
};

}  // namespace bd

#endif  // CC_TENSORFLOW_OP_KERNELS_CONV_CONV_OP_H_
