// BlockdnnAttention.
#include "cc/core/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cc/core/attention/attention_kernel.h"
#include "cc/tensorflow/ops/op.h"

namespace bd {
namespace {

// Inputs: q, k, v, the biases, and a mask, if there is one.
enum { kQ, kK, kV, kDst, kBiases = kDst };
constexpr const char* kNames[] = {"q", "k", "v", "dst"};

// The order of the axes of q, k, v and dst: sequences, rows and heads; the last one is of elements.
enum class Axes { kBTNH, kBNTH, kTBNH };

constexpr int kMaxAtAxis = 16;  // far beyond the ranks of tensors

struct Sizes {
  int64_t batch = kUnknown, heads = kUnknown, kv_heads = kUnknown;
  int64_t queries = kUnknown, keys = kUnknown;
  int64_t head_size = kUnknown, value_size = kUnknown;
  int rank = kUnknown;  // of q, k, v and dst
};

// Notes a size, or that it is another than what is known.
Status Note(const char* name, const char* meaning, int64_t size, int64_t* known) {
  if (size == kUnknown || size == *known) return absl::OkStatus();
  if (*known == kUnknown) {
    *known = size;
    return absl::OkStatus();
  }
  return Invalid(name, " has ", size, " ", meaning, ", not ", *known);
}

// A bias or mask as [sequences, heads, queries, keys], ones in front of what it has: tensors of
// rank 3 have no axis of heads. A dimension more, of 1, is in front of all.
std::array<int64_t, 4> BiasDims(const PartialTensorShape& bias, int rank) {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  for (int i = 0; i < bias.dims(); ++i) {
    const int axis = 4 - bias.dims() + i;  // of four; a sequence of rank 3 moves over the heads
    if (axis >= 0) dims[rank == 3 && axis == 1 ? 0 : axis] = bias.dim_size(i);
  }
  return dims;
}

Status CheckBias(const std::string& name, const PartialTensorShape& bias, const Sizes& s) {
  if (bias.unknown_rank()) return absl::OkStatus();
  const auto dims = BiasDims(bias, s.rank);
  const int64_t all[] = {s.batch, s.heads, s.queries, s.keys};
  bool fits = bias.dims() <= s.rank || (bias.dims() == s.rank + 1 && bias.dim_size(0) == 1);
  for (int i = 0; i < 4 && fits; ++i) {
    const bool unknown = dims[i] == kUnknown || all[i] == kUnknown;
    const bool repeats = i == 0 && dims[i] > 0 && all[i] % dims[i] == 0;
    fits = unknown || dims[i] == all[i] || repeats || dims[i] == 1;
  }
  if (fits) return absl::OkStatus();
  const auto text = [](int64_t size) { return size == kUnknown ? "?" : absl::StrCat(size); };
  return Invalid(name, " must be broadcastable to the scores, [", text(s.batch), ",",
                 s.rank == 3 ? "" : text(s.heads) + ",", text(s.queries), ",", text(s.keys),
                 "]; got ", bias.DebugString());
}

AttentionBias Bias(const PartialTensorShape& shape, int rank) {
  const auto dims = BiasDims(shape, rank);
  const auto stride = [&](int axis, int64_t elements) { return dims[axis] == 1 ? 0 : elements; };
  AttentionBias bias;
  bias.sequences = std::max<int64_t>(1, dims[0]);
  bias.strides = {dims[1] * dims[2] * dims[3], stride(1, dims[2] * dims[3]), stride(2, dims[3])};
  bias.key_stride = stride(3, 1);
  return bias;
}

struct Attention : OpDefaults {
  using Plan = AttentionPlan;

  int num_biases = 0, num_masks = 0;
  Axes axes[4] = {};  // of q, k, v and dst
  float scale = 1.f, soft_cap = 0.f, masked_value = 0.f;
  int late_biases = 0;
  bool causal = false, zero_masked = false, rounds = false;
  // Of q, k and v: the indices of axes at_axis, at_axis + 1, .. of a larger tensor at which they
  // are, such as a cache, or the product that makes all three.
  std::vector<int64_t> at[3];
  int at_axis = 1;

  int mask() const { return kBiases + num_biases; }

  static OpSignature Signature() {
    return {"BlockdnnAttention",
            {"q: T", "k: T", "v: T", "biases: num_biases * T", "masks: num_masks * bool"},
            {"dst: T"},
            "See bd.ops.attention."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float} = DT_FLOAT", &dtype);
    v("num_biases: int >= 0 = 0", &num_biases);
    v("num_masks: int >= 0 = 0", &num_masks);
    for (int i : {kQ, kK, kV, kDst}) {
      v.Choice(absl::StrCat(kNames[i], "_layout").c_str(), &axes[i],
               {{"BTNH", Axes::kBTNH}, {"BNTH", Axes::kBNTH}, {"TBNH", Axes::kTBNH}}, "BTNH");
    }
    v("scale: float = 1.0", &scale);
    v("causal: bool = false", &causal);
    v("masked_value: float = -inf", &masked_value);
    v("zero_masked: bool = false", &zero_masked);
    v("k_at: list(int) = []", &at[kK]);
    v("v_at: list(int) = []", &at[kV]);
    v("soft_cap: float = 0.0", &soft_cap);
    v("late_biases: int >= 0 = 0", &late_biases);
    v("q_at: list(int) = []", &at[kQ]);
    v("at_axis: int >= 1 = 1", &at_axis);
    v("round_rows: bool = false", &rounds);
    VisitScratchpadMode(v);
  }
  Status Check() const {
    if (num_biases > kMaxAttentionBiases) {
      return Invalid("attention adds at most ", kMaxAttentionBiases, " biases, not ", num_biases,
                     "; add them before");
    }
    if (at_axis > kMaxAtAxis) {
      return Invalid("at_axis must be at most ", kMaxAtAxis, ", not ", at_axis);
    }
    if (num_masks > 1) return Invalid("attention has one mask, not ", num_masks, "; join them");
    if (late_biases > num_biases) {
      return Invalid("late_biases: of ", num_biases, " biases ", late_biases,
                     " cannot be added after the mask");
    }
    if (!IsZero(soft_cap) && !(std::isnormal(soft_cap) && soft_cap > 0.f)) {
      return Invalid("soft_cap must be a positive number, or 0 for none; got ", soft_cap);
    }
    return absl::OkStatus();
  }

  // What is read of in[i].
  Status Selected(const ShapeList& in, int i, PartialTensorShape* shape) const {
    *shape = in[i];
    if (shape->unknown_rank()) return absl::OkStatus();
    const int count = static_cast<int>(at[i].size());
    for (int axis = at_axis; axis < at_axis + count; ++axis) {
      const int64_t index = at[i][axis - at_axis];
      // The last axis is of elements, which are neighbours.
      const int64_t size = axis < shape->dims() - 1 ? shape->dim_size(axis) : 0;
      if (index >= 0 && (size == kUnknown || index < size)) continue;
      return Invalid(kNames[i], "_at: ", index, " is no index of axis ", axis, " of ",
                     shape->DebugString());
    }
    // Without indices the tensor may have fewer axes than at_axis.
    if (count > 0) shape->RemoveDimRange(at_axis, at_axis + count);
    return absl::OkStatus();
  }
  // Lets the strides be those of a part of in[i]: entries of the axes in front of at_axis are as
  // long as they are there.
  void PlaceWithin(const ShapeList& in, int i, AttentionStrides* strides) const {
    std::vector<int64_t*> outer = {&strides->sequence, &strides->row, &strides->head};
    if (axes[i] == Axes::kBNTH) std::swap(outer[1], outer[2]);
    if (axes[i] == Axes::kTBNH) std::swap(outer[0], outer[1]);
    const int count = static_cast<int>(at[i].size());
    if (in[i].dims() - count == 3)
      outer.erase(std::find(outer.begin(), outer.end(), &strides->head));
    outer.resize(std::min<size_t>(outer.size(), at_axis));
    for (int axis = at_axis + count - 1; axis >= at_axis; --axis) {
      strides->first += at[i][axis - at_axis] * *outer.back();
      for (int64_t* const stride : outer) *stride *= in[i].dim_size(axis);
    }
  }

  // One of q, k and v: of rank 4, in any order of axes, or of rank 3, without that of heads.
  Status NoteTensor(int i, const PartialTensorShape& shape, Sizes* s, int64_t* heads, int64_t* rows,
                    int64_t* size) const {
    if (shape.unknown_rank()) return absl::OkStatus();
    const int dims = shape.dims();
    if ((dims != 3 && dims != 4) || dims != s->rank) {
      return Invalid("q, k and v must all be of rank 4, or of rank 3: one head; ", kNames[i],
                     " is ", shape.DebugString());
    }
    const int first = axes[i] == Axes::kTBNH ? 1 : 0, heads_axis = axes[i] == Axes::kBNTH ? 1 : 2;
    const int rows_axis = first == 1 ? 0 : (dims == 4 ? 3 - heads_axis : 1);
    TF_RETURN_IF_ERROR(Note(kNames[i], "sequences", shape.dim_size(first), &s->batch));
    TF_RETURN_IF_ERROR(Note(kNames[i], "heads", dims == 3 ? 1 : shape.dim_size(heads_axis), heads));
    TF_RETURN_IF_ERROR(
        Note(kNames[i], i == kQ ? "queries" : "keys", shape.dim_size(rows_axis), rows));
    return Note(kNames[i], "elements a row", shape.dim_size(dims - 1), size);
  }
  Status Resolve(const ShapeList& in, Sizes* s) const {
    PartialTensorShape read[3];
    for (int i = kV; i >= kQ; --i) {
      TF_RETURN_IF_ERROR(Selected(in, i, &read[i]));
      if (!read[i].unknown_rank()) s->rank = read[i].dims();
    }
    TF_RETURN_IF_ERROR(NoteTensor(kQ, read[kQ], s, &s->heads, &s->queries, &s->head_size));
    TF_RETURN_IF_ERROR(NoteTensor(kK, read[kK], s, &s->kv_heads, &s->keys, &s->head_size));
    TF_RETURN_IF_ERROR(NoteTensor(kV, read[kV], s, &s->kv_heads, &s->keys, &s->value_size));
    if (s->heads > 0 && s->kv_heads != kUnknown &&
        (s->kv_heads == 0 || s->heads % s->kv_heads != 0)) {
      return Invalid("q has ", s->heads, " heads, no multiple of the ", s->kv_heads, " of k and v");
    }
    if (s->rank == kUnknown) return absl::OkStatus();
    for (int i = 0; i < num_biases; ++i) {
      TF_RETURN_IF_ERROR(CheckBias(absl::StrCat("bias ", i), in[kBiases + i], *s));
    }
    return num_masks > 0 ? CheckBias("mask", in[mask()], *s) : absl::OkStatus();
  }
  Status Shapes(const ShapeList& in, ShapeList* shapes) const {
    Sizes s;
    TF_RETURN_IF_ERROR(Resolve(in, &s));
    PartialTensorShape* const dst = &shapes->emplace_back();
    if (s.rank == kUnknown) return absl::OkStatus();
    std::vector<int64_t> dims = {s.batch, s.queries, s.heads, s.value_size};
    if (axes[kDst] == Axes::kBNTH) std::swap(dims[1], dims[2]);
    if (axes[kDst] == Axes::kTBNH) std::swap(dims[0], dims[1]);
    if (s.rank == 3) dims.erase(dims.begin() + (axes[kDst] == Axes::kBNTH ? 1 : 2));
    return BuildShape(dims, dst);
  }

  AttentionStrides Strides(int i, int64_t batch, int64_t heads, int64_t rows, int64_t size) const {
    if (axes[i] == Axes::kTBNH) return {heads * size, size, batch * heads * size};
    if (axes[i] == Axes::kBNTH) return {heads * rows * size, rows * size, size};
    return {heads * rows * size, size, heads * size};
  }
  Status MakePlan(const ShapeList& in, const PlanSite& site, Plan* plan) const {
    Sizes s;
    TF_RETURN_IF_ERROR(Resolve(in, &s));
    AttentionDesc desc;
    desc.batch = s.batch;
    desc.heads = s.heads;
    desc.kv_heads = s.kv_heads;
    desc.queries = s.queries;
    desc.keys = s.keys;
    desc.head_size = s.head_size;
    desc.value_size = s.value_size;
    desc.q = Strides(kQ, s.batch, s.heads, s.queries, s.head_size);
    desc.k = Strides(kK, s.batch, s.kv_heads, s.keys, s.head_size);
    desc.v = Strides(kV, s.batch, s.kv_heads, s.keys, s.value_size);
    PlaceWithin(in, kQ, &desc.q);
    PlaceWithin(in, kK, &desc.k);
    PlaceWithin(in, kV, &desc.v);
    desc.dst = Strides(kDst, s.batch, s.heads, s.queries, s.value_size);
    desc.scale = scale;
    desc.soft_cap = soft_cap;
    desc.causal = causal;
    desc.num_biases = num_biases;
    for (int i = 0; i < num_biases; ++i) desc.biases[i] = Bias(in[kBiases + i], s.rank);
    desc.late_biases = late_biases;
    desc.has_mask = num_masks > 0;
    if (desc.has_mask) desc.mask = Bias(in[mask()], s.rank);
    desc.masked = masked_value;
    desc.zero_masked = zero_masked && desc.has_mask;
    desc.rounds = rounds && MultipliesBfloat16(ActiveIsa());  // Others gain nothing.
    return FromCore(MakeAttentionPlan(desc, ActiveIsa(), site.threads, plan));
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    AttentionBuffers buffers;
    buffers.q = m.in<float>(kQ);
    buffers.k = m.in<float>(kK);
    buffers.v = m.in<float>(kV);
    for (int i = 0; i < num_biases; ++i) buffers.biases[i] = m.in<float>(kBiases + i);
    if (num_masks > 0) buffers.mask = m.in<uint8_t>(mask());
    buffers.dst = m.out<float>();
    buffers.scratch = m.scratch;
    RunAttention(plan, buffers, pool);
  }
};

const OpRegistration<Attention> attention_registration;

}  // namespace
}  // namespace bd
