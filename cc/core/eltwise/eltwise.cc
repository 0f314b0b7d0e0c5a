#include "cc/core/eltwise/eltwise.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cc/base/size.h"
#include "cc/base/str_cat.h"
#include "cc/core/post_ops/post_ops.h"
#include "cc/core/reorder/float_slice.h"

namespace bd {
namespace {

// 128 KB from src to dst take about as long as handing out a few tasks; twice
// that is not worth waking a thread for.
constexpr int64_t kTaskFloats = 1 << 15;
constexpr int64_t kInlineFloats = 1 << 16;
// Of bytes and of bfloat16: about 1 us of work each, after a convolution whose threads are awake.
constexpr int64_t kTaskBytes = 1 << 13;
constexpr int64_t kInlineBytes = 1 << 14;

std::string Check(const EltwiseDesc& desc) {
  const TensorView &src = desc.src, &dst = desc.dst;
  if (src.layout() != dst.layout() || src.dims() != dst.dims()) {
    return "element-wise work does not change layout or dims, got " + src.ToString() + " to " +
           dst.ToString();
  }
  if (src.c() < 1) return "element-wise work needs channels, got " + src.ToString();
  if (src.blocked() ? src.lanes() != kBlock : !src.channels_last()) {
    return StrCat(
        "element-wise work is on blocks of 16 channels or on channels last, got "
        "layout ",
        LayoutName(src.layout()));
  }
  if (!src.blocked() && !(src.dense() && dst.dense())) {
    return "only blocked tensors can be parts of wider ones";
  }
  if (!dst.dense() && desc.post_ops.ReadsDst()) {
    return "a sum cannot read the previous dst where that is a part of a wider tensor; "
           "give it an operand";
  }
  for (const PostOp& op : desc.post_ops.entries()) {
    if (op.kind == PostOpKind::kEltwise || op.operand.input == OperandRef::kDst) continue;
    const bool by_element = op.kind == PostOpKind::kSum || op.shape == OperandShape::kTensor;
    const ElementType type = desc.arg_type(op.operand.input);
    if (type != ElementType() && (!by_element || op.operand.offset != 0)) {
      return StrCat("operand #", op.operand.input, " of ", ToString(op), " is ",
                    DataTypeName(type.dtype), "; only whole tensors may be other than float32");
    }
  }
  return "";
}

// The range of other types than float32: [begin, begin + count), piece by piece through slices.
class TypedRange {
 public:
  TypedRange(const EltwisePlan& plan, const void* src, const PostOpProgram& program, void* dst)
      : plan_(plan), src_(src), dst_(dst), program_(program) {
    for (const PostOp& op : plan.desc.post_ops.entries()) {
      const int step = static_cast<int>(&op - plan.desc.post_ops.entries().data());
      steps_[step] = program.steps[step];
      const bool by_element = op.kind == PostOpKind::kSum ||
                              (op.kind == PostOpKind::kBinary && op.shape == OperandShape::kTensor);
      if (by_element) by_element_.push_back({step, TypeOf(op)});
    }
    slices_.resize((2 + by_element_.size()) * kSliceFloats);
  }

  // `range` without src, dst and program; its first elements are src_begin and dst_begin in memory.
  void Run(EltwiseRange range, int64_t src_begin, int64_t dst_begin) {
    const EltwiseDesc& d = plan_.desc;
    const int64_t first = range.begin, count = range.count, channel = range.channel;
    const PostOpProgram program = {steps_, program_.count, program_.preserves_zero,
                                   program_.kernels};
    float* const in = slices_.data();
    float* const out = in + kSliceFloats;
    range.program = &program;
    range.src = in;
    range.dst = out;
    range.begin = 0;
    for (int64_t i = 0; i < count; i += range.count) {
      range.count = std::min(count - i, kSliceFloats);
      LoadSlice(plan_.isa, d.src_type(), At(src_, d.src_type(), src_begin + i), in, range.count);
      float* slice = out;
      for (const Operand& operand : by_element_) {
        const float*& step = steps_[operand.step].operand;
        const float* const all = program_.steps[operand.step].operand;
        LoadSlice(plan_.isa, operand.type, At(all, operand.type, first + i), slice += kSliceFloats,
                  range.count);
        step = slice;
      }
      if (d.src.blocked()) {
        plan_.kernels->blocked(range);
      } else {
        range.channel = (channel + i) % d.src.c();
        plan_.kernels->plain(range);
      }
      StoreSlice(plan_.isa, out, d.dst_type(),
                 const_cast<void*>(At(dst_, d.dst_type(), dst_begin + i)), range.count);
    }
  }

 private:
  struct Operand {
    int step;
    ElementType type;
  };

  ElementType TypeOf(const PostOp& op) const {
    if (op.operand.input == OperandRef::kDst) return plan_.desc.dst_type();
    return plan_.desc.arg_type(op.operand.input);
  }
  static const void* At(const void* base, const ElementType& type, int64_t element) {
    return static_cast<const char*>(base) + element * SizeOf(type.dtype);
  }

  const EltwisePlan& plan_;
  const void* src_;
  void* dst_;
  const PostOpProgram& program_;
  PostOpStep steps_[PostOpChain::kMaxEntries];
  std::vector<Operand> by_element_;
  std::vector<float> slices_;  // src, dst, operands
};

// Whether a range of low precision is an affine map, which runs; from elements `from` of src and
// `to` of dst on.
bool RunsAffine(const EltwisePlan& plan, const EltwiseRange& range, const void* src, int64_t from,
                void* dst, int64_t to) {
  if (plan.bytes) {
    return plan.kernels->affine_bytes({range, static_cast<const uint8_t*>(src) + from,
                                       static_cast<uint8_t*>(dst) + to, plan.desc.src_quantization,
                                       plan.desc.dst_quantization});
  }
  return plan.bf16 && plan.kernels->affine_bf16({range, static_cast<const Bfloat16*>(src) + from,
                                                 static_cast<Bfloat16*>(dst) + to});
}

// Elements [begin, end) of the tensors, one segment after the other.
void RunTask(const EltwisePlan& plan, const void* src, const PostOpProgram& program, void* dst,
             int64_t begin, int64_t end) {
  const TensorView& view = plan.desc.src;
  EltwiseRange range = {};
  range.program = &program;
  range.channels = view.c();
  std::optional<TypedRange> typed;
  while (begin < end) {
    const int64_t segment = begin / plan.segment_floats;
    const int64_t segment_begin = segment * plan.segment_floats;
    int64_t n = 0;  // images before, whose gaps count
    range.begin = begin;
    range.count = std::min(end, segment_begin + plan.segment_floats) - begin;
    if (view.blocked()) {
      const int64_t block = segment % view.blocks();
      n = segment / view.blocks();
      range.channel = block * kBlock;
      range.sample_channel = segment * kBlock;
      range.valid_lanes = static_cast<int32_t>(view.lanes_of(block));
    } else {
      range.channel = (begin - segment_begin) % view.c();
      range.sample_channel = segment * view.c();
    }
    if (plan.floats) {
      range.src = static_cast<const float*>(src) + n * plan.src_gap;
      range.dst = static_cast<float*>(dst) + n * plan.dst_gap;
      view.blocked() ? plan.kernels->blocked(range) : plan.kernels->plain(range);
    } else {
      const int64_t from = begin + n * plan.src_gap, to = begin + n * plan.dst_gap;
      if (!RunsAffine(plan, range, src, from, dst, to)) {
        if (!typed) typed.emplace(plan, src, program, dst);
        typed->Run(range, from, to);
      }
    }
    begin += range.count;
  }
}

}  // namespace

std::string MakeEltwisePlan(const EltwiseDesc& desc, Isa isa, EltwisePlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  EltwisePlan p;
  p.desc = desc;
  p.kernels = &EltwiseKernelsFor(isa);
  p.isa = isa;
  const ElementType f32;
  p.floats = desc.src_type() == f32 && desc.dst_type() == f32 &&
             std::all_of(desc.arg_types.begin(), desc.arg_types.end(),
                         [&](const ElementType& type) { return type == f32; });
  const TensorView& src = desc.src;
  p.bytes = src.blocked() && src.dtype() == DataType::u8 && desc.dst.dtype() == DataType::u8;
  p.bf16 = src.blocked() && src.dtype() == DataType::bf16 && desc.dst.dtype() == DataType::bf16;
  const bool low_precision = p.bytes || p.bf16;
  p.segment_floats = src.block_stride();
  p.src_gap = src.image_stride() - src.image_elements();
  p.dst_gap = desc.dst.image_stride() - src.image_elements();
  p.total_floats = src.n() * src.image_elements();
  p.tasks = p.total_floats <= (low_precision ? kInlineBytes : kInlineFloats)
                ? std::min<int64_t>(1, p.total_floats)
                : CeilDiv(p.total_floats, low_precision ? kTaskBytes : kTaskFloats);
  *plan = p;
  return "";
}

void RunEltwise(const EltwisePlan& plan, const void* src, const float* const* args, void* dst,
                ThreadPool& pool) {
  const BoundPostOps bound(plan.desc.post_ops, plan.isa, plan.desc.src.c(), args,
                           static_cast<float*>(dst));
  constexpr int64_t kLine = 64;  // elements: whole cache lines in every type
  const int64_t floats = plan.total_floats;
  pool.ForRanges(CeilDiv(floats, kLine), plan.tasks, [&](int64_t begin, int64_t end, int) {
    RunTask(plan, src, *bound.program(), dst, begin * kLine, std::min(floats, end * kLine));
  });
}

}  // namespace bd
