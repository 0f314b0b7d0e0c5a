// Values of the variables that hold a function's weights: BlockdnnReadWeights, those that lie in a
// file, and BlockdnnSnapshot, those that others may assign anew.
#include <string>

#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/weights/weights_cache.h"
#include "cc/tensorflow/weights/weights_file.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/tstring.h"

namespace bd {
namespace {

class ReadWeightsOp : public tensorflow::OpKernel {
 public:
  explicit ReadWeightsOp(tensorflow::OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("shape", &shape_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("offset", &offset_));
  }

  void Compute(OpKernelContext* ctx) override {
    OP_REQUIRES(ctx, tensorflow::TensorShapeUtils::IsScalar(ctx->input(0).shape()),
                Invalid("file must be a scalar, got ", ctx->input(0).shape().DebugString()));
    const std::string path = ctx->input(0).scalar<tensorflow::tstring>()();
    tensorflow::core::RefCountPtr<WeightsFile> file;
    OP_REQUIRES_OK(ctx, WeightsFile::Open(path, &file));
    Tensor weights;
    const Status status = file->Read(offset_, dtype_, shape_, &weights);
    OP_REQUIRES(ctx, status.ok(), Invalid(path, ": ", status.message()));
    ctx->set_output(0, weights);
  }

  bool IsExpensive() override { return false; }

 private:
  tensorflow::DataType dtype_;
  TensorShape shape_;
  int64_t offset_;
};

REGISTER_OP("BlockdnnReadWeights")
    .Input("file: string")
    .Output("weights: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Attr("offset: int >= 0")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      TensorShape known;
      TF_RETURN_IF_ERROR(c->GetAttr("shape", &known));
      tensorflow::shape_inference::ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &shape));
      TF_RETURN_IF_ERROR(c->MakeShapeFromTensorShape(known, &shape));
      c->set_output(0, shape);
      return absl::OkStatus();
    })
    .Doc(R"doc(
A tensor in a file, where it lies there.

The file is mapped and not read. Nobody may write into it while the tensor is held; another file in
its place is another one.

file: its path, a scalar.
offset: of the tensor, in bytes, a multiple of 64.
)doc");

REGISTER_KERNEL_BUILDER(Name("BlockdnnReadWeights").Device(tensorflow::DEVICE_CPU), ReadWeightsOp);

class SnapshotOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& value = ctx->input(0);
    ctx->set_output(0, StaysWhileHeld(value) ? value : tensorflow::tensor::DeepCopy(value));
  }

  bool IsExpensive() override { return false; }
};

REGISTER_OP("BlockdnnSnapshot")
    .Input("value: T")
    .Output("snapshot: T")
    .Attr("T: type")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape)
    .Doc(R"doc(
The tensor in the same memory, where TensorFlow writes no other values into that as long as somebody
holds it; else a copy.
)doc");

REGISTER_KERNEL_BUILDER(Name("BlockdnnSnapshot").Device(tensorflow::DEVICE_CPU), SnapshotOp);

}  // namespace
}  // namespace bd
