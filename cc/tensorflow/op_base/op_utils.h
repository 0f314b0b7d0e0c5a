// What every kernel needs of TensorFlow: the pool, the input shapes, the output.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "cc/base/memory/huge_pages.h"
#include "cc/base/threads/pool_size.h"
#include "cc/base/threads/thread_pool.h"
#include "cc/tensorflow/attrs/shape_fns.h"
#include "cc/tensorflow/op_base/tails.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace bd {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class PreparedLaunch;  // launch.h

// Of the size that pool_size.h decides, once a process.
inline ThreadPool& SharedPool(tensorflow::DeviceBase* device) {
  const auto* workers = device->tensorflow_cpu_worker_threads();
  return ThreadPool::Shared(FixPoolSize(workers == nullptr ? 0 : workers->num_threads));
}

// The base of every op: it runs on our own pool, and between checks of its tails where they are
// asked for.
class PoolOpKernel : public OpKernel {
 public:
  explicit PoolOpKernel(OpKernelConstruction* ctx)
      : OpKernel(ctx), pool_(SharedPool(ctx->device())) {}

  void Compute(OpKernelContext* ctx) final {
    if (!check_tails_) return Execute(ctx, nullptr);
    const BlockedTensors blocked = Blocked(ctx);
    OP_REQUIRES_OK(ctx, CheckInputTails(blocked, ctx));
    Execute(ctx, nullptr);
    if (ctx->status().ok()) OP_REQUIRES_OK(ctx, CheckOutputTails(blocked, ctx));
  }

  // The same without checks of tails; *prepared stays null where there is nothing that later
  // executions could repeat.
  void ComputeAndPrepare(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>* prepared) {
    Execute(ctx, prepared);
  }

  // A static plan holds what later executions need: packed weights of other shapes may go.
  virtual void ReleaseWeights() {}

  // Ops use all threads themselves. Calling them cheap keeps the executor from
  // handing each to another inter-op thread (3 to 10 hops a network, up to
  // 125 us).
  bool IsExpensive() override { return false; }

 protected:
  // The op itself: OpKernel::Compute's contract. `prepared` may be null.
  virtual void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>* prepared) = 0;
  // Which of its inputs and outputs have tails; {} if it knows plain tensors only.
  // Asked before Execute, which rejects shapes that do not fit.
  virtual BlockedTensors Blocked(OpKernelContext* ctx) const = 0;

  ThreadPool& pool() const { return pool_; }

 private:
  ThreadPool& pool_;
  const bool check_tails_ = TailChecksEnabled();
};

inline std::vector<PartialTensorShape> InputShapes(OpKernelContext* ctx) {
  std::vector<PartialTensorShape> shapes;
  for (int i = 0; i < ctx->num_inputs(); ++i) {
    shapes.emplace_back(ctx->input(i).shape().dim_sizes());
  }
  return shapes;
}

// dst, in the memory of one of the inputs `reusable` where nobody else needs it and their size is
// the same; *reused is that input, or -1. With `has_into` that is the op's last input alone, and
// dst begins as what it holds.
inline Status AllocateDst(OpKernelContext* ctx, bool has_into, absl::Span<const int> reusable,
                          const TensorShape& shape, Tensor** dst, int* reused) {
  const int into = ctx->num_inputs() - 1;
  if (has_into) reusable = absl::MakeConstSpan(&into, 1);
  *reused = -1;
  TF_RETURN_IF_ERROR(ctx->forward_input_or_allocate_output(reusable, 0, shape, dst, reused));
  PreferHugePages((*dst)->data(), (*dst)->TotalBytes());
  if (has_into && *reused < 0 && shape.num_elements() > 0) {
    memcpy((*dst)->data(), ctx->input(into).data(), (*dst)->TotalBytes());
  }
  return absl::OkStatus();
}

}  // namespace bd
