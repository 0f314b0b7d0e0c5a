// BlockdnnInnerProduct: rows are the pixels of a plain 1x1 convolution; by weights of low
// precision, which convolutions of floats do not have, a product on packed panels.
#include "cc/core/gemm/gemm.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/tensorflow/attrs/attrs.h"
#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

// Fewer rows wait for weights, so that floats are multiplied as they are in the same time.
constexpr int64_t kFewestRoundedRows = 6;

struct InnerProductPlan {
  ConvPlan conv;  // by weights of floats
  GemmPlan gemm;  // by others
  ConvEpilogue epilogue;
  int64_t rows = 0;
  ScratchBook scratch;
  ScratchPiece<uint8_t> product;  // GemmArgs::scratch
};

// weights_shape is [ic, oc].
struct InnerProduct : WeightsOp<WeightsAttrs> {
  using Plan = InnerProductPlan;

  DataType weights_dtype = DataType::f32;
  int num_scales = 0;
  int64_t scales_offset = 0;    // of the first in their tensor
  int64_t group = 0;            // GemmDesc::group
  bool quantizes_rows = false;  // float rows of src become bytes
  bool balances_rows = false;   // by factors after the scales
  bool rounds_rows = false;     // float rows of src may become bfloat16
  DataType dst_dtype = DataType::f32;

  bool low_precision() const { return weights_dtype != DataType::f32; }
  int scales() const { return kArgs + post_ops.num_args; }
  bool is_int4() const { return weights_dtype == DataType::u8; }
  // Elements of the tensors: two rows of weights of 4 bits are one of bytes.
  int64_t stored() const { return is_int4() ? CeilDiv(channels, 2) * oc : weights_size(); }
  int64_t scale_count() const {
    if (is_int4()) return 2 * CeilDiv(channels, group) * oc;
    return balances_rows ? oc + channels : oc;
  }

  static OpSignature Signature() {
    return {"BlockdnnInnerProduct",
            {"src: T", "weights: weights_type", "args: num_args * float",
             "weight_scales: num_scales * float"},
            {"dst: dst_type"},
            "See bd.ops.inner_product."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, bfloat16} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &post_ops.num_args);
    VisitWeights(v);
    v("post_ops: string = ''", &post_ops.text);
    VisitConstant(v);
    v.Choice("algorithm", &algorithm,
             {{"auto", ConvAlgorithm::kAuto}, {"direct", ConvAlgorithm::kDirect}}, "auto");
    VisitScratchpadMode(v);
    v("weights_type: {float, bfloat16, int8, uint8} = DT_FLOAT", &weights_dtype);
    v("num_scales: int >= 0 = 0", &num_scales);
    v("scales_offset: int >= 0 = 0", &scales_offset);
    v("quantize_rows: bool = false", &quantizes_rows);
    v("balance_rows: bool = false", &balances_rows);
    v("round_rows: bool = false", &rounds_rows);
    v("dst_type: {float, bfloat16} = DT_FLOAT", &dst_dtype);
    v("group: int >= 0 = 0", &group);
  }
  Status CheckTypes() const {
    TF_RETURN_IF_ERROR(CheckScaleCount(weights_dtype, num_scales));
    if (is_int4() ? group < 1 : group != 0) {
      return Invalid("group is that of weights of uint8, which hold two numbers a byte, and at ",
                     "least 1 there; got ", group, " for ", DataTypeName(weights_dtype));
    }
    if (quantizes_rows && weights_dtype != DataType::s8) {
      return Invalid("quantize_rows is for weights of int8, not of ", DataTypeName(weights_dtype));
    }
    if (balances_rows && !quantizes_rows) return Invalid("balance_rows needs quantize_rows");
    const bool bf16_alone = rounds_rows || dtype == DataType::bf16;
    if (bf16_alone && weights_dtype != DataType::bf16) {
      return Invalid(rounds_rows ? "round_rows" : "src of bfloat16",
                     " is for weights of bfloat16, not of ", DataTypeName(weights_dtype));
    }
    if (dst_dtype != DataType::f32 && !bf16_alone && !quantizes_rows) {
      return Invalid("dst of ", DataTypeName(dst_dtype),
                     " needs rows that are rounded (round_rows,",
                     " quantize_rows) or a src of bfloat16");
    }
    return absl::OkStatus();
  }
  Status Check() {
    TF_RETURN_IF_ERROR(CheckTypes());
    src_layout = dst_layout = Layout::nhwc;
    TF_RETURN_IF_ERROR(CheckWeightsShape(2, 1, "[ic, oc]"));
    channels = weights_shape[0];
    TF_RETURN_IF_ERROR(post_ops.Check());
    if (dst_dtype == DataType::f32 || !post_ops.chain.ReadsDst()) return absl::OkStatus();
    return Invalid("post_ops read what a dst of ", DataTypeName(dst_dtype),
                   " held before; give that as an operand");
  }

  Status Shapes(const ShapeList& in, ShapeList* shapes) const {
    PartialTensorShape& dst = shapes->emplace_back();
    if (!in[kSrc].unknown_rank()) TF_RETURN_IF_ERROR(RowsShape(in[kSrc], channels, oc, &dst));
    TF_RETURN_IF_ERROR(CheckWeightsSize(in[kWeights], stored(), weights_offset));
    OperandShapes operands{dst, oc, {}};
    if (dst.unknown_rank() || dst.dims() > 1) {  // samples are the first dimension
      const int64_t samples = dst.unknown_rank() ? kUnknown : dst.dim_size(0);
      TF_RETURN_IF_ERROR(BuildShape({samples, oc}, &operands.sample_channel.emplace_back()));
    }
    if (num_scales > 0) TF_RETURN_IF_ERROR(CheckScales(in[scales()], scales_offset, scale_count()));
    if (low_precision() && post_ops.chain.ReadsSamples() &&
        (dst.unknown_rank() || dst.dims() > 2)) {
      return Invalid("weights of ", DataTypeName(weights_dtype),
                     " take sample_channel operands for rows [N, ic] only; use a tensor operand");
    }
    return CheckOperands(post_ops, {in.begin() + kArgs, in.begin() + scales()}, operands);
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    if (low_precision()) return MakeLowPrecisionPlan(in, site, plan);
    ConvDesc desc;
    desc.algorithm = algorithm;
    desc.keeps_weights = constant_weights;
    desc.changes_weights = site.changes_weights;
    desc.post_ops = post_ops.chain;
    Plane rows = {1, 1, in[kSrc].num_elements() / channels};
    if (desc.post_ops.ReadsSamples()) SplitSamples(in[kSrc], &rows, &desc.post_ops);
    desc.windows.w.size = desc.windows.w.out = rows.w;
    TF_RETURN_IF_ERROR(Views(dtype, dtype, rows, rows, &desc.src, &desc.dst));
    TF_RETURN_IF_ERROR(FromCore(MakeConvPlan(desc, ActiveIsa(), site.threads, &plan->conv)));
    plan->scratch = plan->conv.scratch;
    return absl::OkStatus();
  }
  Status MakeLowPrecisionPlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    GemmDesc desc;
    desc.k = channels;
    desc.n = oc;
    desc.a = dtype;
    desc.b = weights_dtype;
    desc.group = group;
    desc.tensors.dst.dtype = dst_dtype;
    plan->rows = in[kSrc].num_elements() / channels;
    desc.widens = !quantizes_rows && dtype == DataType::f32 && !Rounds(plan->rows);
    desc.pairs = constant_weights && algorithm == ConvAlgorithm::kAuto;
    desc.threads = site.threads;
    TF_RETURN_IF_ERROR(FromCore(MakeGemmPlan(desc, ActiveIsa(), &plan->gemm)));
    ConvDesc chain;
    chain.post_ops = post_ops.chain;
    if (chain.post_ops.ReadsSamples()) SamplesAreRows(&chain.post_ops);
    plan->epilogue = MakeConvEpilogue(chain, /*sums_in_registers=*/true);
    plan->product =
        plan->scratch.Book<uint8_t>("panels of b", GemmScratchBytes(plan->gemm, plan->rows));
    return absl::OkStatus();
  }

  // Whether float rows become bfloat16: a CPU that does not multiply it gains nothing.
  bool Rounds(int64_t rows) const {
    if (dst_dtype == DataType::bf16) return true;
    return rounds_rows && rows >= kFewestRoundedRows && MultipliesBfloat16(ActiveIsa());
  }

  WeightsUse weights_use(int) const {
    WeightsUse use = WeightsAttrs::use();
    use.elements = stored();
    return use;
  }
  PackRequest Weights(const Plan& plan, int, OpKernelContext* ctx, WeightsPacker pack) const {
    if (!low_precision()) return WeightsOfConv(plan.conv, pack, Src(ctx, plan.conv.desc.src));
    const bool widens = plan.gemm.desc.widens;
    return {
        {"panels", weights_dtype, plan.gemm.blocking(), widens ? "matmul" : "low-precision matmul"},
        {channels, oc},
        plan.gemm.packed_bytes,
        0,
        pack};
  }
  void Pack(const Plan& plan, int, const void* plain, OpKernelContext* ctx, void* packed,
            ThreadPool& pool) const {
    auto* to = static_cast<float*>(packed);
    if (low_precision()) return PackGemm(plan.gemm, {plain, oc, 1}, to, &pool);
    PackConvWeights(plan.conv, static_cast<const float*>(plain), to, pool,
                    Src(ctx, plan.conv.desc.src));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    if (!low_precision()) {
      return RunConv(plan.conv, Buffers(plan.conv.desc.src, plan.conv.desc.dst, m), pool);
    }
    GemmArgs args;
    args.a = m.in<void>(kSrc);
    args.packed = m.weights[0].as<float>();
    if (num_scales > 0) args.b_scales = m.in<float>(scales()) + scales_offset;
    if (balances_rows) args.a_factors = args.b_scales + oc;
    args.c = m.out<void>();
    args.scratch = Scratch(m.scratch).Grant(plan.product);
    const ConvEpilogue& e = plan.epilogue;
    const float* const* operands = m.all_in<float>(kArgs);
    if (e.has_bias) args.bias = Resolve(e.bias, operands, m.out<float>());
    if (e.has_sum) {
      args.add = Resolve(e.sum, operands, m.out<float>());
      args.add_scale = e.sum_scale;
    }
    static_cast<Clamp&>(args) = e;
    const BoundPostOps bound(e.rest, plan.gemm.isa, oc, operands, m.out<float>());
    if (e.rest.len() > 0) args.program = bound.program();
    RunGemm(plan.gemm, args, plan.rows, pool);
  }
  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    if (plan.gemm.packed_bytes == 0) return FillConvMemoryPlan(plan.conv, memory);
    memory->packed_weights = plan.gemm.packed_bytes;
  }

  // Rows of one sample become an image. In [N, ic] every row is a sample, and sample_channel
  // operands are tensors.
  static void SplitSamples(const PartialTensorShape& src, Plane* rows, PostOpChain* post_ops) {
    if (src.dims() > 2) {
      rows->n = src.dim_size(0);
      rows->w = rows->n == 0 ? 0 : rows->w / rows->n;
      return;
    }
    SamplesAreRows(post_ops);
  }
  static void SamplesAreRows(PostOpChain* post_ops) {
    PostOpChain chain;
    for (PostOp op : post_ops->entries()) {
      if (op.shape == OperandShape::kSampleChannel) op.shape = OperandShape::kTensor;
      chain.Append(op);
    }
    *post_ops = chain;
  }

  std::vector<int> reusable_inputs() const {
    return dst_dtype == DataType::f32 ? WeightsOp::reusable_inputs() : std::vector<int>();
  }
  BlockedTensors Blocked(const ShapeList&) const { return {}; }
};

const OpRegistration<InnerProduct> inner_product_registration;

}  // namespace
}  // namespace bd
