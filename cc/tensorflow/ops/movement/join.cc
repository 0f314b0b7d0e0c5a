// BlockdnnJoin.
#include <algorithm>
#include <cstring>

#include "cc/tensorflow/ops/op.h"
#include "tensorflow/core/framework/types.h"

namespace bd {
namespace {

// A row of dst is a piece of each value in turn.
struct JoinPlan {
  std::vector<int64_t> ends;  // of the pieces, in bytes of a row
  int64_t rows = 1;

  int64_t row_bytes() const { return ends.back(); }
};

// The piece of each row that `src` has, in moves of `unit` <= size bytes, the last of which ends
// with it.
template <int unit>
void CopyPieces(const uint8_t* src, int64_t size, int64_t rows, uint8_t* dst, int64_t row_bytes) {
  for (; rows > 0; --rows, src += size, dst += row_bytes) {
    for (int64_t at = 0; at < size - unit; at += unit) memcpy(dst + at, src + at, unit);
    memcpy(dst + size - unit, src + size - unit, unit);
  }
}

void CopyShortPieces(const uint8_t* src, int64_t size, int64_t rows, uint8_t* dst,
                     int64_t row_bytes) {
  const auto copy = size >= 16  ? CopyPieces<16>
                    : size >= 8 ? CopyPieces<8>
                    : size >= 4 ? CopyPieces<4>
                    : size >= 2 ? CopyPieces<2>
                                : CopyPieces<1>;
  if (size > 0) copy(src, size, rows, dst, row_bytes);
}

struct Join : OpDefaults {
  using Plan = JoinPlan;
  // Less is not worth a thread.
  static constexpr int64_t kTaskBytes = 64 << 10;
  // Calls to copy the pieces of a shorter row would take longer than the copies.
  static constexpr int64_t kShortRow = 512;

  tensorflow::DataType type = tensorflow::DT_FLOAT;  // only its size matters
  int n = 0;
  int axis = 0;

  static OpSignature Signature() {
    return {"BlockdnnJoin", {"values: N * T"}, {"dst: T"}, "See bd.ops.join."};
  }

  void Visit(AttrVisitor& v) {
    v("T: {float, double, bfloat16, half, int8, uint8, int16, uint16, int32, int64, bool}", &type);
    v("N: int >= 1", &n);
    v("axis: int", &axis);
  }

  bool keeps_batch() const { return axis > 0; }  // a negative one may be the first
  int AxisOf(int rank) const { return axis < 0 ? axis + rank : axis; }

  Status Shapes(const ShapeList& in, ShapeList* dst) const {
    PartialTensorShape common;  // what is known of dst, with any size along the axis
    int64_t joined = 0;
    for (int i = 0; i < n; ++i) {
      if (in[i].unknown_rank()) {
        joined = kUnknown;
        continue;
      }
      const int along = AxisOf(in[i].dims());
      if (along < 0 || along >= in[i].dims()) {
        return Invalid("axis = ", axis, " is none of values[", i, "], ", in[i].DebugString());
      }
      const int64_t size = in[i].dim_size(along);
      joined = joined == kUnknown || size == kUnknown ? kUnknown : joined + size;
      PartialTensorShape free = in[i], merged;
      free.set_dim(along, kUnknown);
      if (!common.MergeWith(free, &merged).ok()) {
        return Invalid("values[", i, "] ", in[i].DebugString(),
                       " must have the sizes of the values before it, ", common.DebugString(),
                       ", except along axis ", axis);
      }
      common = merged;
    }
    if (!common.unknown_rank()) common.set_dim(AxisOf(common.dims()), joined);
    dst->push_back(common);
    return absl::OkStatus();
  }

  Status MakePlan(const ShapeList& in, const PlanSite&, Plan* plan) const {
    const int rank = in[0].dims(), along = AxisOf(rank);
    int64_t bytes = tensorflow::DataTypeSize(type);  // of one entry along the axis
    JoinPlan p;
    for (int i = 0; i < rank; ++i)
      (i < along ? p.rows : bytes) *= i == along ? 1 : in[0].dim_size(i);
    int64_t end = 0;
    for (const PartialTensorShape& value : in)
      p.ends.push_back(end += value.dim_size(along) * bytes);
    *plan = std::move(p);
    return absl::OkStatus();
  }

  void Run(const Plan& plan, const LaunchMemory& m, ThreadPool& pool) const {
    const int64_t row_bytes = plan.row_bytes(), bytes = plan.rows * row_bytes;
    const auto values = m.all_in<uint8_t>(0);
    uint8_t* const dst = m.out<uint8_t>();
    const int64_t tasks = std::max<int64_t>(1, bytes / kTaskBytes);
    if (row_bytes <= kShortRow) {
      return pool.ForRanges(plan.rows, tasks, [&](int64_t begin, int64_t end, int) {
        constexpr int64_t kRows = 16;
        for (int64_t row = begin; row < end; row += kRows) {
          const int64_t rows = std::min(kRows, end - row);
          uint8_t* piece = dst + row * row_bytes;
          for (int i = 0; i < n; ++i) {
            const int64_t size = plan.ends[i] - (i == 0 ? 0 : plan.ends[i - 1]);
            CopyShortPieces(values[i] + row * size, size, rows, piece, row_bytes);
            piece += size;
          }
        }
      });
    }
    // Bytes [at, end) of dst, a piece at a time; the first and the last one may be cut.
    pool.ForRanges(bytes, tasks, [&](int64_t at, int64_t end, int) {
      int64_t row = at / row_bytes;
      size_t i =
          std::upper_bound(plan.ends.begin(), plan.ends.end(), at % row_bytes) - plan.ends.begin();
      while (at < end) {
        const int64_t first = i == 0 ? 0 : plan.ends[i - 1], size = plan.ends[i] - first;
        const int64_t skipped = at - row * row_bytes - first;
        const int64_t count = std::min(size - skipped, end - at);
        memcpy(dst + at, values[i] + row * size + skipped, count);
        at += count;
        if (++i == plan.ends.size()) i = 0, ++row;
      }
    });
  }
};

const OpRegistration<Join> join_registration;

}  // namespace
}  // namespace bd
