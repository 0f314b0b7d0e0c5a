#include "cc/tensorflow/ops/registration.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "cc/base/cpu/isa.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/types.h"

namespace bd {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

void RegisterOp(const OpSignature& signature, void (*visit)(AttrVisitor&),
                absl::Status (*shapes)(InferenceContext*),
                tensorflow::OpKernel* (*kernel)(tensorflow::OpKernelConstruction*)) {
  tensorflow::OpRegistry::Global()->Register([=](tensorflow::OpRegistrationData* data) {
    tensorflow::OpDefBuilder definition(signature.name);
    for (const char* input : signature.inputs) definition.Input(input);
    for (const char* output : signature.outputs) definition.Output(output);
    AttrVisitor visitor(&definition);
    visit(visitor);
    return definition.SetShapeFn(shapes).Doc(signature.doc).Finalize(data);
  });
  tensorflow::kernel_factory::OpKernelRegistrar(
      tensorflow::KernelDefBuilder(signature.name).Device(tensorflow::DEVICE_CPU).Build(),
      signature.name, kernel);
}

absl::Status SetOutputShapes(InferenceContext* c, const std::vector<PartialTensorShape>& dst,
                             int like, bool keeps_batch) {
  for (size_t i = 0; i < dst.size(); ++i) {
    ShapeHandle shape;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(dst[i], &shape));
    // The same symbol lets optimizers see that.
    if (i == 0 && keeps_batch && dst[0].dims() > 0 && dst[0].dim_size(0) == kUnknown &&
        c->RankKnown(c->input(0))) {
      TF_RETURN_IF_ERROR(c->ReplaceDim(shape, 0, c->Dim(c->input(0), 0), &shape));
    }
    c->set_output(static_cast<int>(i), i == 0 && like >= 0 ? c->input(like) : shape);
  }
  return absl::OkStatus();
}

std::string DescribeExecution(tensorflow::OpKernelContext* ctx, const MemoryPlan& plan,
                              const std::vector<tensorflow::TensorShape>& dst) {
  const tensorflow::NodeDef& node = ctx->op_kernel().def();
  std::string line;
  for (const char c : absl::StripPrefix(node.op(), "Blockdnn")) {
    if (absl::ascii_isupper(c) && !line.empty()) line += '_';
    line += absl::ascii_tolower(c);
  }
  absl::StrAppend(&line, " ", IsaName(ActiveIsa()), plan.algorithm.empty() ? "" : " ",
                  plan.algorithm, plan.note);
  for (int i = 0; i < ctx->num_inputs(); ++i) {
    absl::StrAppend(&line, " ", ctx->input(i).shape().DebugString());
  }
  for (const tensorflow::TensorShape& shape : dst) {
    absl::StrAppend(&line, &shape == &dst[0] ? "->" : " ", shape.DebugString());
  }
  const tensorflow::OpDef* op;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok()) return line;
  for (const tensorflow::OpDef::AttrDef& attr : op->attr()) {
    const auto value = node.attr().find(attr.name());
    if (value == node.attr().end() ||
        (attr.has_default_value() &&
         tensorflow::AreAttrValuesEqual(attr.default_value(), value->second))) {
      continue;
    }
    absl::StrAppend(&line, " ", attr.name(), "=", tensorflow::SummarizeAttrValue(value->second));
  }
  return line;
}

}  // namespace bd
