// Values of the variables that hold a function's weights: BlockdnnReadWeights, those that lie in a
// file, and BlockdnnSnapshot, those that others may assign anew; BlockdnnWeightsVariable, a
// variable for the former, and BlockdnnLoadWeights, its first value.
#include <string>

#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/weights/weights_cache.h"
#include "cc/tensorflow/weights/weights_file.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
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
    Tensor weights;
    OP_REQUIRES_OK(ctx, Read(ctx, 0, &weights));
    ctx->set_output(0, weights);
  }

  bool IsExpensive() override { return false; }

 protected:
  // From the file that input `index` names.
  Status Read(OpKernelContext* ctx, int index, Tensor* weights) const {
    const Tensor& name = ctx->input(index);
    if (!tensorflow::TensorShapeUtils::IsScalar(name.shape())) {
      return Invalid("file must be a scalar, got ", name.shape().DebugString());
    }
    const std::string path = name.scalar<tensorflow::tstring>()();
    tensorflow::core::RefCountPtr<WeightsFile> file;
    TF_RETURN_IF_ERROR(WeightsFile::Open(path, &file));
    const Status status = file->Read(offset_, dtype_, shape_, weights);
    return status.ok() ? status : Invalid(path, ": ", status.message());
  }

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

class WeightsVariableOp : public tensorflow::OpKernel {
 public:
  explicit WeightsVariableOp(tensorflow::OpKernelConstruction* ctx) : OpKernel(ctx) {
    tensorflow::DataType dtype;
    TensorShape shape;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("shape", &shape));
    handle_ = Tensor(tensorflow::DT_RESOURCE, TensorShape({}));
    handle_.scalar<tensorflow::ResourceHandle>()() =
        tensorflow::ResourceHandle::MakeRefCountingHandle(
            new tensorflow::Var(dtype), ctx->device()->attributes().name(), {{dtype, shape}});
  }

  void Compute(OpKernelContext* ctx) override { ctx->set_output(0, handle_); }

  bool IsExpensive() override { return false; }

 private:
  Tensor handle_;
};

REGISTER_OP("BlockdnnWeightsVariable")
    .Output("handle: resource")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .SetIsStateful()
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      tensorflow::DataType dtype;
      TensorShape known;
      TF_RETURN_IF_ERROR(c->GetAttr("dtype", &dtype));
      TF_RETURN_IF_ERROR(c->GetAttr("shape", &known));
      tensorflow::shape_inference::ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->MakeShapeFromTensorShape(known, &shape));
      c->set_output(0, c->Scalar());
      c->set_output_handle_shapes_and_types(0, {{shape, dtype}});
      return absl::OkStatus();
    })
    .Doc(R"doc(
A variable without a name or value, the same in each run of a session.

It lives as long as the op or any tensor of its handle: a signature that is held without the
SavedModel that it was loaded with has its weights.
)doc");

REGISTER_KERNEL_BUILDER(Name("BlockdnnWeightsVariable").Device(tensorflow::DEVICE_CPU),
                        WeightsVariableOp);

class LoadWeightsOp : public ReadWeightsOp {
 public:
  using ReadWeightsOp::ReadWeightsOp;

  void Compute(OpKernelContext* ctx) override {
    Tensor weights;
    OP_REQUIRES_OK(ctx, Read(ctx, 1, &weights));
    tensorflow::core::RefCountPtr<tensorflow::Var> variable;
    OP_REQUIRES_OK(ctx,
                   tensorflow::LookupResource(ctx, tensorflow::HandleFromInput(ctx, 0), &variable));
    tensorflow::mutex_lock lock(*variable->mu());
    *variable->tensor() = weights;
    variable->is_initialized = true;
  }
};

REGISTER_OP("BlockdnnLoadWeights")
    .Input("variable: resource")
    .Input("file: string")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Attr("offset: int >= 0")
    .SetIsStateful()
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      tensorflow::shape_inference::ShapeHandle shape;
      return c->WithRank(c->input(1), 0, &shape);
    })
    .Doc(R"doc(
Gives a BlockdnnWeightsVariable the value that BlockdnnReadWeights has for the same arguments.

TensorFlow's own assignment does not know variables that have no name.
)doc");

REGISTER_KERNEL_BUILDER(Name("BlockdnnLoadWeights").Device(tensorflow::DEVICE_CPU), LoadWeightsOp);

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
