// BlockdnnConvVolume: a 3-D convolution of volumes whose slices are images.
#include "cc/core/conv/conv_volume/conv_volume.h"

#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

// The window over a volume, the planes of a slice of src and of dst; n counts slices. An open size
// is kUnknown.
struct VolumeWindows {
  Window1d d, h, w;
  int64_t count = kUnknown, depth = kUnknown;  // of the volumes
  Plane src, dst;
};

// weights_shape is [kd, kh, kw, ic, oc].
struct ConvVolume : WeightsOp<WeightsAttrs> {
  using Plan = ConvVolumePlan;

  // 0: of `volumes`, a tensor of which nothing is read but its batch, as many as it has samples.
  int64_t depth = 0;
  int num_volumes = 0;
  std::vector<int64_t> strides;  // depth, height, width
  Padding padding = Padding::kValid;

  static OpSignature Signature() {
    return {"BlockdnnConvVolume",
            {"src: T", "weights: T", "args: num_args * T", "volumes: num_volumes * T"},
            {"dst: T"},
            "See bd.ops.conv_volume."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    VisitLayouts(v);
    v("channels: int >= 1", &channels);
    v("depth: int >= 0", &depth);
    v("num_volumes: int >= 0 = 0", &num_volumes);
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
    if (num_volumes != (depth == 0 ? 1 : 0)) {
      return Invalid("there is a tensor of volumes where depth is 0, and only there; got ",
                     num_volumes, " and depth ", depth);
    }
    return post_ops.Check();
  }

  int volumes() const { return kArgs + post_ops.num_args; }
  ShapeList Args(const ShapeList& in) const { return {in.begin() + kArgs, in.begin() + volumes()}; }
  // Sets how many volumes there are, and the slices of each.
  Status CountVolumes(const ShapeList& in, VolumeWindows* v) const {
    const int64_t slices = v->src.n;
    if (depth > 0) {
      v->depth = depth;
      if (slices != kUnknown) v->count = slices / depth;
    } else if (const PartialTensorShape& like = in[volumes()]; !like.unknown_rank()) {
      if (like.dims() == 0) return Invalid("volumes must have a batch, got a number");
      v->count = like.dim_size(0);
      // Without a volume any depth will do: there is no slice.
      if (v->count == 0) v->depth = v->d.kernel;
      if (v->count > 0 && slices != kUnknown) v->depth = slices / v->count;
    }
    if (slices == kUnknown || v->count == kUnknown || v->count * v->depth == slices) {
      return absl::OkStatus();
    }
    return depth > 0 ? Invalid("src has ", slices, " slices, which are no whole volumes of ", depth)
                     : Invalid("src has ", slices, " slices, which are not ", v->count,
                               " volumes of one depth");
  }

  Status Resolve(const ShapeList& in, VolumeWindows* v) const {
    TF_RETURN_IF_ERROR(ReadPlane("src", in[kSrc], src_layout, channels, &v->src));
    Window1d* const windows[] = {&v->d, &v->h, &v->w};
    for (int axis = 0; axis < 3; ++axis) {
      windows[axis]->kernel = weights_shape[axis];
      windows[axis]->stride = strides[axis];
    }
    TF_RETURN_IF_ERROR(CountVolumes(in, v));
    TF_RETURN_IF_ERROR(ResolveAxis("depth", padding, v->depth, &v->d));
    TF_RETURN_IF_ERROR(ResolveAxis("height", padding, v->src.h, &v->h));
    TF_RETURN_IF_ERROR(ResolveAxis("width", padding, v->src.w, &v->w));
    const bool known = v->count != kUnknown && v->d.out != kUnknown;
    v->dst = {known ? v->count * v->d.out : kUnknown, v->h.out, v->w.out};
    return absl::OkStatus();
  }
  // Slices are not images.
  bool keeps_batch() const { return false; }
  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    VolumeWindows v;
    TF_RETURN_IF_ERROR(Resolve(in, &v));
    return DstShape(in[kWeights], Args(in), v.dst, v.dst, &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    VolumeWindows v;
    TF_RETURN_IF_ERROR(Resolve(in, &v));
    ConvVolumeDesc desc;
    desc.volumes = v.count;
    desc.depth = v.depth;
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
