// BlockdnnLayerNorm and BlockdnnLayerNormGrad.
#include "cc/core/normalization/layer_norm.h"
#include "cc/tensorflow/attrs/pixels/layer_norm_attrs.h"
#include "cc/tensorflow/attrs/pixels/normalization_attrs.h"
#include "cc/tensorflow/op_base/launch.h"

namespace bd {
namespace {

constexpr int kSrc = 0, kGamma = 1, kBeta = 2;

struct LayerNormLaunch : LaunchDefaults {
  LayerNormPlan plan;
  TensorShape shape;
  int64_t gamma_offset, beta_offset;

  const TensorShape& dst_shape(int = 0) const { return shape; }
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

enum { kDdst, kGradSrc, kGradGamma };

struct LayerNormGradLaunch : LaunchDefaults {
  LayerNormGradPlan plan;
  TensorShape shapes[2];  // of an activation, of a row

  const TensorShape& dst_shape(int output = 0) const { return shapes[output > 0]; }
  int64_t scratch_bytes() const { return plan.scratch.bytes(); }
  void Run(const LaunchMemory& m, ThreadPool& pool) const {
    RunLayerNormGrad(plan,
                     {m.inputs[kGradSrc], m.inputs[kDdst], m.inputs[kGradGamma], m.outputs[0],
                      m.outputs[1], m.outputs[2], m.scratch},
                     pool);
  }
};

class LayerNormGradOp : public LaunchOpKernel<LayerNormGradLaunch> {
 public:
  explicit LayerNormGradOp(OpKernelConstruction* ctx) : LaunchOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    reusable_inputs_ = {kDdst};
  }

 protected:
  Status Resolve(OpKernelContext* ctx, LayerNormGradLaunch* launch) override {
    TF_RETURN_IF_ERROR(attrs_.CheckShapes(InputShapes(ctx, 0), /*first_row=*/kGradGamma));
    const TensorShape& src = ctx->input(kGradSrc).shape();
    launch->shapes[0] = src;
    launch->shapes[1] = TensorShape({attrs_.channels});
    LayerNormDesc desc;
    desc.images = src.dim_size(0);
    desc.pixels = 1;
    for (int axis = 2; axis < src.dims() - 1; ++axis) desc.pixels *= src.dim_size(axis);
    desc.channels = attrs_.channels;
    desc.blocked = true;
    desc.epsilon = attrs_.epsilon;
    return FromCore(MakeLayerNormGradPlan(desc, ActiveIsa(), &launch->plan));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors()
        .Input(kDdst, Layout::nChw16c, {attrs_.channels})
        .Input(kGradSrc, Layout::nChw16c, {attrs_.channels})
        .Output(0, Layout::nChw16c, {attrs_.channels});
  }

  std::string Describe(OpKernelContext*, const LayerNormGradLaunch& launch,
                       bool in_place) const override {
    return absl::StrCat("layer_norm_grad ", IsaName(ActiveIsa()), " ",
                        launch.shapes[0].DebugString(), in_place ? " in place" : "");
  }

 private:
  NormalizationAttrs attrs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnLayerNormGrad").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    LayerNormGradOp);
REGISTER_KERNEL_BUILDER(
    Name("BlockdnnLayerNorm").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    LayerNormOp);

}  // namespace
}  // namespace bd
