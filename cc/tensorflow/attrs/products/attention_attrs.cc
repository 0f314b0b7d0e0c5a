#include "cc/tensorflow/attrs/products/attention_attrs.h"

#include "cc/core/attention/attention_kernel.h"

namespace bd {
namespace {

constexpr const char* kNames[] = {"q", "k", "v", "dst"};

// Notes a size, or that it is another than what is known.
Status Note(const char* name, const char* meaning, int64_t size, int64_t* known) {
  if (size == kUnknown || size == *known) return absl::OkStatus();
  if (*known == kUnknown) {
    *known = size;
    return absl::OkStatus();
  }
  return Invalid(name, " has ", size, " ", meaning, ", not ", *known);
}

// One of q, k and v: [B, rows, heads, size], [B, heads, rows, size] or [B, rows, size].
Status NoteTensor(const AttentionAttrs& attrs, int i, const PartialTensorShape& shape, int rank,
                  AttentionSizes* sizes, int64_t* heads, int64_t* rows, int64_t* size) {
  if (shape.unknown_rank()) return absl::OkStatus();
  const int dims = shape.dims();
  if ((dims != 3 && dims != 4) || dims != rank) {
    return Invalid("q, k and v must all be of rank 4, or of rank 3: one head; ", kNames[i], " is ",
                   shape.DebugString());
  }
  const bool first = attrs.heads_first[i];
  TF_RETURN_IF_ERROR(Note(kNames[i], "sequences", shape.dim_size(0), &sizes->batch));
  TF_RETURN_IF_ERROR(
      Note(kNames[i], "heads", dims == 3 ? 1 : shape.dim_size(first ? 1 : 2), heads));
  TF_RETURN_IF_ERROR(Note(kNames[i], i == AttentionAttrs::kQ ? "queries" : "keys",
                          shape.dim_size(dims == 4 && first ? 2 : 1), rows));
  return Note(kNames[i], "elements a row", shape.dim_size(dims - 1), size);
}

Status CheckBias(const std::string& name, const PartialTensorShape& bias, int rank,
                 const AttentionSizes& s) {
  if (bias.unknown_rank()) return absl::OkStatus();
  const auto dims = AttentionBiasDims(bias, rank);
  const int64_t all[] = {s.batch, s.heads, s.queries, s.keys};
  bool fits = bias.dims() <= rank || (bias.dims() == rank + 1 && bias.dim_size(0) == 1);
  for (int i = 0; i < 4 && fits; ++i) {
    const bool unknown = dims[i] == kUnknown || all[i] == kUnknown;
    const bool repeats = i == 0 && dims[i] > 0 && all[i] % dims[i] == 0;
    fits = unknown || dims[i] == all[i] || repeats || dims[i] == 1;
  }
  if (fits) return absl::OkStatus();
  const auto text = [](int64_t size) { return size == kUnknown ? "?" : absl::StrCat(size); };
  return Invalid(name, " must be broadcastable to the scores, [", text(s.batch), ",",
                 rank == 3 ? "" : text(s.heads) + ",", text(s.queries), ",", text(s.keys),
                 "]; got ", bias.DebugString());
}

}  // namespace

Status AttentionAttrs::Check() const {
  if (num_biases > kMaxAttentionBiases) {
    return Invalid("attention adds at most ", kMaxAttentionBiases, " biases, not ", num_biases,
                   "; add them before");
  }
  if (num_masks > 1) return Invalid("attention has one mask, not ", num_masks, "; join them");
  return absl::OkStatus();
}

std::array<int64_t, 4> AttentionBiasDims(const PartialTensorShape& bias, int rank) {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  for (int i = 0; i < bias.dims(); ++i) {
    const int axis = 4 - bias.dims() + i;  // of four; a sequence of rank 3 moves over the heads
    if (axis >= 0) dims[rank == 3 && axis == 1 ? 0 : axis] = bias.dim_size(i);
  }
  return dims;
}

Status AttentionShape(const AttentionAttrs& attrs, const std::vector<PartialTensorShape>& shapes,
                      AttentionSizes* sizes, PartialTensorShape* dst) {
  *sizes = AttentionSizes();
  *dst = PartialTensorShape();
  AttentionSizes& s = *sizes;
  int rank = kUnknown;
  for (int i = 0; i < 3 && rank == kUnknown; ++i) {
    if (!shapes[i].unknown_rank()) rank = shapes[i].dims();
  }
  TF_RETURN_IF_ERROR(NoteTensor(attrs, AttentionAttrs::kQ, shapes[AttentionAttrs::kQ], rank, &s,
                                &s.heads, &s.queries, &s.head_size));
  TF_RETURN_IF_ERROR(NoteTensor(attrs, AttentionAttrs::kK, shapes[AttentionAttrs::kK], rank, &s,
                                &s.kv_heads, &s.keys, &s.head_size));
  TF_RETURN_IF_ERROR(NoteTensor(attrs, AttentionAttrs::kV, shapes[AttentionAttrs::kV], rank, &s,
                                &s.kv_heads, &s.keys, &s.value_size));
  if (s.heads > 0 && s.kv_heads != kUnknown && (s.kv_heads == 0 || s.heads % s.kv_heads != 0)) {
    return Invalid("q has ", s.heads, " heads, no multiple of the ", s.kv_heads, " of k and v");
  }
  for (int i = 0; i < attrs.num_biases && rank != kUnknown; ++i) {
    TF_RETURN_IF_ERROR(
        CheckBias(absl::StrCat("bias ", i), shapes[AttentionAttrs::kBiases + i], rank, s));
  }
  if (attrs.num_masks > 0 && rank != kUnknown) {
    TF_RETURN_IF_ERROR(CheckBias("mask", shapes[attrs.mask()], rank, s));
  }
  if (rank == kUnknown) return absl::OkStatus();
  if (rank == 3) return BuildShape({s.batch, s.queries, s.value_size}, dst);
  if (attrs.heads_first[AttentionAttrs::kDst]) {
    return BuildShape({s.batch, s.heads, s.queries, s.value_size}, dst);
  }
  return BuildShape({s.batch, s.queries, s.heads, s.value_size}, dst);
}

}  // namespace bd
