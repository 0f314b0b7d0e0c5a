#include "cc/tensorflow/ops/pixels/rows.h"

namespace bd {

Status PixelPlane(Layout layout, const ChannelPart& part, int64_t channels,
                  const PartialTensorShape& src, Plane* plane) {
  if (!IsRows(layout, src)) {
    return ReadPlane("src", src, layout, part.tensor_channels(channels), plane);
  }
  *plane = Plane();
  if (src.unknown_rank()) return absl::OkStatus();
  PartialTensorShape rows;
  TF_RETURN_IF_ERROR(RowsShape(src, channels, channels, &rows));
  if (rows.IsFullyDefined()) *plane = {1, 1, rows.num_elements() / channels};
  return absl::OkStatus();
}

Status NormalizationShapes(int64_t channels, int first_row,
                           const std::vector<PartialTensorShape>& in,
                           std::vector<PartialTensorShape>* dst) {
  const PartialTensorShape row({channels});
  *dst = {in[0], row, row};
  const int64_t blocks = channels / 16 + (channels % 16 != 0);
  for (int i = 0; i < static_cast<int>(in.size()); ++i) {
    const PartialTensorShape& shape = in[i];
    if (shape.unknown_rank()) continue;
    if (i >= first_row) {
      if (shape.IsCompatibleWith(row)) continue;
      return Invalid("input ", i, " must be [", channels, "]; got ", shape.DebugString());
    }
    const int last = shape.dims() - 1;
    const auto is = [&](int axis, int64_t size) {
      return shape.dim_size(axis) < 0 || shape.dim_size(axis) == size;
    };
    if (last < 3 || last > 5 || !is(1, blocks) || !is(last, 16)) {
      return Invalid("input ", i, " must be blocked, [N, ", blocks, ", .., 16]; got ",
                     shape.DebugString());
    }
    if (!shape.IsCompatibleWith(in[0])) {
      return Invalid("inputs 0 and ", i, " differ: ", in[0].DebugString(), " and ",
                     shape.DebugString());
    }
  }
  return absl::OkStatus();
}

BlockedTensors BlockedActivations(int64_t channels, int activations,
                                  const std::vector<PartialTensorShape>& in) {
  constexpr Layout kLayouts[] = {Layout::nCw16c, Layout::nChw16c, Layout::nCdhw16c};
  BlockedTensors blocked;
  for (int i = 0; i < activations; ++i) {
    const int spatial = in[i].dims() - 3;
    if (spatial < 1 || spatial > 3) continue;
    blocked.Input(i, kLayouts[spatial - 1], {channels});
    if (i == 0) blocked.Output(0, kLayouts[spatial - 1], {channels});
  }
  return blocked;
}

}  // namespace bd
