// What the tests of packed weights share.
#pragma once

#include <atomic>
#include <memory>

#include "cc/tensorflow/weights/weights_cache.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/version.h"
#include "tests/cc/tensorflow/test_device.h"

namespace bd {

REGISTER_OP("TestNothing").Output("nothing: float");

class NothingOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {}
};

REGISTER_KERNEL_BUILDER(Name("TestNothing").Device(tensorflow::DEVICE_CPU), NothingOp);

// A context to take memory from.
class Execution {
 public:
  Execution() {
    tensorflow::NodeDef node;
    AbortUnless(tensorflow::NodeDefBuilder("nothing", "TestNothing").Finalize(&node));
    absl::Status status;
    kernel_ =
        tensorflow::CreateOpKernel(tensorflow::DEVICE_CPU, &device_, tensorflow::cpu_allocator(),
                                   node, TF_GRAPH_DEF_VERSION, &status);
    AbortUnless(status);
    params_.device = &device_;
    params_.op_kernel = kernel_.get();
    ctx_ = std::make_unique<OpKernelContext>(&params_, 1);
  }
  OpKernelContext* ctx() { return ctx_.get(); }

 private:
  TestDevice device_;
  std::unique_ptr<OpKernel> kernel_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> ctx_;
};

inline constexpr int kCount = 1000;

inline Tensor Weights(float value) {
  Tensor weights(tensorflow::DT_FLOAT, TensorShape({kCount}));
  weights.flat<float>().setConstant(value);
  return weights;
}

// Memory of somebody else that a tensor lies in, as NumPy arrays do.
class Borrowed : public tensorflow::TensorBuffer {
 public:
  explicit Borrowed(float* data) : TensorBuffer(data) {}
  size_t size() const override { return kCount * sizeof(float); }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription*) const override {}
  bool OwnsMemory() const override { return false; }
};

// "Packs" by doubling; counts how often.
class Doubling {
 public:
  explicit Doubling(int64_t offset = 0) : count_(kCount - offset) {}
  void operator()(const void* plain, void* packed) {
    ++packed_;
    const float* from = static_cast<const float*>(plain);
    float* to = static_cast<float*>(packed);
    for (int64_t i = 0; i < count_; ++i) to[i] = 2 * from[i];
  }
  int64_t bytes() const { return count_ * sizeof(float); }
  int packed() const { return packed_; }

 private:
  const int64_t count_;
  std::atomic<int> packed_{0};
};

template <typename Pack>
PackRequest Request(const char* algorithm, int64_t blocking, Pack& pack, int64_t bytes) {
  return {{algorithm, DataType::f32, blocking}, {bytes}, bytes, 0, pack};
}

inline PackRequest Request(const char* algorithm, Doubling& doubling, int64_t blocking = 1) {
  return Request(algorithm, blocking, doubling, doubling.bytes());
}

inline float First(const WeightsLease& lease) { return *lease.as<float>(); }

}  // namespace bd
