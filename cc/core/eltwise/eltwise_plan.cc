#include <algorithm>

#include "cc/base/size.h"
#include "cc/core/eltwise/eltwise.h"

namespace bd {
namespace {

// 128 KB from src to dst take about as long as handing out a few tasks; twice
// that is not worth waking a thread for.
constexpr int64_t kTaskFloats = 1 << 15;
constexpr int64_t kInlineFloats = 1 << 16;
// Of bytes and of bfloat16: about 1 us of work each, behind a convolution whose threads are awake.
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
    return std::string(
               "element-wise work is on blocks of 16 channels or on channels last, got "
               "layout ") +
           LayoutName(src.layout());
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
      return "operand #" + std::to_string(op.operand.input) + " of " + ToString(op) + " is " +
             DataTypeName(type.dtype) + "; only whole tensors may be other than float32";
    }
  }
  return "";
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
  const bool narrow = p.bytes || p.bf16;
  p.segment_floats = src.block_stride();
  p.src_gap = src.image_stride() - src.image_elements();
  p.dst_gap = desc.dst.image_stride() - src.image_elements();
  p.total_floats = src.n() * src.image_elements();
  p.task_floats = p.total_floats <= (narrow ? kInlineBytes : kInlineFloats)
                      ? std::max(kBlock, (p.total_floats + kBlock - 1) / kBlock * kBlock)
                  : narrow ? kTaskBytes
                           : kTaskFloats;
  p.tasks = (p.total_floats + p.task_floats - 1) / p.task_floats;
  *plan = p;
  return "";
}

}  // namespace bd
