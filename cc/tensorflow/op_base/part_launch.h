// Ops whose source and destination may be parts of wider tensors, and whose plans are kept.
#ifndef CC_TENSORFLOW_OP_BASE_PART_LAUNCH_H_
#define CC_TENSORFLOW_OP_BASE_PART_LAUNCH_H_

#include <cstdint>
#include <memory>

#include "cc/tensorflow/attrs/channel_part.h"
#include "cc/tensorflow/op_base/launch.h"
#include "cc/tensorflow/op_base/plan_cache.h"

namespace bd {

// A launch adds Run. CorePlan::desc has src and dst, both a TensorView.
template <typename CorePlan>
struct PartLaunch : LaunchDefaults {
  struct Plan {
    CorePlan core;
    TensorShape dst_shape;
  };

  std::shared_ptr<const Plan> plan;
  int64_t src_offset = 0, dst_offset = 0;  // of the parts, in floats

  const TensorShape& dst_shape(int = 0) const { return plan->dst_shape; }
};

template <typename Launch>
class PartOpKernel : public LaunchOpKernel<Launch> {
 public:
  using LaunchOpKernel<Launch>::LaunchOpKernel;

 protected:
  using Plan = typename Launch::Plan;

  // Checks all inputs.
  virtual Status MakePlan(OpKernelContext* ctx, Plan* plan) const = 0;

  ChannelPart src_part_;
  DstPart dst_part_;

  Status Resolve(OpKernelContext* ctx, Launch* launch) final {
    TF_RETURN_IF_ERROR(plans_.Get(
        ctx, [&](Plan* made) { return MakePlan(ctx, made); }, &launch->plan));
    const auto& desc = launch->plan->core.desc;
    launch->src_offset = src_part_.offset(desc.src.pixels());
    launch->dst_offset = dst_part_.offset(desc.dst.pixels());
    return absl::OkStatus();
  }

  bool has_into() const final { return dst_part_.has_into; }

 private:
  PlanCache<Plan> plans_;
};

}  // namespace bd

#endif  // CC_TENSORFLOW_OP_BASE_PART_LAUNCH_H_
