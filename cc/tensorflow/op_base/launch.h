// An execution in two halves: what an op resolves from shapes and weights (a Launch), and
// the run on memory. A Launch that outlasts its execution can be run again without a context.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/verbose.h"
#include "cc/tensorflow/op_base/op_utils.h"
#include "cc/tensorflow/op_base/scratchpad.h"

namespace bd {

struct WeightsLease;  // cc/tensorflow/weights

// Base pointers of one execution, the inputs in the op's order. Of which type elements are, plans
// know: a part of a tensor starts some bytes after the base.
struct LaunchMemory {
  const void* const* inputs;
  void* const* outputs;
  void* scratch;                          // 64-byte aligned
  const WeightsLease* weights = nullptr;  // one for each input of weights, if they are packed

  template <typename T>
  const T* in(int i, int64_t bytes = 0) const {
    return reinterpret_cast<const T*>(static_cast<const char*>(inputs[i]) + bytes);
  }
  template <typename T>
  T* out(int i = 0, int64_t bytes = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(outputs[i]) + bytes);
  }
  // All from input `first` on.
  template <typename T>
  const T* const* all_in(int first) const {
    return reinterpret_cast<const T* const*>(inputs + first);
  }
};

// A Launch for later executions on inputs of the same shapes. Safe to run on many threads.
class PreparedLaunch {
 public:
  virtual ~PreparedLaunch() = default;
  virtual void Run(const LaunchMemory& memory) const = 0;
  virtual int64_t scratch_bytes() const = 0;
  // The inputs that must still be in the very memory they were in.
  virtual absl::Span<const int> fixed_inputs() const = 0;
};

// The kernel of an op whose outputs Launch computes:
//
//   const TensorShape& dst_shape(int output = 0) const;
//   int64_t scratch_bytes() const;
//   absl::Span<const int> fixed_inputs() const;
//   bool lasts() const;  // false if it holds memory of this execution
//   void Run(const LaunchMemory& memory, ThreadPool& pool) const;
template <typename Launch>
class LaunchOpKernel : public PoolOpKernel {
 public:
  using PoolOpKernel::PoolOpKernel;

 protected:
  // After all checks of the inputs.
  virtual Status Resolve(OpKernelContext* ctx, Launch* launch) = 0;
  // The verbose log's line.
  virtual std::string Describe(OpKernelContext* ctx, const Launch& launch) const = 0;
  // Whether the first output begins as what the last input holds.
  virtual bool has_into() const { return false; }
  // Whether the output is the first input.
  virtual bool Forwards(const Launch&) const { return false; }

  std::vector<int> reusable_inputs_;  // whose memory the first output may take
  Scratchpad scratchpad_;

 private:
  class Prepared : public PreparedLaunch {
   public:
    Prepared(Launch launch, ThreadPool& pool, int into, size_t dst_bytes)
        : pool_(pool), into_(into), dst_bytes_(dst_bytes), launch_(std::move(launch)) {}
    void Run(const LaunchMemory& memory) const override {
      if (into_ >= 0 && memory.outputs[0] != memory.inputs[into_]) {
        memcpy(memory.outputs[0], memory.inputs[into_], dst_bytes_);
      }
      launch_.Run(memory, pool_);
    }
    int64_t scratch_bytes() const override { return launch_.scratch_bytes(); }
    absl::Span<const int> fixed_inputs() const override { return launch_.fixed_inputs(); }

   private:
    ThreadPool& pool_;
    const int into_;
    const size_t dst_bytes_;
    const Launch launch_;
  };

  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>* prepared) final {
    Launch launch;
    OP_REQUIRES_OK(ctx, Resolve(ctx, &launch));
    if (Forwards(launch)) {
      return RunLogged([&] { return Describe(ctx, launch) + " in place"; },
                       [&] { ctx->set_output(0, ctx->input(0)); });
    }
    Tensor* dst;
    int reused;
    OP_REQUIRES_OK(
        ctx, AllocateDst(ctx, has_into(), reusable_inputs_, launch.dst_shape(0), &dst, &reused));
    const int64_t dst_bytes = dst->TotalBytes();
    int64_t elements = dst->NumElements();
    absl::InlinedVector<void*, 4> outputs = {dst->data()};
    for (int i = 1; i < ctx->num_outputs(); ++i) {
      OP_REQUIRES_OK(ctx, ctx->allocate_output(i, launch.dst_shape(i), &dst));
      PreferHugePages(dst->data(), dst->TotalBytes());
      elements += dst->NumElements();
      outputs.push_back(dst->data());
    }
    if (elements == 0) return;
    ScratchpadMemory scratchpad;
    OP_REQUIRES_OK(ctx, scratchpad_.Take(ctx, launch.scratch_bytes(), &scratchpad));
    absl::InlinedVector<const void*, 8> inputs;
    for (int i = 0; i < ctx->num_inputs(); ++i) inputs.push_back(ctx->input(i).data());
    const LaunchMemory memory = {inputs.data(), outputs.data(), scratchpad.data()};
    // Whether dst took the memory of an input: a sum's operand, or what it is written into.
    RunLogged([&] { return Describe(ctx, launch) + (reused >= 0 ? " in place" : ""); },
              [&] { launch.Run(memory, pool()); });
    // Scratch that the kernel keeps is this kernel's.
    if (prepared == nullptr || !launch.lasts()) return;
    if (scratchpad_.keeps() && launch.scratch_bytes() > 0) return;
    *prepared = std::make_unique<Prepared>(std::move(launch), pool(),
                                           has_into() ? ctx->num_inputs() - 1 : -1, dst_bytes);
  }
};

}  // namespace bd
