// BlockdnnPackedMatmul.
#include "cc/core/gemm/gemm.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/op.h"

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

struct MatmulPlan {
  GemmPlan gemm;
  int64_t rows = 0;  // of dst
  ScratchBook scratch;
  ScratchPiece<float> a;          // where it comes transposed
  ScratchPiece<uint8_t> product;  // GemmArgs::scratch
};

struct PackedMatmul : OpDefaults {
  using Plan = MatmulPlan;
  enum { kA, kB, kArgs };
  static constexpr int kNumWeights = 1;
  static constexpr std::array<int, 1> kFixedInputs = {kB};

  bool transpose_a = false, transpose_b = false, constant_b = false;
  bool direct = false;  // never in pairs
  DataType b_dtype = DataType::f32;
  int num_scales = 0;
  bool quantizes_rows = false;  // float rows of a become bytes
  QuantizationAttr quantization;
  int num_adds = 0;
  float add_scale = 1.f;
  ChainAttrs post_ops;

  int add() const { return kArgs + post_ops.num_args; }
  int scales() const { return add() + num_adds; }
  // Whether b has low precision in memory only.
  bool widens() const {
    return dtype == DataType::f32 && b_dtype != DataType::f32 && !quantizes_rows;
  }

  static OpSignature Signature() {
    return {"BlockdnnPackedMatmul",
            {"a: T", "b: weights_type", "args: num_args * float", "c: num_adds * float",
             "weight_scales: num_scales * float"},
            {"dst: float"},
            "See bd.ops.packed_matmul."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, bfloat16, uint8} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    v("num_adds: int >= 0", &num_adds);
    v("transpose_a: bool = false", &transpose_a);
    v("transpose_b: bool = false", &transpose_b);
    v("constant_b: bool = false", &constant_b);
    v.Choice("algorithm", &direct, {{"auto", false}, {"direct", true}}, "auto");
    v("add_scale: float = 1.0", &add_scale);
    v("post_ops: string = ''", &post_ops.text);
    v("weights_type: {float, bfloat16, int8} = DT_FLOAT", &b_dtype);
    v("num_scales: int >= 0 = 0", &num_scales);
    quantization.Visit("src", v);
    v("quantize_rows: bool = false", &quantizes_rows);
  }
  Status CheckTypes() {
    TF_RETURN_IF_ERROR(CheckScaleCount(b_dtype, num_scales));
    TF_RETURN_IF_ERROR(quantization.Check("src", dtype));
    if (dtype == DataType::u8 && b_dtype != DataType::s8) {
      return Invalid("a of uint8 is multiplied by b of int8, not of ", DataTypeName(b_dtype));
    }
    if (dtype == DataType::bf16 && b_dtype == DataType::s8) {
      return Invalid("there is no product of bfloat16 and int8; make a float32");
    }
    if (quantizes_rows && (dtype != DataType::f32 || b_dtype != DataType::s8)) {
      return Invalid("quantize_rows is for a of float32 and b of int8, not for ",
                     DataTypeName(dtype), " and ", DataTypeName(b_dtype));
    }
    if (transpose_a && dtype != DataType::f32) {
      return Invalid("a of ", DataTypeName(dtype), " cannot be transposed; transpose it before");
    }
    return absl::OkStatus();
  }
  Status Check() {
    if (num_adds > 1) return Invalid("one matrix can be added, not ", num_adds);
    TF_RETURN_IF_ERROR(CheckTypes());
    TF_RETURN_IF_ERROR(post_ops.Check());
    if (post_ops.chain.ReadsDst()) {
      return Invalid("post_ops read what dst held before; give that as an operand, or as c");
    }
    if (!post_ops.chain.ReadsSamples()) return absl::OkStatus();
    return Invalid("post_ops read samples, which a product has not; use a tensor operand");
  }

  // The terms of a product and the columns of b; kUnknown where the inputs do not say.
  Status Sizes(const ShapeList& in, int64_t* k, int64_t* n) const {
    const PartialTensorShape& a = in[kA];
    const PartialTensorShape& b = in[kB];
    *k = *n = kUnknown;
    if (!b.unknown_rank()) {
      if (b.dims() != 2) return Invalid("b must be a matrix; got ", b.DebugString());
      *k = b.dim_size(transpose_b ? 1 : 0);
      *n = b.dim_size(transpose_b ? 0 : 1);
    }
    if (a.unknown_rank()) return absl::OkStatus();
    if (a.dims() < 1 || (transpose_a && a.dims() != 2)) {
      return Invalid("a must be ", transpose_a ? "a matrix" : "[.., k]", "; got ", a.DebugString());
    }
    const int64_t terms = a.dim_size(transpose_a ? 0 : a.dims() - 1);
    if (terms != kUnknown && *k != kUnknown && terms != *k) {
      return Invalid("a has ", terms, " terms and b ", *k, ": ", a.DebugString(),
                     transpose_a ? " transposed" : "", " and ", b.DebugString(),
                     transpose_b ? " transposed" : "");
    }
    if (*k == kUnknown) *k = terms;
    return absl::OkStatus();
  }
  Status Shapes(const ShapeList& in, ShapeList* shapes) const {
    int64_t k, n;
    TF_RETURN_IF_ERROR(Sizes(in, &k, &n));
    PartialTensorShape& dst = shapes->emplace_back();
    if (!in[kA].unknown_rank()) {
      auto dims = in[kA].dim_sizes();
      if (transpose_a) dims[0] = dims[1];
      dims.back() = n;
      TF_RETURN_IF_ERROR(BuildShape(dims, &dst));
    }
    if (num_adds == 1 && !in[add()].IsCompatibleWith(dst)) {
      return Invalid("c must be ", dst.DebugString(), "; got ", in[add()].DebugString());
    }
    if (n == kUnknown) return absl::OkStatus();
    if (num_scales > 0) TF_RETURN_IF_ERROR(CheckScales(in[scales()], 0, n));
    const ShapeList args(in.begin() + kArgs, in.begin() + add());
    return CheckOperands(post_ops, args, OperandShapes{dst, n, {}});
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    GemmDesc desc;
    TF_RETURN_IF_ERROR(Sizes(in, &desc.k, &desc.n));
    desc.pairs = constant_b && !direct;  // packing for them is for b that many products share
    desc.a = dtype;
    desc.b = b_dtype;
    desc.widens = widens();
    desc.threads = site.threads;
    desc.a_quantization = quantization.value;
    plan->rows = transpose_a ? in[kA].dim_size(1) : NumElements(in[kA], 0, in[kA].dims() - 1);
    if (plan->rows == 0 || desc.n == 0) return absl::OkStatus();
    TF_RETURN_IF_ERROR(FromCore(MakeGemmPlan(desc, ActiveIsa(), &plan->gemm)));
    plan->a = plan->scratch.Book<float>("rows", transpose_a ? plan->rows * desc.k : 0);
    plan->product =
        plan->scratch.Book<uint8_t>("rows in pairs", GemmScratchBytes(plan->gemm, plan->rows));
    return absl::OkStatus();
  }

  WeightsUse weights_use(int) const {
    return {0, constant_b ? WeightsChange::kNever : WeightsChange::kOften};
  }
  PackRequest Weights(const Plan& plan, int, OpKernelContext*, WeightsPacker pack) const {
    // Of one type b is packed for floats, or for low precision.
    const bool low_precision = plan.gemm.family != TileFamily::kStrided;
    return {{transpose_b ? "transposed" : "panels", b_dtype, plan.gemm.blocking(),
             low_precision ? "low-precision matmul" : "matmul"},
            {plan.gemm.desc.k, plan.gemm.desc.n},
            plan.gemm.packed_bytes,
            0,
            pack};
  }
  void Pack(const Plan& plan, int, const void* plain, OpKernelContext*, void* packed,
            ThreadPool& pool) const {
    const GemmDesc& d = plan.gemm.desc;
    const GemmB b = {plain, transpose_b ? 1 : d.n, transpose_b ? d.k : 1};
    PackGemm(plan.gemm, b, static_cast<float*>(packed), &pool);
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    const GemmDesc& d = plan.gemm.desc;
    const Scratch scratch(m.scratch);
    GemmArgs args;
    args.a = m.in<void>(kA);
    args.scratch = scratch.Grant(plan.product);
    if (transpose_a) {
      float* const rows = scratch.Grant(plan.a);
      Transpose(m.in<float>(kA), d.k, plan.rows, rows, pool);
      args.a = rows;
    }
    args.packed = m.weights[0].as<float>();
    if (num_scales > 0) args.b_scales = m.in<float>(scales());
    float* const c = m.out<float>();
    args.c = c;
    if (num_adds == 1) {
      args.add = m.in<float>(add());
      args.add_scale = add_scale;
    }
    const BoundPostOps bound(post_ops.chain, plan.gemm.isa, d.n, m.all_in<float>(kArgs), c);
    if (post_ops.chain.len() > 0) args.program = bound.program();
    RunGemm(plan.gemm, args, plan.rows, pool);
  }

  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    memory->packed_weights = plan.gemm.packed_bytes;
  }
};

const OpRegistration<PackedMatmul> packed_matmul_registration;

}  // namespace
}  // namespace bd
