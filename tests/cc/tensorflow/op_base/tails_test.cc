// An op that writes what it is told, tails included, under
// TF_BLOCKDNN_CHECK_TAILS=1: no op of the library breaks a tail.
#include "cc/tensorflow/op_base/tails.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/log/globals.h"
#include "cc/tensorflow/op_base/op_utils.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/version.h"

namespace bd {
namespace {

// Read when the first op is made.
const int kSwitchedOn = setenv("TF_BLOCKDNN_CHECK_TAILS", "1", 1);

REGISTER_OP("TestCopy")
    .Input("src: T")
    .Output("copies: number * T")
    .Attr("T: type")
    .Attr("number: int = 2")
    .Attr("layout: string")
    .Attr("sizes: list(int)");

// Two copies of src, which it calls plain: what is broken arrives unseen.
class CopyOp : public PoolOpKernel {
 public:
  explicit CopyOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    std::string layout;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("layout", &layout));
    std::vector<int64_t> sizes;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("sizes", &sizes));
    sizes_ = Dims(sizes.data(), sizes.size());
    OP_REQUIRES(ctx, ParseLayout(layout, &layout_), Invalid("layout"));
  }

 protected:
  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>*) override {
    for (int i = 0; i < 2; ++i) ctx->set_output(i, ctx->input(0));
  }

  BlockedTensors Blocked(OpKernelContext*) const override {
    return BlockedTensors().Output(1, layout_, sizes_);
  }

 private:
  Layout layout_;
  Dims sizes_;
};

REGISTER_KERNEL_BUILDER(Name("TestCopy").Device(tensorflow::DEVICE_CPU), CopyOp);

class Cpu : public tensorflow::DeviceBase {
 public:
  Cpu() : DeviceBase(tensorflow::Env::Default()) {
    workers_.num_threads = 1;
    set_tensorflow_cpu_worker_threads(&workers_);
  }
  tensorflow::Allocator* GetAllocator(tensorflow::AllocatorAttributes) override {
    return tensorflow::cpu_allocator();
  }

 private:
  CpuWorkerThreads workers_;
};

// The status of TestCopy on `src`.
absl::Status RunCopy(const Tensor& src, const std::string& layout,
                     const std::vector<int64_t>& sizes) {
  tensorflow::NodeDef node;
  TF_RETURN_IF_ERROR(tensorflow::NodeDefBuilder("copy_7", "TestCopy")
                         .Input("source", 0, src.dtype())
                         .Attr("layout", layout)
                         .Attr("sizes", sizes)
                         .Finalize(&node));
  Cpu cpu;
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel =
      tensorflow::CreateOpKernel(tensorflow::DEVICE_CPU, &cpu, tensorflow::cpu_allocator(), node,
                                 TF_GRAPH_DEF_VERSION, &status);
  TF_RETURN_IF_ERROR(status);
  OpKernelContext::Params params;
  params.device = &cpu;
  params.op_kernel = kernel.get();
  const std::vector<tensorflow::TensorValue> inputs = {
      tensorflow::TensorValue(const_cast<Tensor*>(&src))};
  params.inputs = inputs;
  OpKernelContext ctx(&params, 2);
  kernel->Compute(&ctx);
  return ctx.status();
}

template <typename T>
Tensor Zeros(const std::vector<int64_t>& shape) {
  Tensor tensor(tensorflow::DataTypeToEnum<T>::v(), TensorShape(shape));
  tensor.flat<T>().setZero();
  return tensor;
}

template <typename T>
class TailsTest : public testing::Test {
 protected:
  // TensorFlow logs every op that fails.
  TailsTest() { absl::SetMinLogLevel(absl::LogSeverityAtLeast::kError); }
};

using Types =
    testing::Types<float, Eigen::half, Eigen::bfloat16, int32_t, int8_t, uint8_t, int64_t, bool>;
TYPED_TEST_SUITE(TailsTest, Types);

// Every element but those of the tail may be anything.
TYPED_TEST(TailsTest, OnlyTheTailMatters) {
  for (int64_t channels : {17, 20, 31, 32}) {
    Tensor src = Zeros<TypeParam>({2, 2, 3, 4, 16});
    auto view = src.tensor<TypeParam, 5>();
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t c = 0; c < 32; ++c) {
        for (int64_t pixel = 0; pixel < 12; ++pixel) {
          TypeParam& element = view(n, c / 16, pixel / 4, pixel % 4, c % 16);
          element = TypeParam(1);
          const absl::Status status = RunCopy(src, "nChw16c", {channels});
          if (c < channels) {
            EXPECT_TRUE(status.ok()) << status;
          } else {
            EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
            element = TypeParam(0);
          }
        }
      }
    }
  }
}

TEST(Tails, TheErrorNamesEverything) {
  Tensor src = Zeros<float>({2, 3, 5, 4, 8});
  src.tensor<float, 5>()(1, 2, 3, 2, 7) = -0.5f;
  EXPECT_EQ(RunCopy(src, "nChw8c", {17}).message(),
            "TF_BLOCKDNN_CHECK_TAILS: TestCopy \"copy_7\": output copies[1] is -0.5 at "
            "[n=1, c=23, h=3, w=2], in the tail of nChw8c [2, 17, 5, 4], where all must be zero; "
            "the op that wrote it is wrong, please report it");
}

// Five of 8 output and three of 8 input channels: either tail, and their corner.
TEST(Tails, TwoDimensionsInBlocks) {
  Tensor src = Zeros<float>({2, 1, 1, 3, 3, 8, 8});
  auto view = src.tensor<float, 7>();
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t o = 0; o < 8; ++o) {
      view(1, 0, 0, 2, 1, i, o) = 1;
      const absl::Status status = RunCopy(src, "gOIhw8i8o", {5, 3});
      EXPECT_EQ(status.ok(), o < 5 && i < 3) << o << " " << i;
      if (!status.ok()) {
        const std::string place = absl::StrCat("[g=1, o=", o, ", i=", i, ", h=2, w=1]");
        EXPECT_NE(status.message().find(place), absl::string_view::npos) << status;
      }
      view(1, 0, 0, 2, 1, i, o) = 0;
    }
  }
}

TEST(Tails, NanIsNotZeroAndMinusZeroIs) {
  Tensor src = Zeros<float>({1, 1, 1, 1, 16});
  src.flat<float>()(15) = -0.f;
  EXPECT_TRUE(RunCopy(src, "nChw16c", {3}).ok());
  src.flat<float>()(15) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(RunCopy(src, "nChw16c", {3}).message().find("is nan at [n=0, c=15, h=0, w=0]"),
            absl::string_view::npos);
}

// Plain layouts have no tails, and a wrong shape is not this check's affair.
TEST(Tails, NothingToCheck) {
  Tensor src = Zeros<float>({1, 1, 2, 2, 16});
  src.flat<float>().setConstant(1.f);
  EXPECT_TRUE(RunCopy(src, "nhwc", {3}).ok());
  EXPECT_TRUE(RunCopy(src, "nChw16c", {17}).ok());
  EXPECT_TRUE(RunCopy(Zeros<float>({16}), "nChw16c", {3}).ok());
  EXPECT_TRUE(RunCopy(Zeros<float>({0, 1, 2, 2, 16}), "nChw16c", {3}).ok());
  EXPECT_TRUE(RunCopy(Zeros<float>({1, 1, 0, 2, 16}), "nChw16c", {3}).ok());
}

}  // namespace
}  // namespace bd
