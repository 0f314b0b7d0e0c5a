// BlockdnnAttention.
#include <algorithm>
#include <memory>

#include "cc/core/attention/attention.h"
#include "cc/tensorflow/attrs/products/attention_attrs.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/op_base/plan_cache.h"

namespace bd {
namespace {

struct AttentionOpPlan {
  AttentionPlan core;
  TensorShape dst_shape;
};

AttentionStrides Strides(bool heads_first, int64_t heads, int64_t rows, int64_t size) {
  if (heads_first) return {heads * rows * size, rows * size, size};
  return {heads * rows * size, size, heads * size};
}

AttentionBias Bias(const PartialTensorShape& shape, int rank) {
  const auto dims = AttentionBiasDims(shape, rank);
  const auto stride = [&](int axis, int64_t elements) { return dims[axis] == 1 ? 0 : elements; };
  AttentionBias bias;
  bias.sequences = std::max<int64_t>(1, dims[0]);
  bias.strides = {dims[1] * dims[2] * dims[3], stride(1, dims[2] * dims[3]), stride(2, dims[3])};
  bias.key_stride = stride(3, 1);
  return bias;
}

Status MakePlan(const AttentionAttrs& attrs, const std::vector<PartialTensorShape>& inputs,
                int threads, AttentionOpPlan* plan) {
  AttentionSizes s;
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(AttentionShape(attrs, inputs, &s, &dst));
  TF_RETURN_IF_ERROR(ToFullShape(dst, &plan->dst_shape));
  AttentionDesc desc;
  desc.batch = s.batch;
  desc.heads = s.heads;
  desc.kv_heads = s.kv_heads;
  desc.queries = s.queries;
  desc.keys = s.keys;
  desc.head_size = s.head_size;
  desc.value_size = s.value_size;
  desc.q = Strides(attrs.heads_first[AttentionAttrs::kQ], s.heads, s.queries, s.head_size);
  desc.k = Strides(attrs.heads_first[AttentionAttrs::kK], s.kv_heads, s.keys, s.head_size);
  desc.v = Strides(attrs.heads_first[AttentionAttrs::kV], s.kv_heads, s.keys, s.value_size);
  desc.dst = Strides(attrs.heads_first[AttentionAttrs::kDst], s.heads, s.queries, s.value_size);
  desc.scale = attrs.scale;
  desc.causal = attrs.causal;
  desc.num_biases = attrs.num_biases;
  const int rank = inputs[AttentionAttrs::kQ].dims();
  for (int i = 0; i < attrs.num_biases; ++i) {
    desc.biases[i] = Bias(inputs[AttentionAttrs::kBiases + i], rank);
  }
  desc.has_mask = attrs.num_masks > 0;
  if (desc.has_mask) desc.mask = Bias(inputs[attrs.mask()], rank);
  desc.masked = attrs.masked_value;
  desc.zero_masked = attrs.zero_masked && desc.has_mask;
  return FromCore(MakeAttentionPlan(desc, ActiveIsa(), threads, &plan->core));
}

Status PlanMemoryOf(const NodeAttrs& node, const std::vector<PartialTensorShape>& inputs,
                    int threads, MemoryPlan* plan) {
  AttentionAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  AttentionOpPlan made;
  TF_RETURN_IF_ERROR(MakePlan(attrs, inputs, threads, &made));
  plan->scratch = made.core.scratch;
  return absl::OkStatus();
}

struct AttentionLaunch : LaunchDefaults {
  std::shared_ptr<const AttentionOpPlan> plan;

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
  int64_t scratch_bytes() const { return plan->core.scratch.bytes(); }

  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    const AttentionDesc& desc = plan->core.desc;
    AttentionBuffers buffers;
    buffers.q = memory.inputs[AttentionAttrs::kQ];
    buffers.k = memory.inputs[AttentionAttrs::kK];
    buffers.v = memory.inputs[AttentionAttrs::kV];
    std::copy_n(memory.inputs + AttentionAttrs::kBiases, desc.num_biases, buffers.biases);
    if (desc.has_mask) {
      buffers.mask = reinterpret_cast<const uint8_t*>(
          memory.inputs[AttentionAttrs::kBiases + desc.num_biases]);
    }
    buffers.dst = memory.dst();
    buffers.scratch = memory.scratch;
    RunAttention(plan->core, buffers, pool);
  }
};

class AttentionOp : public LaunchOpKernel<AttentionLaunch> {
 public:
  explicit AttentionOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    OP_REQUIRES_OK(ctx, scratchpad_.Read(ctx));
  }

 protected:
  Status Resolve(OpKernelContext* ctx, AttentionLaunch* launch) override {
    return plans_.Get(
        ctx,
        [&](AttentionOpPlan* made) {
          return MakePlan(attrs_, InputShapes(ctx, 0), pool().num_threads(), made);
        },
        &launch->plan);
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }

  std::string Describe(OpKernelContext* ctx, const AttentionLaunch& launch, bool) const override {
    const AttentionDesc& d = launch.plan->core.desc;
    return absl::StrCat("attention ", IsaName(ActiveIsa()), " ", d.batch, "x", d.heads, "/",
                        d.kv_heads, " heads ", d.queries, "x", d.keys, " of ", d.head_size, ", ",
                        d.value_size, d.causal ? " causal" : "", " biases ", d.num_biases,
                        d.has_mask ? " mask" : "", " scratch ", launch.scratch_bytes(), " ",
                        scratchpad_.mode());
  }

 private:
  AttentionAttrs attrs_;
  PlanCache<AttentionOpPlan> plans_;
};

const MemoryPlanRow row("BlockdnnAttention", PlanMemoryOf);

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnAttention").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    AttentionOp);

}  // namespace
}  // namespace bd
