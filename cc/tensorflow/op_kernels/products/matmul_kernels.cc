// BlockdnnPackedMatmul.
#include <algorithm>
#include <memory>
#include <optional>

#include "cc/base/verbose.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/post_ops/post_ops_bind.h"
#include "cc/tensorflow/attrs/products/matmul_attrs.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/weights/weights_cache.h"

namespace bd {
namespace {

// to[m][k] = from[k][m], by tiles that stay in L1.
void Transpose(const float* from, int64_t k, int64_t m, float* to, ThreadPool& pool) {
  constexpr int64_t kTile = 16;
  pool.ParallelFor((m + kTile - 1) / kTile, [&](int64_t task, int) {
    const int64_t begin = task * kTile, end = std::min(m, begin + kTile);
    for (int64_t row = 0; row < k; ++row) {
      for (int64_t column = begin; column < end; ++column) {
        to[column * k + row] = from[row * m + column];
      }
    }
  });
}

// What an execution needs for `rows` rows: a, where it comes transposed, and the product's own.
struct MatmulScratch {
  ScratchBook book;
  ScratchPiece<float> rows;
  ScratchPiece<uint8_t> product;
};

MatmulScratch BookMatmul(const MatmulAttrs& attrs, const GemmPlan& plan, int64_t rows) {
  MatmulScratch s;
  s.rows = s.book.Book<float>("rows", attrs.transpose_a ? rows * plan.desc.k : 0);
  s.product = s.book.Book<uint8_t>("rows in pairs", GemmScratchBytes(plan, rows));
  return s;
}

// Packing for pairs is for a matrix that many products share.
GemmDesc DescribeMatmul(const MatmulAttrs& attrs, const MatmulSizes& sizes) {
  GemmDesc d;
  d.k = sizes.k;
  d.n = sizes.n;
  d.pairs = attrs.constant_b && !attrs.direct;
  return d;
}

Status PlanMatmulMemory(const NodeAttrs& node, const std::vector<PartialTensorShape>& inputs, int,
                        MemoryPlan* memory) {
  MatmulAttrs attrs;
  TF_RETURN_IF_ERROR(attrs.Read(&node));
  MatmulSizes sizes;
  PartialTensorShape dst;
  TF_RETURN_IF_ERROR(MatmulShape(attrs, inputs, &sizes, &dst));
  if (dst.num_elements() == 0) return absl::OkStatus();
  GemmPlan plan;
  TF_RETURN_IF_ERROR(FromCore(MakeGemmPlan(DescribeMatmul(attrs, sizes), ActiveIsa(), &plan)));
  memory->scratch = BookMatmul(attrs, plan, dst.num_elements() / sizes.n).book;
  memory->packed_weights = plan.packed_bytes;
  return absl::OkStatus();
}

const MemoryPlanRow row("BlockdnnPackedMatmul", PlanMatmulMemory);

class PackedMatmulOp : public PoolOpKernel {
 public:
  explicit PackedMatmulOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
    weights_.emplace(0, attrs_.constant_b ? WeightsChange::kNever : WeightsChange::kOften);
  }

 protected:
  void Execute(OpKernelContext* ctx, std::unique_ptr<PreparedLaunch>*) override {
    MatmulSizes sizes;
    PartialTensorShape partial;
    OP_REQUIRES_OK(ctx, MatmulShape(attrs_, InputShapes(ctx, 0), &sizes, &partial));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, ToFullShape(partial, &shape));
    Tensor* dst;
    OP_REQUIRES_OK(ctx, AllocateDst(ctx, shape, &dst));
    if (dst->NumElements() == 0) return;
    GemmPlan plan;
    OP_REQUIRES_OK(ctx, FromCore(MakeGemmPlan(DescribeMatmul(attrs_, sizes), ActiveIsa(), &plan)));
    const auto pack = [&](const void* plain, void* to) {
      const GemmB b = {static_cast<const float*>(plain), attrs_.transpose_b ? 1 : sizes.n,
                       attrs_.transpose_b ? sizes.k : 1};
      PackGemm(plan, b, static_cast<float*>(to), &pool());
    };
    const PackRequest request = {
        {attrs_.transpose_b ? "transposed" : "panels", DataType::f32, plan.blocking(), "matmul"},
        {sizes.k, sizes.n},
        plan.packed_bytes,
        0,
        pack};
    WeightsLease packed;
    OP_REQUIRES_OK(ctx, weights_->Take(ctx, MatmulAttrs::kB, request, &packed));
    const int64_t rows = dst->NumElements() / sizes.n;
    GemmArgs args;
    args.a = InputData(ctx, MatmulAttrs::kA);
    args.a_row_stride = sizes.k;
    const MatmulScratch pieces = BookMatmul(attrs_, plan, rows);
    Tensor memory;
    if (pieces.book.bytes() > 0) {
      const TensorShape bytes({static_cast<int64_t>(pieces.book.bytes())});
      OP_REQUIRES_OK(ctx, ctx->allocate_temp(tensorflow::DT_UINT8, bytes, &memory));
    }
    const Scratch scratch(memory.data());
    args.scratch = scratch.Grant(pieces.product);
    if (attrs_.transpose_a) {
      float* to = scratch.Grant(pieces.rows);
      Transpose(args.a, sizes.k, rows, to, pool());
      args.a = to;
    }
    args.packed = packed.data;
    args.c = static_cast<float*>(dst->data());
    args.c_row_stride = sizes.n;
    if (attrs_.has_add) {
      args.add = InputData(ctx, attrs_.add());
      args.add_row_stride = sizes.n;
      args.add_scale = attrs_.add_scale;
    }
    const InputPointers inputs(ctx);
    const BoundPostOps bound(attrs_.post_ops.chain, sizes.n, inputs.data() + MatmulAttrs::kArgs,
                             args.c);
    if (attrs_.post_ops.chain.len() > 0) args.program = bound.program();
    RunLogged(
        [&] {
          return absl::StrCat("packed_matmul ", IsaName(ActiveIsa()), " ", rows, "x", sizes.k, "x",
                              sizes.n, packed.kept == nullptr ? " packs b" : "");
        },
        [&] { RunGemm(plan, args, rows, pool()); });
  }

  BlockedTensors Blocked(OpKernelContext*) const override { return {}; }

 private:
  MatmulAttrs attrs_;
  std::optional<WeightsCache> weights_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnPackedMatmul").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    PackedMatmulOp);

}  // namespace
}  // namespace bd
