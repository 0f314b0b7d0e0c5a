// BlockdnnFoldBatchNorm.
#include <array>
#include <cstring>
#include <memory>

#include "cc/base/fork_safe_mutex.h"
#include "cc/base/verbose.h"
#include "cc/core/normalization/fold_batch_norm.h"
#include "cc/tensorflow/attrs/pixels/fold_batch_norm_attrs.h"
#include "cc/tensorflow/weights/weights_cache.h"

namespace bd {
namespace {

enum { kWeights, kBias, kGamma, kBeta, kMean, kVariance, kInputs };

// The results of an execution, for later ones. Inputs are looked at as WeightsCache looks at
// weights: what has the same glance twice in a row is held from then on, so that whoever assigns
// new values has to take other memory; until then, and where others than TensorFlow may write into
// the memory, everything is computed anew.
class FoldBatchNormOp : public PoolOpKernel {
 public:
  explicit FoldBatchNormOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
  }

 private:
  struct Result {
    Tensor folded, shift;
    std::array<WeightsGlance, kInputs> glances;
    std::array<Tensor, kInputs> inputs;  // where they are held

    bool Holds(OpKernelContext* ctx) const {
      for (int i = 0; i < kInputs; ++i) {
        const Tensor& now = ctx->input(i);
        if (inputs[i].data() != now.data() || inputs[i].shape() != now.shape()) return false;
      }
      return true;
    }
  };

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }

  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>*) override {
    OP_REQUIRES_OK(ctx, attrs_.CheckShapes(InputShapes(ctx, 0)));
    std::shared_ptr<const Result> last = Last();
    if (last == nullptr || !last->Holds(ctx)) {
      const auto made = std::make_shared<Result>();
      OP_REQUIRES_OK(ctx, Make(ctx, made.get()));
      if (last != nullptr && last->glances == made->glances) Hold(ctx, *last, made.get());
      last = made;
      std::lock_guard<ForkSafeMutex> lock(mutex_);
      last_ = made;
    }
    ctx->set_output(0, last->folded);
    ctx->set_output(1, last->shift);
  }

  std::shared_ptr<const Result> Last() {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    return last_;
  }

  Status Make(OpKernelContext* ctx, Result* made) {
    const Tensor& weights = ctx->input(kWeights);
    TF_RETURN_IF_ERROR(ctx->allocate_temp(tensorflow::DT_FLOAT, weights.shape(), &made->folded));
    TF_RETURN_IF_ERROR(
        ctx->allocate_temp(tensorflow::DT_FLOAT, TensorShape({attrs_.channels}), &made->shift));
    for (int i = 0; i < kInputs; ++i) made->glances[i] = WeightsGlance::At(ctx->input(i));
    const auto row = [&](int i) { return static_cast<const float*>(ctx->input(i).data()); };
    FoldBatchNormDesc desc;
    desc.channels = attrs_.channels;
    desc.inner = attrs_.inner;
    desc.outer = weights.NumElements() / attrs_.channels / attrs_.inner;
    desc.epsilon = attrs_.epsilon;
    const FoldBatchNormArgs args = {row(kWeights),
                                    row(kBias),
                                    row(kGamma),
                                    row(kBeta),
                                    row(kMean),
                                    row(kVariance),
                                    static_cast<float*>(made->folded.data()),
                                    static_cast<float*>(made->shift.data())};
    RunLogged([&] { return absl::StrCat("fold_batch_norm ", weights.shape().DebugString()); },
              [&] { FoldBatchNorm(desc, args, pool()); });
    return absl::OkStatus();
  }

  // Equal results stay in the memory of the last ones, where whoever packed them knows them.
  static void Hold(OpKernelContext* ctx, const Result& last, Result* made) {
    for (int i = 0; i < kInputs; ++i) {
      if (StaysWhileHeld(ctx->input(i))) made->inputs[i] = ctx->input(i);
    }
    const auto keep = [](const Tensor& old, Tensor* own) {
      const bool equal =
          old.shape() == own->shape() && memcmp(old.data(), own->data(), own->TotalBytes()) == 0;
      if (equal) *own = old;
    };
    keep(last.folded, &made->folded);
    keep(last.shift, &made->shift);
  }

  FoldBatchNormAttrs attrs_;
  ForkSafeMutex mutex_;
  std::shared_ptr<const Result> last_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnFoldBatchNorm").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    FoldBatchNormOp);

}  // namespace
}  // namespace bd
