// BlockdnnRnnGrad.
#include <algorithm>
#include <memory>

#include "cc/base/verbose.h"
#include "cc/core/rnn/rnn_grad.h"
#include "cc/tensorflow/op_kernels/products/rnn_op.h"
#include "cc/tensorflow/weights/weights_cache.h"

namespace bd {
namespace {

// Inputs behind those of BlockdnnRnn.
enum { kWorkspace, kDstGrad, kStateGrad, kCellGrad, kNumGrads };
enum { kSums, kRecurrentSums, kBefore, kReset, kFirstState, kFirstCell };

class RnnGradOp : public PoolOpKernel {
 public:
  explicit RnnGradOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 protected:
  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>*) override {
    const int first = attrs_.num_inputs();
    std::vector<PartialTensorShape> shapes = InputShapes(ctx, 0);
    shapes.resize(first);
    RnnSizes sizes;
    OP_REQUIRES_OK(ctx, ReadRnnSizes(attrs_, shapes, &sizes));
    RnnGradPlan plan;
    if (sizes.steps > 0) {
      OP_REQUIRES_OK(ctx, FromCore(MakeRnnGradPlan(DescribeRnn(attrs_, sizes), ActiveIsa(),
                                                   pool().num_threads(), &plan)));
    }
    OP_REQUIRES_OK(ctx, CheckGrads(ctx, plan, sizes));
    RnnGradBuffers b;
    OP_REQUIRES_OK(ctx, Allocate(ctx, sizes, &b));
    if (sizes.batch == 0) return;
    if (sizes.steps == 0) {  // states are handed on
      const int64_t count = sizes.batch * sizes.units;
      std::copy_n(InputData(ctx, first + kStateGrad), count, b.d_h0);
      if (b.d_c0 != nullptr) std::copy_n(InputData(ctx, first + kCellGrad), count, b.d_c0);
      return;
    }
    WeightsLease weights;
    const auto pack = [&](const void* plain, void* packed) {
      PackRnnGradWeights(plan, static_cast<const float*>(plain), static_cast<float*>(packed),
                         pool());
    };
    const PackRequest request = {{"panels", DataType::f32, 0, "rnn_grad"},
                                 {sizes.units, attrs_.gates()},
                                 plan.packed_floats * static_cast<int64_t>(sizeof(float)),
                                 0,
                                 pack};
    OP_REQUIRES_OK(ctx, weights_.Take(ctx, RnnAttrs::kRecurrent, request, &weights));
    Tensor scratch;
    OP_REQUIRES_OK(ctx, TakeMemory(ctx, plan.scratch_bytes, &scratch));
    b.packed = weights.data;
    b.scratch = scratch.data();
    b.workspace = ctx->input(first + kWorkspace).data();
    b.masked = attrs_.has_mask || attrs_.has_lengths;
    b.d_dst = DstSequenceOf(attrs_, sizes, InputData(ctx, first + kDstGrad));
    b.d_hn = InputData(ctx, first + kStateGrad);
    if (attrs_.cell == "lstm") b.d_cn = InputData(ctx, first + kCellGrad);
    RunLogged(
        [&] {
          return absl::StrCat("rnn_grad ", IsaName(ActiveIsa()), " ", attrs_.cell, " batch ",
                              sizes.batch, " steps ", sizes.steps, " units ", sizes.units);
        },
        [&] { RunRnnGrad(plan, b, pool()); });
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }

 private:
  Status CheckGrads(OpKernelContext* ctx, const RnnGradPlan& plan, const RnnSizes& sizes) const {
    const int first = attrs_.num_inputs();
    TensorShape dst;
    PartialTensorShape of_sizes;
    TF_RETURN_IF_ERROR(RnnDstShape(attrs_, sizes, &of_sizes));
    TF_RETURN_IF_ERROR(ToFullShape(of_sizes, &dst));
    const TensorShape state({sizes.batch, sizes.units});
    const size_t workspace = ctx->input(first + kWorkspace).TotalBytes();
    if (sizes.batch > 0 && workspace != plan.forward.workspace_bytes) {
      return Invalid("workspace has ", workspace, " bytes, not the ", plan.forward.workspace_bytes,
                     " of a training run of these sizes");
    }
    if (ctx->input(first + kDstGrad).shape() != dst ||
        ctx->input(first + kStateGrad).shape() != state ||
        (attrs_.cell == "lstm" && ctx->input(first + kCellGrad).shape() != state)) {
      return Invalid("the derivatives must have the shapes of the outputs: dst ", dst.DebugString(),
                     ", states ", state.DebugString());
    }
    return absl::OkStatus();
  }

  Status Allocate(OpKernelContext* ctx, const RnnSizes& sizes, RnnGradBuffers* b) const {
    const bool is_gru = attrs_.cell == "gru";
    const int64_t columns = attrs_.gates() * sizes.units;
    const auto rows = [&](int64_t width) {
      return attrs_.time_major ? TensorShape({sizes.steps, sizes.batch, width})
                               : TensorShape({sizes.batch, sizes.steps, width});
    };
    const auto make = [&](int output, bool wanted, const TensorShape& shape, float** data) {
      Tensor* tensor;
      TF_RETURN_IF_ERROR(ctx->allocate_output(output, wanted ? shape : TensorShape({0}), &tensor));
      PreferHugePages(tensor->data(), tensor->TotalBytes());
      *data = wanted ? static_cast<float*>(tensor->data()) : nullptr;
      return absl::OkStatus();
    };
    const auto make_rows = [&](int output, bool wanted, int64_t width, RnnSequence<float>* to) {
      float* data;
      TF_RETURN_IF_ERROR(make(output, wanted, rows(width), &data));
      *to = SequenceOf(attrs_, sizes, data, width);
      return absl::OkStatus();
    };
    const TensorShape state({sizes.batch, sizes.units});
    TF_RETURN_IF_ERROR(make_rows(kSums, true, columns, &b->d_sums));
    TF_RETURN_IF_ERROR(make_rows(kRecurrentSums, attrs_.two_biases(), columns, &b->d_recurrent));
    TF_RETURN_IF_ERROR(make_rows(kBefore, true, sizes.units, &b->before));
    TF_RETURN_IF_ERROR(make_rows(kReset, is_gru && !attrs_.reset_after, sizes.units, &b->reset));
    TF_RETURN_IF_ERROR(make(kFirstState, true, state, &b->d_h0));
    return make(kFirstCell, attrs_.cell == "lstm", state, &b->d_c0);
  }

  RnnAttrs attrs_;
  WeightsCache weights_{0, WeightsChange::kOften};
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnRnnGrad").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), RnnGradOp);

}  // namespace
}  // namespace bd
