// BlockdnnBatchNorm and its gradient.
#include "cc/core/normalization/batch_norm.h"

#include "cc/tensorflow/ops/pixels/rows.h"

namespace bd {
namespace {

// The activations come first, then rows of channels.
template <int kActivations>
struct Normalization : NormalizationAttrs {
  using Plan = BatchNormPlan;
  static constexpr int kLike = 0;

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("channels: int >= 1", &channels);
    v("epsilon: float = 0.001", &epsilon);
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    return NormalizationShapes(channels, kActivations, in, dst);
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    *plan = MakeBatchNormPlan({in[0].dim_size(0), channels, PixelsOf(in[0]), epsilon}, ActiveIsa(),
                              site.threads);
    return absl::OkStatus();
  }

  BlockedTensors Blocked(const ShapeList& in) const {
    return BlockedActivations(channels, kActivations, in);
  }
};

// The gradient reads src, so dst takes memory of its own.
struct BatchNorm : Normalization<1> {
  enum { kSrc, kGamma, kBeta };

  static OpSignature Signature() {
    return {"BlockdnnBatchNorm",
            {"src: T", "gamma: T", "beta: T"},
            {"dst: T", "mean: T", "variance: T"},
            "Batch normalisation of a training step, by the moments of each channel over all "
            "images and pixels of a blocked src."};
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    RunBatchNorm(plan,
                 {m.in<float>(kSrc), m.in<float>(kGamma), m.in<float>(kBeta), m.out<float>(0),
                  m.out<float>(1), m.out<float>(2), m.scratch},
                 pool);
  }
};

struct BatchNormGrad : Normalization<2> {
  enum { kDdst, kSrc, kGamma, kBeta, kMean, kVariance, kDmean, kDvariance };

  BatchNormClamp clamp = BatchNormClamp::kNone;

  static OpSignature Signature() {
    return {"BlockdnnBatchNormGrad",
            {"ddst: T", "src: T", "gamma: T", "beta: T", "mean: T", "variance: T", "dmean: T",
             "dvariance: T"},
            {"dsrc: T", "dgamma: T", "dbeta: T"},
            "The gradients of BlockdnnBatchNorm; dmean and dvariance are those of its other "
            "results, and ddst is that of a clamp after its dst."};
  }
  void Visit(AttrVisitor& v) {
    Normalization::Visit(v);
    v.Choice("clamp", &clamp,
             {{"", BatchNormClamp::kNone},
              {"relu", BatchNormClamp::kRelu},
              {"relu6", BatchNormClamp::kRelu6}},
             "");
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    BatchNormGradArgs args;
    args.clamp = clamp;
    args.src = m.in<float>(kSrc);
    args.ddst = m.in<float>(kDdst);
    args.gamma = m.in<float>(kGamma);
    args.beta = m.in<float>(kBeta);
    args.mean = m.in<float>(kMean);
    args.variance = m.in<float>(kVariance);
    args.dmean = m.in<float>(kDmean);
    args.dvariance = m.in<float>(kDvariance);
    args.dsrc = m.out<float>(0);
    args.dgamma = m.out<float>(1);
    args.dbeta = m.out<float>(2);
    args.scratch = m.scratch;
    RunBatchNormGrad(plan, args, pool);
  }
  std::vector<int> reusable_inputs() const { return {kDdst}; }
};

const OpRegistration<BatchNorm> batch_norm;
const OpRegistration<BatchNormGrad> batch_norm_grad;

}  // namespace
}  // namespace bd
