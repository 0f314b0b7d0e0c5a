#include "cc/tensorflow/attrs/products/rnn_attrs.h"

namespace bd {
namespace {

// `shape` must have `dims.size()` dimensions; each known one that is known here, too, must
// be the same, and what is not known here becomes known.
Status Match(const char* what, const char* form, const PartialTensorShape& shape,
             const std::vector<int64_t*>& dims) {
  if (shape.unknown_rank()) return absl::OkStatus();
  bool fits = shape.dims() == static_cast<int>(dims.size());
  for (int i = 0; fits && i < shape.dims(); ++i) {
    const int64_t size = shape.dim_size(i);
    if (size == kUnknown) continue;
    if (*dims[i] == kUnknown) *dims[i] = size;
    fits = *dims[i] == size;
  }
  if (fits) return absl::OkStatus();
  std::string wanted;
  for (const int64_t* dim : dims) {
    absl::StrAppend(&wanted, wanted.empty() ? "" : ", ",
                    *dim == kUnknown ? "?" : absl::StrCat(*dim));
  }
  return Invalid(what, " must be ", form, " = [", wanted, "]; got ", shape.DebugString());
}

}  // namespace

Status RnnAttrs::Check(int biases, int masks, int lists) {
  if (biases > 1 || masks > 1 || lists > 1) {
    return Invalid("there can be one bias, one mask and one list of lengths at most");
  }
  const int most = cell == "lstm" ? 2 : 1;
  if (num_states != 0 && num_states != most) {
    return Invalid("cell ", cell, " begins with ", most, " states or none; got ", num_states);
  }
  if (restores_order && !go_backwards) {
    return Invalid("restore_order belongs to go_backwards; leave it out");
  }
  has_bias = biases == 1;
  has_mask = masks == 1;
  has_lengths = lists == 1;
  return absl::OkStatus();
}

Status ReadRnnSizes(const RnnAttrs& a, const std::vector<PartialTensorShape>& shapes,
                    RnnSizes* sizes) {
  RnnSizes& s = *sizes;
  s = RnnSizes();
  if (static_cast<int>(shapes.size()) != a.num_inputs()) {
    return Invalid("expected ", a.num_inputs(), " inputs, got ", shapes.size());
  }
  if (a.time_major) {
    TF_RETURN_IF_ERROR(Match("src", "[steps, batch, inputs]", shapes[RnnAttrs::kSrc],
                             {&s.steps, &s.batch, &s.inputs}));
  } else {
    TF_RETURN_IF_ERROR(Match("src", "[batch, steps, inputs]", shapes[RnnAttrs::kSrc],
                             {&s.batch, &s.steps, &s.inputs}));
  }
  // units from whatever knows it.
  const auto width = [&](const PartialTensorShape& shape) {
    if (shape.unknown_rank() || shape.dims() != 2 || shape.dim_size(1) == kUnknown) return kUnknown;
    return static_cast<int64_t>(shape.dim_size(1));
  };
  int64_t columns = width(shapes[RnnAttrs::kRecurrent]);
  if (columns == kUnknown) columns = width(shapes[RnnAttrs::kKernel]);
  if (columns != kUnknown) {
    if (columns == 0 || columns % a.gates() != 0) {
      return Invalid("the kernels of cell ", a.cell, " must have ", a.gates(),
                     " columns a unit, and at least one unit; got ", columns, " columns");
    }
    s.units = columns / a.gates();
  }
  TF_RETURN_IF_ERROR(Match("recurrent_kernel", "[units, gates * units]",
                           shapes[RnnAttrs::kRecurrent], {&s.units, &columns}));
  TF_RETURN_IF_ERROR(
      Match("kernel", "[inputs, gates * units]", shapes[RnnAttrs::kKernel], {&s.inputs, &columns}));
  if (a.has_bias) {
    int64_t two = 2;
    TF_RETURN_IF_ERROR(
        a.two_biases()
            ? Match("bias", "[2, gates * units]", shapes[RnnAttrs::kBias], {&two, &columns})
            : Match("bias", "[gates * units]", shapes[RnnAttrs::kBias], {&columns}));
  }
  for (int i = 0; i < a.num_states; ++i) {
    TF_RETURN_IF_ERROR(Match("initial_state", "[batch, units]", shapes[a.first_state() + i],
                             {&s.batch, &s.units}));
  }
  if (a.has_mask) {
    TF_RETURN_IF_ERROR(
        a.time_major ? Match("mask", "[steps, batch]", shapes[a.mask()], {&s.steps, &s.batch})
                     : Match("mask", "[batch, steps]", shapes[a.mask()], {&s.batch, &s.steps}));
  }
  if (a.has_lengths) {
    TF_RETURN_IF_ERROR(Match("lengths", "[batch]", shapes[a.lengths()], {&s.batch}));
  }
  return absl::OkStatus();
}

Status RnnDstShape(const RnnAttrs& a, const RnnSizes& s, PartialTensorShape* dst) {
  if (!a.return_sequences) return BuildShape({s.batch, s.units}, dst);
  if (a.time_major) return BuildShape({s.steps, s.batch, s.units}, dst);
  return BuildShape({s.batch, s.steps, s.units}, dst);
}

}  // namespace bd
