// BlockdnnUpdateSlice.
#include <cstring>

#include "cc/tensorflow/ops/op.h"
#include "tensorflow/core/framework/types.h"

namespace bd {
namespace {

// The slice as `rows` pieces of memory of `run` bytes, one row of the update after the other.
struct UpdateSlicePlan {
  std::vector<int64_t> sizes, room;  // of an axis: the update's, and the starts that are possible
  std::vector<int64_t> strides;      // of an axis of the whole tensor, in bytes
  int64_t first = 0;                 // bytes into it, of what `at` selects
  int64_t rows = 1, run = 0;
  int outer = 0;  // axes that rows count; the others are the run
};

struct UpdateSlice : OpDefaults {
  using Plan = UpdateSlicePlan;
  enum { kUpdate, kStart, kInto };
  static constexpr int kLike = kInto;
  // Less is not worth a thread.
  static constexpr int64_t kTaskBytes = 256 << 10;

  tensorflow::DataType type = tensorflow::DT_FLOAT;  // only its size matters
  tensorflow::DataType start_type = tensorflow::DT_INT32;
  std::vector<int64_t> at;

  static OpSignature Signature() {
    return {"BlockdnnUpdateSlice",
            {"update: T", "start: Tstart", "into: T"},
            {"dst: T"},
            "See bd.ops.update_slice."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, double, bfloat16, half, int8, uint8, int16, uint16, int32, int64, bool}", &type);
    v("Tstart: {int32, int64}", &start_type);
    v("at: list(int) = []", &at);
  }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    dst->push_back(in[kInto]);
    const PartialTensorShape &update = in[kUpdate], &into = in[kInto];
    const int64_t more = static_cast<int64_t>(at.size());
    if (!into.unknown_rank()) {
      if (into.dims() < (more > 0 ? more + 1 : 0)) {
        return Invalid("at has ", more, " indices after the first axis of into, which is ",
                       into.DebugString());
      }
      for (int64_t i = 0; i < more; ++i) {
        const int64_t size = into.dim_size(static_cast<int>(i) + 1);
        if (at[i] >= 0 && (size == kUnknown || at[i] < size)) continue;
        return Invalid("at[", i, "] = ", at[i], " is no index of axis ", i + 1, " of into, ",
                       into.DebugString());
      }
    }
    if (into.unknown_rank() || update.unknown_rank()) return absl::OkStatus();
    if (update.dims() + more != into.dims()) {
      return Invalid("update must have ", into.dims() - more, " axes; got ", update.DebugString(),
                     " for into ", into.DebugString());
    }
    for (int i = 0; i < update.dims(); ++i) {
      const int64_t size = update.dim_size(i), whole = into.dim_size(Axis(i));
      if (size == kUnknown || whole == kUnknown || size <= whole) continue;
      return Invalid("update has ", size, " elements along axis ", i, ", more than the ", whole,
                     " of into: ", update.DebugString(), " and ", into.DebugString());
    }
    const PartialTensorShape wanted({update.dims()});
    if (in[kStart].IsCompatibleWith(wanted)) return absl::OkStatus();
    return Invalid("start must be ", wanted.DebugString(),
                   ", an index for each axis of update; got ", in[kStart].DebugString());
  }
  // The axis of into that axis i of the update lies along.
  int Axis(int i) const { return i == 0 ? 0 : i + static_cast<int>(at.size()); }

  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    const PartialTensorShape &update = in[kUpdate], &into = in[kInto];
    UpdateSlicePlan p;
    std::vector<int64_t> strides(into.dims());
    int64_t stride = tensorflow::DataTypeSize(type);
    p.run = stride;
    for (int i = into.dims() - 1; i >= 0; --i) {
      strides[i] = stride;
      stride *= into.dim_size(i);
    }
    for (size_t i = 0; i < at.size(); ++i) p.first += at[i] * strides[i + 1];
    for (int i = 0; i < update.dims(); ++i) {
      p.sizes.push_back(update.dim_size(i));
      p.room.push_back(into.dim_size(Axis(i)) - update.dim_size(i));
      p.strides.push_back(strides[Axis(i)]);
    }
    // From the last axis on, axes join the run as long as those after them are whole.
    p.outer = update.dims();
    while (p.outer > 0 && p.strides[p.outer - 1] == p.run) p.run *= p.sizes[--p.outer];
    for (int i = 0; i < p.outer; ++i) p.rows *= p.sizes[i];
    *plan = std::move(p);
    return absl::OkStatus();
  }
  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    if (plan.rows == 0 || plan.run == 0) return;
    uint8_t* dst = m.out<uint8_t>() + plan.first;
    for (size_t i = 0; i < plan.sizes.size(); ++i) {
      const int64_t start =
          start_type == tensorflow::DT_INT32 ? m.in<int32_t>(kStart)[i] : m.in<int64_t>(kStart)[i];
      dst += std::clamp<int64_t>(start, 0, plan.room[i]) * plan.strides[i];
    }
    const uint8_t* const update = m.in<uint8_t>(kUpdate);
    const int64_t tasks = std::clamp<int64_t>(plan.rows * plan.run / kTaskBytes, 1, plan.rows);
    pool.ForRanges(plan.rows, tasks, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t offset = 0, rest = row;
        for (int i = plan.outer - 1; i >= 0; --i) {
          offset += rest % plan.sizes[i] * plan.strides[i];
          rest /= plan.sizes[i];
        }
        memcpy(dst + offset, update + row * plan.run, plan.run);
      }
    });
  }

  bool has_into() const { return true; }
};

const OpRegistration<UpdateSlice> update_slice_registration;

}  // namespace
}  // namespace bd
