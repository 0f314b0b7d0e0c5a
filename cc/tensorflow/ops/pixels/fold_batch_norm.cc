// BlockdnnFoldBatchNorm.
#include <array>
#include <cstring>
#include <memory>

#include "cc/base/fork_safe_mutex.h"
#include "cc/base/verbose.h"
#include "cc/core/normalization/batch_norm.h"
#include "cc/tensorflow/ops/pixels/rows.h"

namespace bd {
namespace {

enum { kWeights, kBias, kGamma, kBeta, kMean, kVariance, kInputs };

struct Fold : NormalizationAttrs {
  static constexpr int kLike = kWeights;

  int64_t inner = 1;

  static OpSignature Signature() {
    return {"BlockdnnFoldBatchNorm",
            {"weights: T", "bias: T", "gamma: T", "beta: T", "mean: T", "variance: T"},
            {"folded: T", "shift: T"},
            "Folds batch normalisation by given moments into the linear op before it: with "
            "f = gamma / sqrt(variance + epsilon) these are f weights, in memory "
            "[.., channels, inner], and f (bias - mean) + beta."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("channels: int >= 1", &channels);
    v("inner: int >= 1 = 1", &inner);
    v("epsilon: float = 0.001", &epsilon);
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    const PartialTensorShape row({channels});
    *dst = {in[kWeights], row};
    const int64_t elements = in[kWeights].num_elements();  // -1: not known
    const bool whole = elements % channels == 0 && elements / channels % inner == 0;
    if (elements > 0 && !whole) {
      return Invalid("weights must have a multiple of channels * inner = ", channels, " * ", inner,
                     " elements; got ", in[kWeights].DebugString());
    }
    for (int i = kBias; i < kInputs; ++i) {
      if (in[i].IsCompatibleWith(row)) continue;
      return Invalid("input ", i, " must be [", channels, "]; got ", in[i].DebugString());
    }
    return absl::OkStatus();
  }
};

// The results of an execution, for later ones. Inputs are looked at as WeightsCache looks at
// weights: what has the same fingerprint twice in a row is held from then on, so that whoever
// assigns new values has to take other memory; until then, and where others than TensorFlow may
// write into the memory, everything is computed anew. It prepares nothing: its results lie where
// they lay before.
class FoldBatchNormOp : public PoolOpKernel {
 public:
  explicit FoldBatchNormOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadAttrsOf(ctx, &op_));
  }

 private:
  struct Result {
    Tensor folded, shift;
    std::array<WeightsFingerprint, kInputs> fingerprints;
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
    ShapeList shapes;
    OP_REQUIRES_OK(ctx, op_.Shapes(InputShapes(ctx), &shapes));
    std::shared_ptr<const Result> last = Last();
    if (last == nullptr || !last->Holds(ctx)) {
      const auto made = std::make_shared<Result>();
      OP_REQUIRES_OK(ctx, Make(ctx, made.get()));
      if (last != nullptr && last->fingerprints == made->fingerprints) Hold(ctx, *last, made.get());
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
        ctx->allocate_temp(tensorflow::DT_FLOAT, TensorShape({op_.channels}), &made->shift));
    for (int i = 0; i < kInputs; ++i) made->fingerprints[i] = WeightsFingerprint::At(ctx->input(i));
    const auto row = [&](int i) { return static_cast<const float*>(ctx->input(i).data()); };
    FoldBatchNormDesc desc;
    desc.channels = op_.channels;
    desc.inner = op_.inner;
    desc.outer = weights.NumElements() / op_.channels / op_.inner;
    desc.epsilon = op_.epsilon;
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

  Fold op_;
  ForkSafeMutex mutex_;
  std::shared_ptr<const Result> last_;
};

const OpRegistration<Fold, FoldBatchNormOp> fold_registration;

}  // namespace
}  // namespace bd
