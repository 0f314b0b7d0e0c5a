// BlockdnnLayerNorm.
#include "cc/core/normalization/layer_norm.h"
#include "cc/tensorflow/attrs/pixels/layer_norm_attrs.h"
#include "cc/tensorflow/op_base/launch.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kGamma = 1, kBeta = 2;

struct LayerNormLaunch {
  LayerNormPlan plan;
  TensorShape shape;
  int64_t gamma_offset, beta_offset;

  const TensorShape& dst_shape(int = 0) const { return shape; }
  int64_t scratch_bytes() const { return 0; }
  absl::Span<const int> fixed_inputs() const { return {}; }
  bool lasts() const { return true; }
  void Run(const LaunchMemory& memory, ThreadPool& pool) const {
    RunLayerNorm(plan, memory.inputs[kSrc], memory.inputs[kGamma] + gamma_offset,
                 memory.inputs[kBeta] + beta_offset, memory.dst(), pool);
  }
};

class LayerNormOp : public LaunchOpKernel<LayerNormLaunch> {
 public:
  explicit LayerNormOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    reusable_inputs_ = {kSrc};
  }

 protected:
  // A plan takes less than to look for one.
  Status Resolve(OpKernelContext* ctx, LayerNormLaunch* launch) override {
    Plane plane;
    TF_RETURN_IF_ERROR(LayerNormPlane(attrs_, InputShape(ctx, kSrc), InputShape(ctx, kGamma),
                                      InputShape(ctx, kBeta), &plane));
    launch->shape = ctx->input(kSrc).shape();
    launch->gamma_offset = attrs_.offsets[0];
    launch->beta_offset = attrs_.offsets[1];
    LayerNormDesc desc;
    desc.images = plane.n;
    desc.pixels = plane.h * plane.w;
    desc.channels = attrs_.channels;
    desc.blocked = attrs_.layout == Layout::nChw16c;
    desc.epsilon = attrs_.epsilon;
    return FromCore(MakeLayerNormPlan(desc, ActiveIsa(), &launch->plan));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kSrc, attrs_.layout, {attrs_.channels})
        .Output(0, attrs_.layout, {attrs_.channels});
  }

  std::string Describe(OpKernelContext*, const LayerNormLaunch& launch,
                       bool in_place) const override {
    return absl::StrCat("layer_norm ", IsaName(ActiveIsa()), " ", LayoutName(attrs_.layout),
                        launch.shape.DebugString(), in_place ? " in place" : "");
  }

 private:
  LayerNormAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnLayerNorm").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    LayerNormOp);

}  // namespace
}  // namespace bd
