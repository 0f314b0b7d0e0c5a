#include "cc/tensorflow/c_api/c_api.h"

#include <algorithm>
#include <utility>

#include "cc/base/cpu/isa.h"
#include "cc/base/threads/pool_size.h"
#include "cc/core/post_ops/post_op_names.h"
#include "cc/layout/tensor_desc.h"
#include "cc/tensorflow/op_base/memory_plan.h"
#include "cc/tensorflow/regions/free_memory.h"
#include "cc/tensorflow/weights/pack_registry.h"
#include "cc/tensorflow/weights/weights_file.h"

namespace bd {

const char* ErrorToC(std::string error) {
  if (error.empty()) return nullptr;
  thread_local std::string last;
  last = std::move(error);
  return last.c_str();
}

namespace {

void Copy(const Dims& from, int64_t* to) { std::copy(from.begin(), from.end(), to); }

BlockdnnTensorDesc ToC(const TensorDesc& desc) {
  BlockdnnTensorDesc c = {};
  c.rank = desc.rank();
  c.dtype = static_cast<int32_t>(desc.dtype());
  c.layout = desc.layout() ? static_cast<int32_t>(*desc.layout()) : -1;
  c.shape_rank = desc.shape().size();
  c.is_dense = desc.is_dense();
  c.is_whole = desc.is_whole();
  c.offset = desc.offset();
  c.size = desc.size();
  c.size_bytes = desc.size_bytes();
  Copy(desc.dims(), c.dims);
  Copy(desc.strides(), c.strides);
  Copy(desc.blocks(), c.blocks);
  Copy(desc.padded_dims(), c.padded_dims);
  Copy(desc.shape(), c.shape);
  return c;
}

// A list that is too long for any tensor is an error wherever it goes, shortened too.
Dims FromC(const BlockdnnList& list) {
  return Dims(list.values, std::min(list.count, Dims::kCapacity));
}

// The description that ToC made c of.
TensorDesc FromC(const BlockdnnTensorDesc& c) {
  std::optional<Layout> layout;
  if (c.layout >= 0) layout = static_cast<Layout>(c.layout);
  TensorDesc desc;
  TensorDesc::Make(Dims(c.dims, c.rank), static_cast<DataType>(c.dtype), layout,
                   Dims(c.strides, c.rank), c.offset, &desc);
  return desc;
}

std::string UnknownDataType(const char* dtype) {
  std::string known;
  for (int i = 0; i < kNumDataTypes; ++i) {
    known += (i == 0 ? "" : i + 1 < kNumDataTypes ? ", " : " or ");
    known += DataTypeName(static_cast<DataType>(i));
  }
  return std::string("dtype must be ") + known + "; got " + dtype;
}

}  // namespace
}  // namespace bd

const char* BlockdnnActiveIsa() { return bd::IsaName(bd::ActiveIsa()); }

int32_t BlockdnnThreads(int32_t tensorflow, const char** source) {
  const bd::PoolSize size = bd::PoolSizeFor(tensorflow);
  *source = size.source;
  return size.threads;
}

const char* BlockdnnSetThreads(int32_t threads, int32_t callers) {
  return bd::ErrorToC(bd::SetPoolThreads(threads, callers));
}

const char* BlockdnnLayoutName(int32_t layout) {
  return layout < bd::kNumLayouts ? bd::LayoutName(static_cast<bd::Layout>(layout)) : nullptr;
}

const char* BlockdnnDataTypeName(int32_t dtype) {
  return dtype < bd::kNumDataTypes ? bd::DataTypeName(static_cast<bd::DataType>(dtype)) : nullptr;
}

const char* BlockdnnPostOpFunctions() { return bd::PostOpFunctions(); }

const char* BlockdnnMakeTensorDesc(const char* dtype, const char* layout, BlockdnnList dims,
                                   BlockdnnList strides, int64_t offset, BlockdnnTensorDesc* desc) {
  bd::DataType type;
  if (!bd::ParseDataType(dtype, &type)) return bd::ErrorToC(bd::UnknownDataType(dtype));
  std::optional<bd::Layout> known;
  if (layout != nullptr && !bd::ParseLayout(layout, &known.emplace())) {
    return bd::ErrorToC(bd::UnknownLayout(layout));
  }
  bd::TensorDesc made;
  const std::string error =
      bd::TensorDesc::Make(bd::FromC(dims), type, known, bd::FromC(strides), offset, &made);
  if (error.empty()) *desc = bd::ToC(made);
  return bd::ErrorToC(error);
}

const char* BlockdnnSubmemory(const BlockdnnTensorDesc* desc, BlockdnnList dims,
                              BlockdnnList offsets, BlockdnnTensorDesc* part) {
  bd::TensorDesc made;
  const std::string error = bd::FromC(*desc).submemory(bd::FromC(dims), bd::FromC(offsets), &made);
  if (error.empty()) *part = bd::ToC(made);
  return bd::ErrorToC(error);
}

int64_t BlockdnnOffset(const BlockdnnTensorDesc* desc, const int64_t* index) {
  return bd::FromC(*desc).OffsetOf(index);
}

void BlockdnnOffsets(const BlockdnnTensorDesc* c, int32_t padded, int64_t* offsets) {
  const bd::TensorDesc desc = bd::FromC(*c);
  const bd::Dims& counts = padded ? desc.padded_dims() : desc.dims();
  int64_t elements = 1;
  for (int64_t count : counts) elements *= count;
  bd::Dims index = bd::Dims::Filled(desc.rank(), 0);
  for (int64_t i = 0; i < elements; ++i) {
    offsets[i] = desc.OffsetOf(index.data());
    for (int d = desc.rank() - 1; d >= 0 && ++index[d] == counts[d]; --d) index[d] = 0;
  }
}

const char* BlockdnnMemoryPlan(const char* node_def, int64_t node_def_bytes, BlockdnnList dims,
                               BlockdnnList ranks, int32_t threads, const char** json) {
  std::vector<bd::PartialTensorShape> inputs;
  int64_t left = dims.count;
  for (int32_t i = 0; i < ranks.count; ++i) {
    left -= ranks.values[i];
    if (ranks.values[i] < 0 || left < 0) break;
    const bd::Status fits =
        bd::BuildShape({dims.values, static_cast<size_t>(ranks.values[i])}, &inputs.emplace_back());
    if (!fits.ok()) return bd::ErrorToC(std::string(fits.message()));
    dims.values += ranks.values[i];
  }
  if (left != 0) return bd::ErrorToC("dims must hold the sizes of all inputs");
  thread_local std::string text;
  const bd::Status status =
      bd::MemoryPlanJson(std::string(node_def, node_def_bytes), inputs, threads, &text);
  if (!status.ok()) return bd::ErrorToC(std::string(status.message()));
  *json = text.c_str();
  return nullptr;
}

void BlockdnnReturnFreeMemory() { bd::ReturnFreeMemory(); }

int64_t BlockdnnPackCount() { return bd::PackCount(); }

const char* BlockdnnCheckWeights(const void* data) {
  return bd::ErrorToC(std::string(bd::WeightsFile::CheckAt(data).message()));
}
