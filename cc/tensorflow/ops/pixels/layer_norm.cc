// BlockdnnLayerNorm and its gradient.
#include "cc/core/normalization/layer_norm.h"

#include "cc/tensorflow/ops/pixels/rows.h"

namespace bd {
namespace {

struct LayerNormAttrs : NormalizationAttrs {
  Layout layout = Layout::nChw16c;
  bool centered = true;

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("channels: int >= 1", &channels);
    v("epsilon: float", &epsilon);
    v("centered: bool = true", &centered);
  }
};

struct LayerNorm : LayerNormAttrs {
  using Plan = LayerNormPlan;
  enum { kSrc, kGamma, kBeta };

  std::vector<int64_t> offsets;  // of gamma and beta in their tensors

  static OpSignature Signature() {
    return {"BlockdnnLayerNorm",
            {"src: T", "gamma: T", "beta: T"},
            {"dst: T"},
            "See bd.ops.layer_norm."};
  }

  void Visit(AttrVisitor& v) {
    LayerNormAttrs::Visit(v);
    v.Choice("layout", &layout, {Layout::nhwc, Layout::nChw16c});
    v("offsets: list(int) = [0, 0]", &offsets);
  }
  Status Check() const {
    TF_RETURN_IF_ERROR(LayerNormAttrs::Check());
    if (offsets.size() != 2) return Invalid("offsets must be those of gamma and beta");
    for (int64_t offset : offsets) {
      if (offset < 0) return Invalid("offsets must not be negative; got ", offset);
    }
    return absl::OkStatus();
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    for (int i : {kGamma, kBeta}) {
      const int64_t elements = NumElements(in[i]), offset = offsets[i - kGamma];
      if (elements == kUnknown || elements - offset >= channels) continue;
      return Invalid(i == kGamma ? "gamma" : "beta", " has ", elements, " elements, not the ",
                     channels, " of the channels from offset ", offset, " on");
    }
    Plane plane;
    TF_RETURN_IF_ERROR(PixelPlane(layout, {}, channels, in[kSrc], &plane));
    if (!IsRows(layout, in[kSrc])) {
      return MakeShape(layout, channels, plane, &dst->emplace_back());
    }
    dst->emplace_back();
    if (in[kSrc].unknown_rank()) return absl::OkStatus();
    return RowsShape(in[kSrc], channels, channels, &dst->front());
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    Plane plane;
    TF_RETURN_IF_ERROR(PixelPlane(layout, {}, channels, in[kSrc], &plane));
    const bool blocked = layout == Layout::nChw16c;
    return FromCore(MakeLayerNormPlan(
        {plane.n, plane.h * plane.w, channels, blocked, epsilon, centered}, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunLayerNorm(plan, m.in<float>(kSrc), m.in<float>(kGamma) + offsets[0],
                 m.in<float>(kBeta) + offsets[1], m.out<float>(), pool);
  }

  std::vector<int> reusable_inputs() const { return {kSrc}; }
  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors().Input(kSrc, layout, {channels}).Output(0, layout, {channels});
  }
};

struct LayerNormGrad : LayerNormAttrs {
  using Plan = LayerNormGradPlan;
  enum { kDdst, kSrc, kGamma };
  static constexpr int kLike = kDdst;

  static OpSignature Signature() {
    return {"BlockdnnLayerNormGrad",
            {"ddst: T", "src: T", "gamma: T"},
            {"dsrc: T", "dgamma: T", "dbeta: T"},
            "The gradients of BlockdnnLayerNorm."};
  }

  void Visit(AttrVisitor& v) {
    LayerNormAttrs::Visit(v);
    v.Choice("layout", &layout, {Layout::nhwc, Layout::nChw16c}, "nChw16c");
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    if (blocked()) return NormalizationShapes(channels, kGamma, in, dst);
    const int64_t elements = NumElements(in[kGamma]);
    if (elements != kUnknown && elements != channels) {
      return Invalid("gamma has ", elements, " elements, not the ", channels, " of the channels");
    }
    if (!in[kDdst].IsCompatibleWith(in[kSrc])) {
      return Invalid("ddst ", in[kDdst].DebugString(), " and src ", in[kSrc].DebugString(),
                     " have different shapes");
    }
    Plane plane;
    TF_RETURN_IF_ERROR(PixelPlane(layout, {}, channels, in[kSrc], &plane));
    dst->assign({in[kSrc], PartialTensorShape({channels}), PartialTensorShape({channels})});
    return absl::OkStatus();
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    LayerNormDesc desc = {0, 0, channels, blocked(), epsilon, centered};
    if (blocked()) {
      desc.images = in[kSrc].dim_size(0);
      desc.pixels = PixelsOf(in[kSrc]);
    } else {
      desc.images = 1;
      desc.pixels = NumElements(in[kSrc]) / channels;
    }
    return FromCore(MakeLayerNormGradPlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunLayerNormGrad(plan,
                     {m.in<float>(kSrc), m.in<float>(kDdst), m.in<float>(kGamma), m.out<float>(0),
                      m.out<float>(1), m.out<float>(2), m.scratch},
                     pool);
  }

  std::vector<int> reusable_inputs() const { return {kDdst}; }
  BlockedTensors Blocked(const ShapeList& in) const {
    return blocked() ? BlockedActivations(channels, kGamma, in) : BlockedTensors();
  }

 private:
  bool blocked() const { return layout == Layout::nChw16c; }
};

const OpRegistration<LayerNorm> layer_norm;
const OpRegistration<LayerNormGrad> layer_norm_grad;

}  // namespace
}  // namespace bd
