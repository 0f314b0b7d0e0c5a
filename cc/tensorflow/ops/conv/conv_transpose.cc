// BlockdnnConvTranspose.
#include "cc/core/conv/conv_transpose/conv_transpose.h"

#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

// src is nChw16c; weights_shape is [kh, kw, oc, ic].
struct ConvTranspose : WeightsOp<WeightsAttrs> {
  using Plan = ConvTransposePlan;

  std::vector<int64_t> strides;  // height, width
  std::vector<int64_t> crops;    // top, bottom, left, right

  static OpSignature Signature() {
    return {"BlockdnnConvTranspose",
            {"src: T", "weights: T", "args: num_args * T", kIntoInput},
            {"dst: T"},
            "See bd.ops.conv_transpose."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    v.Choice("dst_layout", &dst_layout, {Layout::nhwc, Layout::nChw16c}, "nChw16c");
    v("channels: int >= 1", &channels);
    VisitWeights(v);
    v("strides: list(int) = [1, 1]", &strides);
    v("crops: list(int) = [0, 0, 0, 0]", &crops);
    v("post_ops: string = ''", &post_ops.text);
    VisitAlgorithm(v);
    VisitConstant(v);
    src_part.Visit("src_part", v);
    dst_part.Visit(v);
    VisitScratchpadMode(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(CheckWeightsShape(4, 2, "[kh, kw, oc, ic]"));
    TF_RETURN_IF_ERROR(CheckList("strides", strides, 2, 1, "[height, width]"));
    TF_RETURN_IF_ERROR(CheckList("crops", crops, 4, INT32_MIN, "[top, bottom, left, right]"));
    if (crops[0] < 0 || crops[2] < 0) {
      return Invalid("crops ", crops[0], " and ", crops[2],
                     " must not be negative at the top and the left");
    }
    if (weights_shape[3] != channels) {
      return Invalid("weights_shape has ", weights_shape[3],
                     " input channels, not channels = ", channels);
    }
    return CheckPartsAndChain();
  }

  Status Planes(const PartialTensorShape& shape, Plane* src, Plane* dst) const {
    TF_RETURN_IF_ERROR(ReadPlane("src", shape, Layout::nChw16c, src_channels(), src));
    *dst = *src;
    for (int axis : {0, 1}) {
      const char* const name = axis == 0 ? "height" : "width";
      int64_t& size = axis == 0 ? dst->h : dst->w;
      if (size == kUnknown || size == 0) continue;
      const int64_t stride = strides[axis], before = crops[2 * axis], after = crops[2 * axis + 1];
      const int64_t reached = (Size(size - 1) * stride + weights_shape[axis]).value();
      size = reached - before - after;
      if (size >= 0) continue;
      return Invalid(name, ": crops ", before, " and ", after, " exceed the ", reached,
                     " pixels of the result");
    }
    return absl::OkStatus();
  }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(Planes(in[kSrc], &src_plane, &dst_plane));
    return DstShape(in[kWeights], From(in, kArgs), dst_plane, dst_plane, &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    Plane src_plane, dst_plane;
    TF_RETURN_IF_ERROR(Planes(in[kSrc], &src_plane, &dst_plane));
    ConvTransposeDesc desc;
    TF_RETURN_IF_ERROR(Views(dtype, dtype, src_plane, dst_plane, &desc.src, &desc.dst));
    desc.kh = weights_shape[0];
    desc.kw = weights_shape[1];
    desc.sh = strides[0];
    desc.sw = strides[1];
    desc.pad_top = crops[0];
    desc.pad_left = crops[2];
    desc.algorithm = algorithm;
    desc.changes_weights = site.changes_weights;
    desc.post_ops = post_ops.chain;
    return FromCore(MakeConvTransposePlan(desc, ActiveIsa(), site.threads, plan));
  }

  PackRequest Weights(const Plan& plan, int, OpKernelContext* ctx, WeightsPacker pack) const {
    const ConvTransposeDesc& d = plan.desc;
    const float* const src = Src(ctx, d.src);
    PackKey key = plan.pack_key;
    key.op = "conv_transpose";
    return {key, {d.kh, d.kw, d.oc(), d.ic()}, plan.packed_bytes, 0, pack, nullptr, [&plan, src] {
              return ConvTransposeExponent(plan, src);
            }};
  }
  void Pack(const Plan& plan, int, const void* plain, OpKernelContext* ctx, void* packed,
            ThreadPool& pool) const {
    PackConvTransposeWeights(plan, static_cast<const float*>(plain), static_cast<float*>(packed),
                             pool, Src(ctx, plan.desc.src));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunConvTranspose(plan, Buffers(plan.desc.src, plan.desc.dst, m), pool);
  }

  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    memory->algorithm = plan.algorithm_name();
    memory->packed_weights = plan.packed_bytes;
    memory->blocking = {{"images", plan.images}};
  }
};

const OpRegistration<ConvTranspose> conv_transpose_registration;

}  // namespace
}  // namespace bd
