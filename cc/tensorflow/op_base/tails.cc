#include "cc/tensorflow/op_base/tails.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cc/base/environment.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/register_types.h"

namespace bd {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

bool IsBlocked(Layout layout) { return PartsOf(layout).num_inner > 0; }

// False if the tensor is not what `entry` says.
bool Describe(const BlockedTensors::Entry& entry, const Tensor& tensor, TensorDesc* desc) {
  if (entry.memory.rank() > 0) {
    *desc = entry.memory;
    return tensor.NumElements() >= desc->size();
  }
  const LayoutParts parts = PartsOf(entry.layout);
  Dims shape;
  for (int i = 0; i < std::min(tensor.dims(), Dims::kCapacity); ++i) {
    shape.push_back(tensor.dim_size(i));
  }
  if (shape.size() != parts.rank + parts.num_inner) return false;
  Dims dims = Dims::Filled(parts.rank, 0);
  for (int i = 0; i < parts.rank; ++i) dims[parts.order[i]] = shape[i];
  int known = 0;
  for (int d = 0; d < parts.rank; ++d) {
    if (parts.block(d) > 1) dims[d] = entry.sizes[known++];
  }
  // Offsets count elements, so any type will do.
  return PhysicalShape(entry.layout, dims) == shape &&
         TensorDesc::Make(dims, DataType::f32, entry.layout, {}, 0, desc).empty();
}

// An element of a tail that does not stand for zero.
struct BadElement {
  Dims index;
  double value;
};

// Looks at the indices begin <= index < end, the last dimension turning fastest.
template <typename T>
bool FindBadWithin(const TensorDesc& desc, const Dims& begin, const Dims& end, const T* data,
                   T zero, BadElement* bad) {
  for (int d = 0; d < desc.rank(); ++d) {
    if (begin[d] >= end[d]) return false;
  }
  Dims index = begin;
  for (;;) {
    const T& element = data[desc.OffsetOf(index.data())];
    if (!(element == zero)) {  // nan, but not -0
      *bad = {index, static_cast<double>(element)};
      return true;
    }
    int d = desc.rank() - 1;
    while (d >= 0 && ++index[d] == end[d]) {
      index[d] = begin[d];
      --d;
    }
    if (d < 0) return false;
  }
}

template <typename T>
bool FindBad(const TensorDesc& desc, const T* data, T zero, BadElement* bad) {
  // The tail of dimension d, without those of the dimensions before it.
  Dims begin = Dims::Filled(desc.rank(), 0), end = desc.padded_dims();
  for (int d = 0; d < desc.rank(); ++d) {
    begin[d] = desc.dims()[d];
    if (FindBadWithin(desc, begin, end, data, zero, bad)) return true;
    begin[d] = 0;
    end[d] = desc.dims()[d];
  }
  return false;
}

bool FindBad(const TensorDesc& desc, const Tensor& tensor, int32_t zero, BadElement* bad) {
  switch (tensor.dtype()) {
#define BD_FIND_BAD(T)                       \
  case tensorflow::DataTypeToEnum<T>::value: \
    return FindBad(desc, static_cast<const T*>(tensor.data()), static_cast<T>(zero), bad);
    TF_CALL_REAL_NUMBER_TYPES(BD_FIND_BAD);
    TF_CALL_bool(BD_FIND_BAD);
#undef BD_FIND_BAD
    default:
      return false;
  }
}

// What the op's definition calls input or output i: "src", "args[1]".
std::string ArgName(const OpKernel& op, bool is_input, int i) {
  const tensorflow::OpDef* def;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(op.type_string(), &def).ok()) return "?";
  for (const auto& arg : is_input ? def->input_arg() : def->output_arg()) {
    int start, stop;
    const absl::Status status = is_input ? op.InputRange(arg.name(), &start, &stop)
                                         : op.OutputRange(arg.name(), &start, &stop);
    if (!status.ok() || i < start || i >= stop) continue;
    return arg.number_attr().empty() ? arg.name() : absl::StrCat(arg.name(), "[", i - start, "]");
  }
  return "?";
}

// The input and the node it comes from: 'src, made by "relu_2",'. An op that runs
// eagerly has no such nodes; TensorFlow then repeats the input: src, args_1,
// depthwise__args_1.
std::string InputAndProducer(const OpKernel& op, int i) {
  const std::string input = ArgName(op, /*is_input=*/true, i);
  if (i >= op.def().input_size()) return input;
  const std::string& producer = op.requested_input(i);
  const bool eager = producer == absl::StrReplaceAll(input, {{"_", "__"}, {"[", "_"}, {"]", ""}});
  return eager ? input : absl::StrCat(input, ", made by \"", producer, "\",");
}

// TF_BLOCKDNN_CHECK_TAILS: BlockdnnPool "pool_3"
std::string Title(const OpKernel& op) {
  return absl::StrCat("TF_BLOCKDNN_CHECK_TAILS: ", op.type_string(), " \"", op.name(), "\"");
}

// Empty if the tail of `tensor` is as it must be.
std::string Complaint(const BlockedTensors::Entry& entry, const Tensor& tensor) {
  TensorDesc desc;
  BadElement bad;
  if (!Describe(entry, tensor, &desc) || !FindBad(desc, tensor, entry.tail, &bad)) return "";
  const LayoutParts parts = PartsOf(*desc.layout());
  std::string place;  // n=0, c=21, h=3, w=4
  for (int d = 0; d < desc.rank(); ++d) {
    absl::StrAppend(&place, d > 0 ? ", " : "", std::string(1, parts.letters[d]), "=", bad.index[d]);
  }
  return absl::StrCat(" is ", bad.value, " at [", place, "], in the tail of ",
                      LayoutName(*desc.layout()), " ", desc.dims().ToString(),
                      ", where all must be ",
                      entry.tail == 0 ? "zero" : absl::StrCat("the zero point, ", entry.tail));
}

}  // namespace

bool TailChecksEnabled() {
  static const bool enabled = IsSwitchedOn("TF_BLOCKDNN_CHECK_TAILS");
  return enabled;
}

BlockedTensors& BlockedTensors::Add(std::vector<Entry>* list, const Entry& entry) {
  const bool blocked = entry.memory.rank() > 0 ? entry.memory.padded_dims() != entry.memory.dims()
                                               : IsBlocked(entry.layout);
  if (blocked) list->push_back(entry);
  return *this;
}

// A part has the tail of the wider tensor or none.
BlockedTensors& BlockedTensors::Add(std::vector<Entry>* list, int index, const ChannelPart& part,
                                    Layout layout, int64_t channels, const Quantization& q) {
  if (!part.has_tail()) return *this;
  return Add(list, {index, layout, {part.tensor_channels(channels)}, {}, q.zero_point});
}

BlockedTensors& BlockedTensors::Operands(const PostOpChain& chain, int first, Layout layout,
                                         int64_t channels, int num_floats, const Quantization& q) {
  for (const PostOp& op : chain.entries()) {
    const bool flat = op.kind == PostOpKind::kBinary &&
                      (op.shape == OperandShape::kScalar || op.shape == OperandShape::kChannel);
    if (op.kind == PostOpKind::kEltwise || flat) continue;
    const int operand = op.operand.input;
    Input(first + operand, ChannelPart(), layout, channels,
          operand < num_floats ? Quantization() : q);
  }
  return *this;
}

absl::Status CheckInputTails(const BlockedTensors& blocked, OpKernelContext* ctx) {
  for (const auto& entry : blocked.inputs()) {
    const std::string complaint = Complaint(entry, ctx->input(entry.index));
    if (complaint.empty()) continue;
    const OpKernel& op = ctx->op_kernel();
    return Invalid(Title(op), ": input ", InputAndProducer(op, entry.index), complaint,
                   "; what made it must write zeros there, as all ops of tf_blockdnn do");
  }
  return absl::OkStatus();
}

absl::Status CheckOutputTails(const BlockedTensors& blocked, OpKernelContext* ctx) {
  for (const auto& entry : blocked.outputs()) {
    const std::string complaint = Complaint(entry, *ctx->mutable_output(entry.index));
    if (complaint.empty()) continue;
    const OpKernel& op = ctx->op_kernel();
    return absl::InternalError(absl::StrCat(Title(op), ": output ",
                                            ArgName(op, /*is_input=*/false, entry.index), complaint,
                                            "; the op that wrote it is wrong, please report it"));
  }
  return absl::OkStatus();
}

}  // namespace bd
