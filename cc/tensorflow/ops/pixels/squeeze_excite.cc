// BlockdnnSqueezeExcite.
#include "cc/core/squeeze_excite/squeeze_excite.h"

#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

struct SqueezeExcite : OpDefaults {
  using Plan = SqueezeExcitePlan;
  enum { kSrc, kFirstWeights };
  static constexpr const char* kWeights[] = {"reduce_weights: T", "reduce_bias: T",
                                             "expand_weights: T", "expand_bias: T"};

  int64_t channels = 0, squeezed = 0;
  std::vector<int64_t> offsets;  // of the weights' first elements
  ChainAttrs reduce, expand;     // eltwise entries only
  Layout dst_layout = Layout::nhwc;
  bool scale_src = false;  // dst is src times its scales

  static OpSignature Signature() {
    return {"BlockdnnSqueezeExcite",
            {"src: T", kWeights[0], kWeights[1], kWeights[2], kWeights[3]},
            {"dst: T"},
            "See bd.ops.squeeze_excite."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("channels: int >= 1", &channels);
    v("squeezed: int >= 1", &squeezed);
    v("offsets: list(int) = [0, 0, 0, 0]", &offsets);
    v("reduce_post_ops: string = 'eltwise(relu)'", &reduce.text);
    v("expand_post_ops: string = 'eltwise(logistic)'", &expand.text);
    v.Choice("dst_layout", &dst_layout, {Layout::nc, Layout::nhwc, Layout::nChw16c});
    v("scale_src: bool = false", &scale_src);
    VisitScratchpadMode(v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(CheckList("offsets", offsets, 4, 0, "those of two weights and two biases"));
    if (scale_src && dst_layout != Layout::nChw16c) {
      return Invalid("scale_src makes dst as src: dst_layout must be nChw16c, not ",
                     LayoutName(dst_layout));
    }
    TF_RETURN_IF_ERROR(CheckChain("reduce_post_ops", &reduce));
    return CheckChain("expand_post_ops", &expand);
  }
  static Status CheckChain(const char* name, ChainAttrs* chain) {
    std::string error;
    if (!PostOpChain::Parse(chain->text, &chain->chain, &error)) {
      return Invalid(name, " \"", chain->text, "\": ", error);
    }
    return FromCore(CheckEltwiseOnly(name, chain->chain));
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", in[kSrc], Layout::nChw16c, channels, &plane));
    const int64_t products = (Size(channels) * squeezed).value();
    const int64_t sizes[] = {products, squeezed, products, channels};
    for (int i = 0; i < 4; ++i) {
      const int64_t elements = NumElements(in[kFirstWeights + i]);
      if (elements == kUnknown || offsets[i] <= elements - sizes[i]) continue;
      const absl::string_view name = kWeights[i];
      return Invalid(name.substr(0, name.find(':')), " of ", elements, " elements must have ",
                     sizes[i], " for ", channels, " channels and ", squeezed,
                     " squeezed ones, from element ", offsets[i], " on");
    }
    return scale_src ? MakeShape(Layout::nChw16c, channels, plane, &dst->emplace_back())
                     : SampleChannelShape(dst_layout, plane.n, channels, &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    Plane plane;
    TF_RETURN_IF_ERROR(ReadPlane("src", in[kSrc], Layout::nChw16c, channels, &plane));
    SqueezeExciteDesc desc;
    TF_RETURN_IF_ERROR(MakeView(dtype, Layout::nChw16c, channels, {}, plane, &desc.src));
    const Plane dst_plane = scale_src ? plane : Plane{plane.n, 1, 1};
    TF_RETURN_IF_ERROR(MakeView(dtype, OfOnePixel(dst_layout), channels, {}, dst_plane, &desc.dst));
    desc.squeezed = squeezed;
    desc.reduce_post_ops = reduce.chain;
    desc.expand_post_ops = expand.chain;
    desc.scale_src = scale_src;
    return FromCore(MakeSqueezeExcitePlan(desc, ActiveIsa(), site.threads, plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    const auto part = [&](int i) { return m.in<float>(kFirstWeights + i) + offsets[i]; };
    SqueezeExciteBuffers buffers;
    buffers.src = m.in<float>(kSrc);
    buffers.reduce_weights = part(0);
    buffers.reduce_bias = part(1);
    buffers.expand_weights = part(2);
    buffers.expand_bias = part(3);
    buffers.dst = m.out<float>();
    buffers.scratch = m.scratch;
    RunSqueezeExcite(plan, buffers, pool);
  }

  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    memory->blocking = {{"reduce_splits", plan.reduce.splits},
                        {"expand_splits", plan.expand.splits}};
  }
  std::vector<int> reusable_inputs() const {
    return scale_src ? std::vector<int>{kSrc} : std::vector<int>();
  }
  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors()
        .Input(kSrc, Layout::nChw16c, {channels})
        .Output(0, dst_layout, {channels});
  }
};

const OpRegistration<SqueezeExcite> squeeze_excite_registration;

}  // namespace
}  // namespace bd
