#include "cc/tensorflow/ops/registration.h"

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

}  // namespace bd
