// Depthwise convolutions: tasks are ranges of the n * icb * oh output rows of all channel blocks,
// of about 2,000 cycles and more. Rows of src are read where they lie; those of bytes become rows
// of dwords, or of padded bytes, each once for all rows of dst that read it.
#include "cc/core/conv/depthwise/depthwise.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "cc/core/conv/common/cost.h"
#include "cc/core/gemm/low_precision_pack.h"

namespace bd {
namespace {

// Output rows of one channel block after the other.
class ByteRows {
 public:
  ByteRows(const ConvRun& run, int thread)
      : run_(run),
        d_(run.d),
        kernels_(DepthwiseBytesKernelsFor(run.plan.isa)),
        own_(run.plan.Own<DepthwisePlan>()),
        ring_(run.scratch.Grant(own_.ring, thread)),
        rows_(own_.ring_rows),
        row_args_(),
        args_() {
    row_args_.zero = static_cast<uint8_t>(d_.types.src_quantization.zero_point);
    row_args_.first = -d_.pad_left();
    row_args_.dw = d_.dw();
    row_args_.iw = d_.iw();
    row_args_.columns = own_.columns;
    args_.rows = rows_.data();
    args_.bytes = own_.bytes;
    args_.count = own_.rows;
    args_.taps = own_.taps;
    args_.row_step = d_.sh();
    args_.row_distance = own_.row_distance;
    args_.step = d_.sw();
    args_.tap_step = own_.tap_columns;
    args_.ow = d_.ow();
    args_.sums = As<int32_t>(run.scratch.Grant(own_.sums, thread));
  }

  // Rows [begin, end) of a block of image n.
  void Run(int64_t n, int64_t block, int64_t begin, int64_t end) {
    const int64_t channel = block * kBlock, of_block = own_.rows * own_.taps * kBlock;
    const float* const packed = run_.buffers.packed;
    columns_.Bind(d_.types.src_quantization,
                  As<const int32_t>(packed + run_.plan.icb * of_block) + channel,
                  run_.buffers.weight_scales + channel, d_.oc() - channel, kBlock);
    src_ = run_.SrcBlock(n, block);
    made_ = INT64_MIN;
    args_.weights = packed + block * of_block;
    args_.start = columns_.start;
    for (int64_t h = begin; h < end; h += args_.oh) {
      args_.oh = std::min(own_.rows_together, end - h);
      MakeRows(h * d_.sh() - d_.pad_top(),
               (args_.oh - 1) * d_.sh() + (own_.rows - 1) * own_.row_distance + 1);
      args_.epilogue = BlocksEpilogue(run_, block, 1, n, h * d_.ow());
      args_.epilogue.scale = columns_.scale;
      args_.dst =
          BytesFrom(run_.DstBlock(n, block), h * d_.ow() * kBlock * run_.plan.tensors.dst_bytes);
      kernels_.rows(args_);
    }
  }

 private:
  // Of `count` rows of src from `first` on those that windows begin at or meet; what the ring has
  // need not be made.
  void MakeRows(int64_t first, int64_t count) {
    const int64_t every = std::gcd(d_.sh(), own_.row_distance);
    int64_t slot = (first + d_.pad_top()) % own_.ring_rows;
    for (int64_t r = first; r < first + count; r += every) {
      char* const row = ring_ + slot * own_.row_bytes;
      if (r >= made_) own_.bytes ? Pad(Row(r), row) : Dwords(r, row);
      rows_[r - first] = As<const float>(row);
      slot += every;
      if (slot >= own_.ring_rows) slot -= own_.ring_rows;
    }
    made_ = first + count;
  }

  void Pad(const uint8_t* row, char* to) const {
    const int64_t left = std::min(d_.pad_left(), own_.columns);
    const int64_t inside = row == nullptr ? 0 : std::min(d_.iw(), own_.columns - left);
    char* const right = to + (left + inside) * kBlock;
    memset(to, row_args_.zero, left * kBlock);
    if (inside > 0) memcpy(to + left * kBlock, row, inside * kBlock);
    memset(right, row_args_.zero, to + own_.row_bytes - right);
  }

  // Of pairs, with the row one dh below.
  void Dwords(int64_t r, char* to) {
    row_args_.rows[0] = Row(r);
    row_args_.rows[1] = Row(r + d_.dh());
    row_args_.dst = As<float>(to);
    kernels_.dwords(row_args_);
  }

  const uint8_t* Row(int64_t r) const {
    if (r < 0 || r >= d_.ih()) return nullptr;
    return As<const uint8_t>(src_) + r * d_.iw() * kBlock;
  }

  const ConvRun& run_;
  const ConvDesc& d_;
  const DepthwiseBytesKernels& kernels_;
  const DepthwisePlan& own_;
  char* const ring_;
  const float* src_ = nullptr;
  int64_t made_ = INT64_MIN;  // the row after the last one in the ring
  std::vector<const float*> rows_;
  Int8Columns columns_;
  DwordRowArgs row_args_;
  ByteRowsArgs args_;
};

void RunBytes(const ConvRun& run, ThreadPool& pool) {
  std::vector<std::optional<ByteRows>> rows(static_cast<size_t>(pool.num_threads()));
  ForBlockRows(run, pool, [&](int64_t n, int64_t block, int64_t begin, int64_t end, int thread) {
    std::optional<ByteRows>& of_thread = rows[static_cast<size_t>(thread)];
    if (!of_thread) of_thread.emplace(run, thread);
    of_thread->Run(n, block, begin, end);
  });
}

// Pixels of rows that the kernel makes in one call, which sets out once for them. L1 holds their
// sums, which some epilogues want in memory, and the rows that they read: of dwords, which are four
// times as large, those of fewer pixels.
constexpr int64_t kPixelsOfBytes = 224, kPixelsOfDwords = 28;

bool IsOfBytes(const ConvDesc& d) { return d.src.dtype() == DataType::u8; }

// The window in dwords, of bytes.
void ShapeWindow(const ConvDesc& d, Isa isa, DepthwisePlan* own) {
  own->quads = DepthwiseBytesKernelsFor(isa).quads;
  own->rows = own->quads ? d.kh() : CeilDiv(d.kh(), 2);
  own->row_distance = own->quads ? d.dh() : 2 * d.dh();
  own->taps = own->quads ? CeilDiv(d.kw(), 4) : d.kw();
  own->tap_columns = own->quads ? 4 * d.dw() : d.dw();
}

void PlanRing(ConvPlan* plan, DepthwisePlan* own) {
  const ConvDesc& d = plan->desc;
  own->bytes = own->quads && d.dw() == 1;
  // Quads of bytes have four columns.
  const int64_t reach = own->bytes ? 4 * own->taps - 1 : (own->taps - 1) * own->tap_columns;
  own->columns = (d.ow() - 1) * d.sw() + reach + 1;
  own->row_bytes = own->columns * kBlock;
  if (!own->bytes) own->row_bytes *= sizeof(float);
  own->rows_together = CeilDiv(own->bytes ? kPixelsOfBytes : kPixelsOfDwords, d.ow());
  own->ring_rows = (own->rows_together - 1) * d.sh() + (own->rows - 1) * own->row_distance + 1;
  own->ring = plan->scratch.Book<char>("ring", own->ring_rows * own->row_bytes, plan->threads);
  own->sums =
      plan->scratch.Book<float>("sums", own->rows_together * d.ow() * kBlock, plan->threads);
}

void PackBytes(const ConvPlan& plan, const int8_t* hwio, float* packed) {
  const ConvDesc& d = plan.desc;
  DepthwisePlan own;
  ShapeWindow(d, plan.isa, &own);
  int32_t* const sums = As<int32_t>(packed + plan.icb * own.rows * own.taps * kBlock);
  std::fill_n(sums, plan.icb * kBlock, 0);
  for (int64_t b = 0; b < plan.icb; ++b) {
    for (int64_t row = 0; row < own.rows; ++row) {
      for (int64_t tap = 0; tap < own.taps; ++tap, packed += kBlock) {
        const auto index_of = [&](int64_t k, int64_t lane) -> int64_t {
          const int64_t h = own.quads ? row : 2 * row + k, w = own.quads ? 4 * tap + k : tap;
          const int64_t c = b * kBlock + lane;
          return h < d.kh() && w < d.kw() && c < d.ic() ? (h * d.kw() + w) * d.ic() + c : -1;
        };
        PackLowPrecision(own.quads ? TileFamily::kInt8 : TileFamily::kWords, DataType::s8, hwio,
                         own.quads ? 4 : 2, kBlock, index_of, packed, sums + b * kBlock);
      }
    }
  }
}

std::string Applies(const Algorithm&, const ConvDesc& d, Isa) {
  if (d.pooled()) return "depthwise rows do not pool";
  if (!d.src.blocked() || !d.dst.blocked()) {
    return "src and dst are not both nChw16c";
  }
  if (!d.depthwise()) return "not one input and one output channel a group";
  return d.kh() <= kMaxDepthwiseRows ? "" : "the window has too many rows";
}

ConvCost Cost(const Algorithm&, const ConvDesc& d, Isa, int threads) {
  return {d.n() * CeilDiv(d.ic(), kBlock) * d.oh() * DepthwiseRowCycles(d, 0) / threads};
}

void Plan(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const bool bytes = IsOfBytes(d);
  const auto own = std::make_shared<DepthwisePlan>();
  if (bytes) ShapeWindow(d, plan->isa, own.get());
  plan->pack_key = {self.name, d.src.dtype(), own->quads ? 2 : 1};
  const int64_t dwords = bytes ? own->rows * own->taps + 1 : d.kh() * d.kw();
  plan->packed_bytes = plan->icb * dwords * kBlock * sizeof(float);
  const int64_t rows = d.n() * plan->icb * d.oh();
  const int64_t work = rows * d.ow() * d.kh() * d.kw() / 2;
  if (plan->empty()) return;
  if (bytes) {
    plan->own = own;
    PlanRing(plan, own.get());
  }
  plan->tasks = std::clamp<int64_t>(work / 2000, 1, std::min<int64_t>(rows, 16 * plan->threads));
}

}  // namespace

DepthwiseBlock::DepthwiseBlock(const ConvRun& run, int64_t n, int64_t block, int64_t inputs)
    : d_(run.d),
      args_(),
      row_(run.d.low_precision() ? DepthwiseBf16KernelsFor(run.plan.isa).row
                                 : DepthwiseKernelsFor(run.plan.isa).row) {
  args_.kh = d_.kh() * inputs;
  args_.kw = d_.kw();
  args_.weights = run.buffers.packed + block * kBlock * args_.kh * args_.kw;
  args_.sw = d_.sw();
  args_.dw = d_.dw();
  args_.pad_left = d_.pad_left();
  args_.iw = d_.iw();
  args_.ow = d_.ow();
  dst_ = d_.dst.blocked() ? run.DstBlock(n, block) : nullptr;
  args_.epilogue = BlocksEpilogue(run, block, 1, n, 0);
}

void DepthwiseBlock::Run(int64_t h, const float* const* rows) {
  args_.epilogue.Advance((h - row_of_args_) * d_.ow());
  row_of_args_ = h;
  RunInto(rows, BytesFrom(dst_, h * d_.ow() * kBlock * args_.epilogue.tensors.dst_bytes));
}

void DepthwiseBlock::RunInto(const float* const* rows, float* dst) {
  args_.rows = rows;
  args_.dst = dst;
  row_(args_);
}

void RunDepthwise(const ConvRun& run, ThreadPool& pool) {
  if (run.d.src.dtype() == DataType::u8) return RunBytes(run, pool);
  const int64_t row_bytes = run.d.iw() * kBlock * run.plan.src_bytes;
  ForBlockRows(run, pool, [&](int64_t n, int64_t block, int64_t begin, int64_t end, int) {
    DepthwiseBlock of_block(run, n, block);
    const float* src = run.SrcBlock(n, block);
    for (int64_t h = begin; h < end; ++h) {
      of_block.RunRow(h, [&](int64_t r) { return BytesFrom(src, r * row_bytes); });
    }
  });
}

const Algorithm kDepthwise = {"depthwise", 0,    true,          Applies,
                              Cost,        Plan, PackDepthwise, RunDepthwise};

void PackDepthwise(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool&) {
  const ConvDesc& d = plan.desc;
  if (IsOfBytes(d)) return PackBytes(plan, As<const int8_t>(hwio), packed);
  for (int64_t b = 0; b < plan.icb; ++b) {
    const int64_t lanes = std::min(kBlock, d.ic() - b * kBlock);
    for (int64_t t = 0; t < d.kh() * d.kw(); ++t) {
      const int64_t from = t * d.ic() + b * kBlock;
      for (int64_t i = 0; i < kBlock; ++i) {
        *packed++ = i >= lanes          ? 0.f
                    : d.low_precision() ? PackedBfloat16(d.types.weights, hwio, from + i)
                                        : hwio[from + i];
      }
    }
  }
}

}  // namespace bd
