// BlockdnnRegion: a region in a graph (region.h).
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/tensorflow/regions/region.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace bd {
namespace {

using tensorflow::shape_inference::InferenceContext;

// The function is not at hand here, so whoever writes the node says what it knows.
Status RegionShapes(InferenceContext* c) {
  std::vector<PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr("output_shapes", &shapes));
  if (shapes.empty()) return tensorflow::shape_inference::UnknownShape(c);
  if (static_cast<int>(shapes.size()) != c->num_outputs()) {
    return Invalid("output_shapes must have ", c->num_outputs(), " shapes or none, got ",
                   shapes.size());
  }
  for (int i = 0; i < c->num_outputs(); ++i) {
    tensorflow::shape_inference::ShapeHandle shape;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    c->set_output(i, shape);
  }
  return absl::OkStatus();
}

// What ops of a run may ask for besides their tensors.
OpKernelContext::Params ParamsOf(OpKernelContext* ctx) {
  OpKernelContext::Params params;
  params.step_id = ctx->step_id();
  params.device = ctx->device();
  params.op_device_context = ctx->op_device_context();
  params.resource_manager = ctx->resource_manager();
  params.step_container = ctx->step_container();
  params.rendezvous = ctx->rendezvous();
  params.session_state = ctx->session_state();
  params.cancellation_manager = ctx->cancellation_manager();
  params.function_library = ctx->function_library();
  params.runner = ctx->runner();
  return params;
}

// The op's types against the function's; `verb` is what the function does with them.
Status CheckTypes(const std::string& function, const char* verb, const char* what,
                  const tensorflow::DataTypeVector& wanted,
                  absl::Span<const tensorflow::DataType> actual) {
  if (wanted.size() != actual.size()) {
    return Invalid(function, " ", verb, " ", wanted.size(), " ", what, "s, got ", actual.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == actual[i]) continue;
    return Invalid(function, ": ", what, " ", i, " is ", tensorflow::DataTypeString(wanted[i]),
                   ", got ", tensorflow::DataTypeString(actual[i]));
  }
  return absl::OkStatus();
}

class RegionOp : public OpKernel {
 public:
  explicit RegionOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    tensorflow::NameAttrList f;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("f", &f));
    bool keeps_memory;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("keeps_memory", &keeps_memory));
    OP_REQUIRES(ctx, ctx->function_library() != nullptr,
                Invalid("there is no library with the function ", f.name()));
    const KernelSite site = {ctx->device(), ctx->resource_manager(), ctx->function_library(),
                             ctx->function_library()->GetFunctionLibraryDefinition()};
    OpSequence sequence;
    OP_REQUIRES_OK(ctx, OpSequence::Make(site, f.name(), &sequence));
    OP_REQUIRES_OK(ctx, CheckTypes(f.name(), "takes", "argument", sequence.argument_types(),
                                   ctx->input_types()));
    OP_REQUIRES_OK(ctx, CheckTypes(f.name(), "returns", "result", sequence.result_types(),
                                   ctx->output_types()));
    region_ =
        std::make_unique<Region>(std::move(sequence), keeps_memory ? MostArenas(ctx->device()) : 0);
  }

  void Compute(OpKernelContext* ctx) override {
    std::vector<Tensor> arguments, results;
    for (int i = 0; i < ctx->num_inputs(); ++i) arguments.push_back(ctx->input(i));
    OP_REQUIRES_OK(ctx, region_->Run(ParamsOf(ctx), arguments, &results));
    for (size_t i = 0; i < results.size(); ++i) ctx->set_output(i, results[i]);
  }

  // Its ops use all threads themselves: it stays on the thread that reaches it.
  bool IsExpensive() override { return false; }

 private:
  std::unique_ptr<Region> region_;
};

REGISTER_OP(kRegionOp)
    .Input("args: Tin")
    .Output("results: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .Attr("output_shapes: list(shape) = []")
    .Attr("keeps_memory: bool = true")
    .SetShapeFn(RegionShapes)
    .Doc(R"doc(
Runs a function's ops one after another in the thread that runs this op.

No thread is woken for the call, and nothing is scheduled between its ops. For
functions of ops that use all threads themselves; those with control flow,
asynchronous ops or references are InvalidArgument.

f: the function; its body is run as it is. It is a pure function of its arguments.
output_shapes: static shapes of the results, or nothing.
keeps_memory: memory of the tensors between its ops is kept from one run to the next, for as
  many runs at once as there are threads; runs on shapes that have come before are faster
  for it.
)doc");
REGISTER_KERNEL_BUILDER(Name(kRegionOp).Device(tensorflow::DEVICE_CPU), RegionOp);

}  // namespace
}  // namespace bd
