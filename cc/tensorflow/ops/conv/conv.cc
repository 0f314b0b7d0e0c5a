// BlockdnnConv.
#include "cc/core/reorder/float_slice.h"
#include "cc/tensorflow/ops/conv/conv_attrs.h"

namespace bd {
namespace {

// Of float32 all tensors are; of other types see ConvTypes (cc/core/conv/common/conv_desc.h).
// Beside these, weights of bfloat16 or int8 may meet a source of float32: they are widened, and
// scaled, when they are packed, and all else is as with weights of float32.
struct Conv : WeightsOp<ConvAttrs> {
  using Plan = ConvPlan;

  QuantizationAttr src_quantization, sum_quantization, dst_quantization;
  DataType weights_dtype = DataType::f32, sum_dtype = DataType::f32;
  int num_args = 0, num_sums = 0, num_scales = 0;

  static OpSignature Signature() {
    return {"BlockdnnConv",
            {"src: T", "weights: weights_type", "args: num_args * float",
             "sum: num_sums * sum_type", "weight_scales: num_scales * float", kTypedIntoInput},
            {"dst: dst_type"},
            "See bd.ops.conv."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, bfloat16, uint8} = DT_FLOAT", &dtype);
    v("num_args: int >= 0", &num_args);
    VisitLayouts(v);
    v("channels: int >= 1", &channels);
    VisitWeights(v);
    v("groups: int >= 1 = 1", &groups);
    window.Visit(v, /*has_dilations=*/true);
    v("post_ops: string = ''", &post_ops.text);
    v("pool: list(int) = []", &pool_window);
    VisitAlgorithm(v);
    VisitConstant(v);
    src_part.Visit("src_part", v);
    v("src_blocks: list(int) = []", &src_blocks);
    dst_part.Visit(v);
    VisitScratchpadMode(v);
    v("weights_type: {float, bfloat16, int8} = DT_FLOAT", &weights_dtype);
    v("sum_type: {float, bfloat16, uint8} = DT_FLOAT", &sum_dtype);
    v("dst_type: {float, bfloat16, uint8} = DT_FLOAT", &dst_dtype);
    dst_part.VisitIntoType(v);
    v("num_sums: int >= 0 = 0", &num_sums);
    v("num_scales: int >= 0 = 0", &num_scales);
    src_quantization.Visit("src", v);
    sum_quantization.Visit("sum", v);
    dst_quantization.Visit("dst", v);
  }
  Status Check() {
    TF_RETURN_IF_ERROR(CheckPool());
    TF_RETURN_IF_ERROR(CheckWeights());
    TF_RETURN_IF_ERROR(CheckTypes());
    post_ops.num_args = num_args + num_sums;  // sum is the operand after the others
    TF_RETURN_IF_ERROR(CheckPartsAndChain());
    TF_RETURN_IF_ERROR(CheckSum());
    return CheckSrcBlocks();
  }
  Status CheckTypes() {
    TF_RETURN_IF_ERROR(CheckSumCount(sum_dtype, num_sums));
    TF_RETURN_IF_ERROR(dst_part.CheckIntoType(dst_dtype));
    TF_RETURN_IF_ERROR(CheckScaleCount(weights_dtype, num_scales));
    TF_RETURN_IF_ERROR(src_quantization.Check("src", dtype));
    TF_RETURN_IF_ERROR(sum_quantization.Check("sum", sum_dtype));
    return dst_quantization.Check("dst", dst_dtype);
  }
  // The input sum is read once: of another type than float32, as the first sum of the chain, for
  // which the kernels have a type of its own.
  Status CheckSum() const {
    int reads = 0;
    for (int i = 0; num_sums > 0 && i < post_ops.chain.len(); ++i) {
      const PostOp& op = post_ops.chain.entries()[i];
      if (op.kind == PostOpKind::kEltwise) continue;
      const bool is_sum = op.kind == PostOpKind::kSum;
      if (op.operand.input >= num_args) {
        if (!is_sum || ++reads > 1) {
          return InvalidEntry(post_ops.chain, i,
                              "the input sum is for one sum; pass others in args");
        }
      } else if (is_sum && reads == 0 && sum_dtype != DataType::f32) {
        return InvalidEntry(post_ops.chain, i, "a sum of ", DataTypeName(sum_dtype),
                            " is the first of the chain; put it before this one");
      }
    }
    if (reads == num_sums) return absl::OkStatus();
    return Invalid("no entry of post_ops reads the input sum; leave it out");
  }

  int scales_input() const { return kArgs + num_args + num_sums; }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    if (num_scales > 0 && !in[scales_input()].IsCompatibleWith(PartialTensorShape({oc}))) {
      return Invalid("weight_scales must be [", oc, "], one an output channel; got ",
                     in[scales_input()].DebugString());
    }
    return Shape(in[kSrc], in[kWeights], From(in, kArgs), &dst->emplace_back());
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    ConvDesc desc;
    TF_RETURN_IF_ERROR(ConvAttrs::Describe(dtype, in[kSrc], &desc));
    desc.changes_weights = site.changes_weights;
    desc.hands_plain = site.changes_weights && !widens();
    desc.types = {widens() ? dtype : weights_dtype, sum_dtype, src_quantization.value,
                  sum_quantization.value, dst_quantization.value};
    return FromCore(MakeConvPlan(desc, ActiveIsa(), site.threads, plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& threads) const {
    ConvBuffers buffers = Buffers(plan.desc.src, plan.desc.dst, m);
    if (num_scales > 0) buffers.weight_scales = m.in<float>(scales_input());
    if (widens()) {
      buffers.plain = buffers.packed;
      buffers.packed = BytesFrom(buffers.packed, widened_bytes(plan));
    }
    RunConv(plan, buffers, threads);
  }

  // The scales are in the packed weights.
  std::vector<int> fixed_inputs() const {
    return widens() && num_scales > 0 ? std::vector<int>{scales_input()} : std::vector<int>();
  }
  bool widens() const { return dtype == DataType::f32 && weights_dtype != DataType::f32; }
  // Of float32 weights that lie in front of what is packed, where kernels read them plain.
  int64_t widened_bytes(const Plan& plan) const {
    if (!plan.reads_plain_weights) return 0;
    constexpr int64_t kLine = 16;  // floats, of 64 bytes
    return (weights_size() + kLine - 1) / kLine * kLine * SizeOf(DataType::f32);
  }
  PackRequest Weights(const Plan& plan, int, OpKernelContext* ctx, WeightsPacker pack) const {
    PackRequest request = WeightsOfConv(plan, pack, Src(ctx, plan.desc.src));
    if (!widens()) return request;
    request.key.op = "widened";
    request.bytes += widened_bytes(plan);
    request.plain_bytes = 0;
    if (num_scales > 0) request.more = &ctx->input(scales_input());
    return request;
  }
  void Pack(const Plan& plan, int, const void* plain, OpKernelContext* ctx, void* packed,
            ThreadPool& threads) const {
    const float* weights = static_cast<const float*>(plain);
    std::vector<float> memory(widens() && !plan.reads_plain_weights ? weights_size() : 0);
    if (widens()) {
      float* const widened = memory.empty() ? static_cast<float*>(packed) : memory.data();
      Widen(plain, ctx, widened);
      weights = widened;
      packed = static_cast<char*>(packed) + widened_bytes(plan);
    }
    PackConvWeights(plan, weights, static_cast<float*>(packed), threads, Src(ctx, plan.desc.src));
  }
  void Widen(const void* plain, OpKernelContext* ctx, float* widened) const {
    LoadSlice(ActiveIsa(), {weights_dtype, {}}, plain, widened, weights_size());
    if (num_scales == 0) return;
    const float* const scales = ctx->input(scales_input()).flat<float>().data();
    for (int64_t first = 0; first < weights_size(); first += oc) {
      for (int64_t o = 0; o < oc; ++o) widened[first + o] *= scales[o];
    }
  }

  BlockedTensors Blocked(const ShapeList&) const {
    return BlockedTensors()
        .Input(kSrc, src_part, src_layout, channels, src_quantization.value)
        .Operands(post_ops.chain, kArgs, dst_layout, oc, num_args, sum_quantization.value)
        .Output(0, dst_part, dst_layout, oc, dst_quantization.value);
  }
  static void FillMemoryPlan(const Plan& plan, MemoryPlan* memory) {
    FillConvMemoryPlan(plan, memory);
  }
};

const OpRegistration<Conv> conv_registration;

}  // namespace
}  // namespace bd
