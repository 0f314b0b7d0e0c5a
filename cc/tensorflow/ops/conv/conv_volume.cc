// BlockdnnConvVolume: a 3-D convolution of volumes whose slices are images.
#include "cc/core/conv/conv_volume/conv_volume.h"

#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

// The window over a volume, the planes of a slice of src and of dst; n counts slices. An open size
// is kUnknown.
struct VolumeWindows {
  Window1d d, h, w;
  Plane src, dst;
};

// weights_shape is [kd, kh, kw, ic, oc].
struct ConvVolume : WeightsOp<WeightsAttrs> {
  using Plan = ConvVolumePlan;

  int64_t depth = 0;
  std::vector<int64_t> strides;  // depth, height, width
  Padding padding = Padding::kValid;

  static OpSignature Signature() {
    return {"BlockdnnConvVolume",
            {"src: T", "weights: T", "args: num_args * T"},
            {"dst: T"},
            "See bd.ops.conv_volume."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    VisitLayouts(v);
    v("channels: int >= 1", &channels);
    v("depth: int >= 1", &depth);
    VisitWeights(v);
    v("strides: list(int) = [1, 1, 1]", &strides);
    v.Choice("padding", &padding, {{"SAME", Padding::kSame}, {"VALID", Padding::kValid}});
    v("post_ops: string = ''", &post_ops.text);
    VisitAlgorithm(v);
    VisitConstant(v);
    VisitScratchpadMode(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(CheckWeightsShape(5, 4, "[kd, kh, kw, ic, oc]"));
    TF_RETURN_IF_ERROR(CheckList("strides", strides, 3, 1, "[depth, height, width]"));
    if (weights_shape[3] != channels) {
      return Invalid("weights_shape has ", weights_shape[3],
                     " input channels, not channels = ", channels);
    }
    return post_ops.Check();
  }

  Status Resolve(const PartialTensorShape& src, VolumeWindows* v) const {
    TF_RETURN_IF_ERROR(ReadPlane("src", src, src_layout, channels, &v->src));
    Window1d* const windows[] = {&v->d, &v->h, &v->w};
    for (int axis = 0; axis < 3; ++axis) {
      windows[axis]->kernel = weights_shape[axis];
      windows[axis]->stride = strides[axis];
    }
    TF_RETURN_IF_ERROR(ResolveAxis("depth", padding, depth, &v->d));
    TF_RETURN_IF_ERROR(ResolveAxis("height", padding, v->src.h, &v->h));
    TF_RETURN_IF_ERROR(ResolveAxis("width", padding, v->src.w, &v->w));
    v->dst = {kUnknown, v->h.out, v->w.out};
    if (v->src.n == kUnknown) return absl::OkStatus();
    if (v->src.n % depth != 0) {
      return Invalid("src has ", v->src.n, " slices, which are no whole volumes of ", depth);
    }
    v->dst.n = v->src.n / depth * v->d.out;
    return absl::OkStatus();
  }
  // Slices are not images.
  bool keeps_batch() const { return false; }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    VolumeWindows v;
    TF_RETURN_IF_ERROR(Resolve(in[kSrc], &v));
    return DstShape(in[kWeights], From(in, kArgs), v.dst, v.dst, &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    VolumeWindows v;
    TF_RETURN_IF_ERROR(Resolve(in[kSrc], &v));
    ConvVolumeDesc desc;
    desc.volumes = v.src.n / depth;
    desc.depth = depth;
    desc.out_depth = v.d.out;
    desc.kd = v.d.kernel;
    desc.sd = v.d.stride;
    desc.pad_front = v.d.pad_before;
    ConvDesc& s = desc.slice;
    s.windows.h = v.h;
    s.windows.w = v.w;
    TF_RETURN_IF_ERROR(Views(dtype, dtype, v.src, v.dst, &s.src, &s.dst));
    s.algorithm = algorithm;
    s.changes_weights = site.changes_weights;
    s.post_ops = post_ops.chain;
    return FromCore(MakeConvVolumePlan(desc, ActiveIsa(), site.threads, plan));
  }

  PackRequest Weights(const Plan& plan, int, OpKernelContext*, WeightsPacker pack) const {
    const ConvDesc& s = plan.desc.slice;
    PackKey key = plan.conv.pack_key;
    key.op = "conv_volume";
    return {key,
            {plan.desc.kd, s.kh(), s.kw(), s.ic(), s.oc()},
            plan.conv.packed_bytes,
            plan.conv.reads_plain_weights ? plan.desc.weights_bytes() : 0,
            pack};
  }
  void Pack(const Plan& plan, int, const void* plain, OpKernelContext*, void* packed,
            ThreadPool& pool) const {
    PackConvVolumeWeights(plan, static_cast<const float*>(plain), static_cast<float*>(packed),
                          pool);
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunConvVolume(plan, Buffers(plan.desc.slice.src, plan.desc.slice.dst, m), pool);
  }

  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    FillConvMemoryPlan(plan.conv, memory);
  }
};

const OpRegistration<ConvVolume> conv_volume_registration;

}  // namespace
}  // namespace bd
