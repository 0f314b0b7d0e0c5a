// BlockdnnSoftmax.
#include "cc/core/softmax/softmax.h"

#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

struct Softmax : OpDefaults {
  using Plan = SoftmaxPlan;
  static constexpr int kLike = 0;

  static OpSignature Signature() {
    return {"BlockdnnSoftmax", {"src: T"}, {"dst: T"}, "See bd.ops.softmax."};
  }
  void Visit(AttrVisitor& v) { v("T: {float} = DT_FLOAT", &dtype); }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    dst->push_back(in[0]);
    if (in[0].unknown_rank() || in[0].dims() >= 1) return absl::OkStatus();
    return Invalid("softmax along the last axis: src must have 1 dimension or more; got ",
                   in[0].DebugString());
  }
  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    SoftmaxDesc desc;
    desc.rows = NumElements(in[0], 0, in[0].dims() - 1);
    desc.channels = in[0].dim_size(in[0].dims() - 1);
    return FromCore(MakeSoftmaxPlan(desc, ActiveIsa(), plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunSoftmax(plan, m.in<float>(0), m.out<float>(), pool);
  }

  std::vector<int> reusable_inputs() const { return {0}; }
};

const OpRegistration<Softmax> softmax_registration;

}  // namespace
}  // namespace bd
