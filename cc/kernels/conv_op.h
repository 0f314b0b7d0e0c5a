// What the ops on packed weights share: plan by input shapes, weights packed at
// first use, run. Their inputs are src, weights and the operands of the chain.
#ifndef CC_KERNELS_CONV_OP_H_
#define CC_KERNELS_CONV_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "cc/core/conv/conv.h"
#include "cc/kernels/op_utils.h"
#include "cc/kernels/plan_cache.h"
#include "cc/kernels/weights_cache.h"
#include "cc/ops/attrs.h"

namespace bd {

struct ConvOpPlan {
  ConvPlan conv;
  TensorShape dst_shape;
};

class ConvOpBase : public PoolOpKernel {
 public:
  // `primitive` is what the verbose log calls it.
  ConvOpBase(OpKernelConstruction* ctx, const char* primitive)
      : PoolOpKernel(ctx), primitive_(primitive) {}

 protected:
  static constexpr int kSrc = 0, kWeights = 1, kFirstArg = 2;

  void Execute(OpKernelContext* ctx) override;

  // To be called by constructors, once the attributes are read.
  void Init(const ChainAttrs& chain, int64_t weights_offset, bool constant_weights);

  // The convolution of the inputs of ctx and the shape of its result, after all
  // checks.
  virtual Status Describe(OpKernelContext* ctx, ConvDesc* desc, TensorShape* dst_shape) const = 0;

 private:
  Status MakePlan(OpKernelContext* ctx, ConvOpPlan* plan) const;

  const char* const primitive_;
  int64_t weights_offset_ = 0;
  std::vector<int> reusable_inputs_;  // operands of sums, whose memory dst may take
  PlanCache<ConvOpPlan> plans_;
  std::unique_ptr<WeightsCache> weights_;
};

}  // namespace bd

#endif  // CC_KERNELS_CONV_OP_H_
