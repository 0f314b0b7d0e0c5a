// BlockdnnPackedMatmul.
#include <algorithm>
#include <memory>

#include "cc/base/verbose.h"
#include "cc/core/gemm/gemm.h"
#include "cc/core/post_ops/post_ops_bind.h"
#include "cc/tensorflow/attrs/products/matmul_attrs.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/weights/kept_pack.h"

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

// a, where it comes transposed.
ScratchPiece<float> BookRows(const MatmulAttrs& attrs, int64_t rows, int64_t k, ScratchBook* book) {
  return book->Book<float>("rows", attrs.transpose_a ? rows * k : 0);
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
  TF_RETURN_IF_ERROR(FromCore(MakeGemmPlan({sizes.k, sizes.n}, ActiveIsa(), &plan)));
  BookRows(attrs, dst.num_elements() / sizes.n, sizes.k, &memory->scratch);
  memory->packed_weights = plan.packed_bytes;
  return absl::OkStatus();
}

const MemoryPlanRow row("BlockdnnPackedMatmul", PlanMatmulMemory);

class PackedMatmulOp : public PoolOpKernel {
 public:
  explicit PackedMatmulOp(OpKernelConstruction* ctx) : PoolOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, attrs_.Read(ctx));
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
    OP_REQUIRES_OK(ctx, FromCore(MakeGemmPlan({sizes.k, sizes.n}, ActiveIsa(), &plan)));
    const GemmB b = {InputData(ctx, MatmulAttrs::kB), attrs_.transpose_b ? 1 : sizes.n,
                     attrs_.transpose_b ? sizes.k : 1};
    PackLease packed;
    OP_REQUIRES_OK(ctx, packs_.Take(
                            ctx, {ctx->input(MatmulAttrs::kB)},
                            absl::StrCat("gemm ", plan.blocking(), attrs_.transpose_b ? " t" : ""),
                            plan.packed_bytes / static_cast<int64_t>(sizeof(float)),
                            attrs_.constant_b ? KeepPack::kAlways : KeepPack::kTwice,
                            [&](float* memory) { PackGemm(plan, b, memory, &pool()); }, &packed));
    const int64_t rows = dst->NumElements() / sizes.n;
    GemmArgs args;
    args.a = InputData(ctx, MatmulAttrs::kA);
    args.a_row_stride = sizes.k;
    ScratchBook book;
    const ScratchPiece<float> piece = BookRows(attrs_, rows, sizes.k, &book);
    Tensor scratch;
    if (attrs_.transpose_a) {
      const TensorShape bytes({static_cast<int64_t>(book.bytes())});
      OP_REQUIRES_OK(ctx, ctx->allocate_temp(tensorflow::DT_UINT8, bytes, &scratch));
      float* to = Scratch(scratch.data()).Grant(piece);
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
  PackKeeper packs_;
};

REGISTER_KERNEL_BUILDER(
    Name("BlockdnnPackedMatmul").Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"),
    PackedMatmulOp);

}  // namespace
}  // namespace bd
