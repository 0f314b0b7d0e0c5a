// The parts of an op's registration and of its line in the verbose log that do not depend on the
// op.
#pragma once

#include <string>
#include <vector>

#include "cc/tensorflow/attrs/attr_visitor.h"
#include "cc/tensorflow/attrs/shape_fns.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace bd {

// What TensorFlow calls an op, its inputs and its outputs, "src: T" for example. What they mean
// is documented in Python (python/ops), but for ops that users do not call.
struct OpSignature {
  const char* name;
  std::vector<const char*> inputs, outputs;
  const char* doc;
};

void RegisterOp(const OpSignature& signature, void (*visit)(AttrVisitor&),
                absl::Status (*shapes)(tensorflow::shape_inference::InferenceContext*),
                tensorflow::OpKernel* (*kernel)(tensorflow::OpKernelConstruction*));

// The first output has the shape of input `like`, if that is not negative. `keeps_batch`: its
// first dimension is that of the first input.
absl::Status SetOutputShapes(tensorflow::shape_inference::InferenceContext* c,
                             const std::vector<PartialTensorShape>& dst, int like,
                             bool keeps_batch);

// "conv avx512 direct [1,2,8,8,16] [3,3,32,64]->[1,4,8,8,16] channels=32 padding="SAME"": the op,
// the instruction set, the algorithm, the shapes, and the attributes that are not their defaults.
std::string DescribeExecution(tensorflow::OpKernelContext* ctx, const MemoryPlan& plan,
                              const std::vector<tensorflow::TensorShape>& dst);

template <typename Op>
absl::Status ReadAttrsOf(tensorflow::shape_inference::InferenceContext* c, Op* op) {
  return ReadAttrs([c](absl::string_view name) { return c->GetAttr(name); }, op);
}

template <typename Op>
absl::Status ReadAttrsOf(tensorflow::OpKernelConstruction* ctx, Op* op) {
  const tensorflow::AttrSlice attrs(ctx->def());
  return ReadAttrs([&](absl::string_view name) { return attrs.Find(name); }, op);
}

}  // namespace bd
