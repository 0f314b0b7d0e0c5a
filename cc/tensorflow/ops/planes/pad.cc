// BlockdnnPad.
#include "cc/core/pad/pad.h"

#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

struct Pad : ActivationOp {
  using Plan = PadPlan;

  std::vector<int64_t> paddings;  // top, bottom, left, right

  static OpSignature Signature() {
    return {"BlockdnnPad", {"src: T"}, {"dst: dst_type"}, "See bd.ops.pad."};
  }

  void Visit(AttrVisitor& v) {
    types.Visit(v);
    v("channels: int >= 1", &channels);
    v("paddings: list(int)", &paddings);
  }
  Status Check() {
    if (paddings.size() != 4) return Invalid("paddings must be [top, bottom, left, right]");
    return types.CheckSame("pad");
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    Plane plane;
    TF_RETURN_IF_ERROR(SrcPlane(in[0], &plane));
    for (int axis : {0, 1}) {
      int64_t& size = axis == 0 ? plane.h : plane.w;
      if (size == kUnknown) continue;
      const int64_t before = paddings[2 * axis], after = paddings[2 * axis + 1];
      if (size + before + after < 0) {
        return Invalid("paddings ", before, " and ", after, " cut off more than the ", size,
                       " pixels");
      }
      size += before + after;
    }
    return DstShape(plane, in, dst);
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    Plane plane;
    TF_RETURN_IF_ERROR(SrcPlane(in[0], &plane));
    return FromCore(MakePadPlan({plane.n * ((channels + 15) / 16),
                                 plane.h,
                                 plane.w,
                                 paddings[0],
                                 paddings[1],
                                 paddings[2],
                                 paddings[3],
                                 {types.src, types.of_src()}},
                                plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunPad(plan, m.in<void>(0), m.out<void>(), pool);
  }
};

const OpRegistration<Pad> pad_registration;

}  // namespace
}  // namespace bd
