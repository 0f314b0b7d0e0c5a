// Which rows of dweights meet which pixels, chunks of pixels, who sums what; and the sums.
#include "cc/core/conv/backward_weights/backward_weights.h"

#include <algorithm>
#include <cstring>

#include "cc/base/machine.h"
#include "cc/base/size.h"
#include "cc/core/conv/backward_weights/backward_weights_kernel.h"
#include "cc/core/gemm/gemm_panels.h"

namespace bd {
namespace {

// A tile's sums are read and written once a chunk, which takes as long as some 16 pixels: few
// chunks. A source block and a block of ddst of a chunk fit L1 with room for their neighbours.
constexpr int64_t kChunkPixels = 224;
// Weights that each split may keep sums of its own for.
constexpr int64_t kSplitBytes = 512 << 10;

std::string Check(const ConvDesc& d) {
  if (std::string error = CheckSizes(d); !error.empty()) return error;
  for (Layout layout : {d.src.layout(), d.dst.layout()}) {
    if (layout != Layout::nhwc && layout != Layout::nChw16c) {
      return "gradients of weights take nhwc and nChw16c tensors; add a reorder";
    }
  }
  if (d.groups == 1) return "";
  const bool blocked = d.src.blocked() && d.dst.blocked();
  if (blocked && d.depthwise()) return "";
  if (blocked && d.ic() / d.groups % kBlock == 0 && d.oc() / d.groups % kBlock == 0) return "";
  return "groups must be depthwise or of whole blocks of 16 channels, in nChw16c tensors";
}

// Columns x of ddst whose source column x stride + reach - pad lies in [0, size).
void MeetingColumns(int64_t size, int64_t out, int64_t stride, int64_t reach, int64_t pad,
                    int64_t* x0, int64_t* x1) {
  *x0 = std::min(out, std::max<int64_t>(0, CeilDiv(pad - reach, stride)));
  *x1 = size + pad - reach <= 0 ? 0 : std::min(out, CeilDiv(size + pad - reach, stride));
  *x1 = std::max(*x0, *x1);
}

class Rows {
 public:
  Rows(const ConvDesc& d, int64_t max_rows, BackwardWeightsPlan* plan)
      : d_(d), inputs_(d.ic() / d.groups), max_rows_(max_rows), plan_(plan) {}

  // A source block each, all taps.
  void AddBlocks() {
    const int64_t outputs = d_.oc() / d_.groups, plane = d_.ih() * d_.iw() * kBlock;
    for (int64_t c = 0; c < d_.ic(); c += kBlock) {
      const int64_t group = plan_->depthwise ? 0 : c / inputs_;
      WeightUnit unit;
      unit.begin = static_cast<int64_t>(plan_->rows.size());
      unit.o0 = plan_->depthwise ? c / kBlock : group * outputs / kBlock;
      unit.o1 = plan_->depthwise ? unit.o0 + 1 : CeilDiv((group + 1) * outputs, kBlock);
      for (int64_t kh = 0; kh < d_.kh(); ++kh) {
        for (int64_t kw = 0; kw < d_.kw(); ++kw) {
          WeightRows at;
          at.kh = kh;
          MeetingColumns(d_.iw(), d_.ow(), d_.sw(), kw * d_.dw(), d_.pad_left(), &at.x0, &at.x1);
          const int64_t src = c / kBlock * plane + Tap(kh, kw, kBlock);
          const int64_t first = (kh * d_.kw() + kw) * inputs_;
          if (plan_->depthwise) {
            Put(at, src, first, 1);
          } else {
            Put(at, src, first + c % inputs_, std::min(kBlock, inputs_ - c % inputs_));
          }
        }
      }
      Close(unit);
    }
  }

  // Of a plain source a row of taps each. Taps without dilation are neighbours in memory: those of
  // a tile share its pixels, and pixels at the border that some of them do not meet are tiles of
  // their own.
  void AddPlain() {
    const bool joined = d_.dw() == 1;
    const int64_t floats = (joined ? d_.kw() : 1) * d_.ic();
    for (int64_t kh = 0; kh < d_.kh(); ++kh) {
      for (int64_t kw = 0; kw < (joined ? 1 : d_.kw()); ++kw) {
        WeightUnit unit;
        unit.begin = static_cast<int64_t>(plan_->rows.size());
        unit.o1 = CeilDiv(d_.oc(), kBlock);
        const int64_t first = (kh * d_.kw() + kw) * d_.ic(), src = Tap(kh, kw, d_.ic());
        const int64_t pieces = CeilDiv(floats, max_rows_);
        for (int64_t i = 0; i < pieces; ++i) {
          const int64_t f0 = floats * i / pieces, f1 = floats * (i + 1) / pieces;
          AddJoined(kh, kw + f0 / d_.ic(), kw + (f1 - 1) / d_.ic(), src, first, f0, f1);
        }
        Close(unit);
      }
    }
  }

 private:
  int64_t Tap(int64_t kh, int64_t kw, int64_t px) const {
    return ((kh * d_.dh() - d_.pad_top()) * d_.iw() + kw * d_.dw() - d_.pad_left()) * px;
  }

  void AddJoined(int64_t kh, int64_t kw0, int64_t kw1, int64_t src, int64_t first, int64_t f0,
                 int64_t f1) {
    WeightRows at;
    at.kh = kh;
    MeetingColumns(d_.iw(), d_.ow(), d_.sw(), kw0 * d_.dw(), d_.pad_left(), &at.x0, &at.x1);
    for (int64_t kw = kw0 + 1; kw <= kw1; ++kw) {
      int64_t x0, x1;
      MeetingColumns(d_.iw(), d_.ow(), d_.sw(), kw * d_.dw(), d_.pad_left(), &x0, &x1);
      at.x0 = std::max(at.x0, x0);
      at.x1 = std::max(at.x0, std::min(at.x1, x1));
    }
    Put(at, src + f0, first + f0, f1 - f0);
    if (kw0 == kw1) return;
    for (int64_t kw = kw0; kw <= kw1; ++kw) {
      WeightRows edge = at;
      edge.first = false;
      int64_t x0, x1;
      MeetingColumns(d_.iw(), d_.ow(), d_.sw(), kw * d_.dw(), d_.pad_left(), &x0, &x1);
      const int64_t from = std::max(f0, kw * d_.ic()), to = std::min(f1, (kw + 1) * d_.ic());
      edge.x0 = x0;
      edge.x1 = std::min(x1, at.x0);
      if (edge.x0 < edge.x1) Put(edge, src + from, first + from, to - from);
      edge.x0 = std::max(x0, at.x1);
      edge.x1 = x1;
      if (edge.x0 < edge.x1 && at.x1 > at.x0) Put(edge, src + from, first + from, to - from);
      if (at.x1 == at.x0 && x1 > at.x0) {  // no column meets them all
        edge.x0 = std::max(x0, at.x0);
        if (edge.x0 < x1) Put(edge, src + from, first + from, to - from);
      }
    }
  }

  // In tiles as even as they come.
  void Put(WeightRows at, int64_t src, int64_t first_row, int64_t rows) {
    const int64_t tiles = CeilDiv(rows, max_rows_);
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t r0 = rows * i / tiles;
      at.src = src + r0;
      at.first_row = first_row + r0;
      at.rows = rows * (i + 1) / tiles - r0;
      plan_->rows.push_back(at);
    }
  }

  void Close(WeightUnit unit) {
    unit.end = static_cast<int64_t>(plan_->rows.size());
    plan_->units.push_back(unit);
  }

  const ConvDesc& d_;
  const int64_t inputs_, max_rows_;
  BackwardWeightsPlan* const plan_;
};

void CutIntoChunks(const ConvDesc& d, int64_t pixels, std::vector<PixelChunk>* chunks) {
  const int64_t plane = d.oh() * d.ow();
  if (plane >= 2 * pixels) {
    const int64_t parts = std::min(d.oh(), CeilDiv(plane, pixels));
    for (int64_t n = 0; n < d.n(); ++n) {
      for (int64_t i = 0; i < parts; ++i) {
        chunks->push_back({n, n + 1, d.oh() * i / parts, d.oh() * (i + 1) / parts});
      }
    }
    return;
  }
  const int64_t parts = std::min(d.n(), CeilDiv(d.n() * plane, pixels));
  for (int64_t i = 0; i < parts; ++i) {
    chunks->push_back({d.n() * i / parts, d.n() * (i + 1) / parts, 0, d.oh()});
  }
}

class Run {
 public:
  Run(const BackwardWeightsPlan& plan, const BackwardWeightsBuffers& buffers)
      : plan_(plan),
        d_(plan.desc),
        b_(buffers),
        kernels_(BackwardWeightsKernelsFor(plan.isa)),
        plain_ddst_(plan.desc.dst.channels_last()) {
    const bool plain_src = d_.src.channels_last();
    const int64_t src_px = plain_src ? d_.ic() : kBlock, ddst_px = plain_ddst_ ? d_.oc() : kBlock;
    const int64_t src_blocks = plain_src ? 1 : CeilDiv(d_.ic(), kBlock);
    const int64_t ddst_blocks = plain_ddst_ ? 1 : CeilDiv(d_.oc(), kBlock);
    tile_.src_step = {d_.sw() * src_px, d_.sh() * d_.iw() * src_px,
                      src_blocks * d_.ih() * d_.iw() * src_px};
    tile_.ddst_step = {ddst_px, d_.ow() * ddst_px, ddst_blocks * d_.oh() * d_.ow() * ddst_px};
    tile_.dweights_row = d_.oc();
    const bool dense = d_.kw() == 1 && d_.sh() == 1 && d_.sw() == 1 && d_.pad_left() == 0;
    joins_rows_ = dense && d_.ow() == d_.iw();
  }

  // Chunks [c0, c1) of units [u0, u1), share `part` of `parts` of their output blocks.
  void Sum(int64_t c0, int64_t c1, int64_t u0, int64_t u1, int64_t part, int64_t parts,
           float* dweights) const {
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t u = u0; u < u1; ++u) {
        const WeightUnit& unit = plan_.units[u];
        const int64_t blocks = unit.o1 - unit.o0;
        for (int64_t o = unit.o0 + blocks * part / parts; o < unit.o0 + blocks * (part + 1) / parts;
             ++o) {
          SumUnit(unit, o, plan_.chunks[c], c > c0, dweights);
        }
      }
    }
  }

 private:
  void SumUnit(const WeightUnit& unit, int64_t o, const PixelChunk& chunk, bool add,
               float* dweights) const {
    BackwardWeightsTile a = tile_;
    const int64_t column = o * kBlock;
    a.lanes = static_cast<int32_t>(std::min(kBlock, d_.oc() - column));
    const bool narrow = plain_ddst_ && a.lanes < kBlock;
    const float* ddst = b_.ddst + chunk.n0 * a.ddst_step.image +
                        (plain_ddst_ ? column : o * d_.oh() * d_.ow() * kBlock);
    const float* src = b_.src + chunk.n0 * a.src_step.image;
    for (int64_t i = unit.begin; i < unit.end; ++i) {
      const WeightRows& rows = plan_.rows[i];
      // Rows y with 0 <= y sh + kh dh - pad_top < ih.
      const int64_t reach = rows.kh * d_.dh() - d_.pad_top();
      const int64_t y0 = std::max(chunk.y0, reach < 0 ? CeilDiv(-reach, d_.sh()) : 0);
      const int64_t y1 =
          std::min(chunk.y1, reach < d_.ih() ? CeilDiv(d_.ih() - reach, d_.sh()) : 0);
      a.images = chunk.n1 - chunk.n0;
      a.rows = std::max<int64_t>(0, y1 - y0);
      a.px = rows.x1 - rows.x0;
      a.add = add || !rows.first;
      if (a.rows == 0 || a.px == 0) {
        if (a.add) continue;
        a.images = 0;  // zeros
      } else {
        a.src = src + rows.src + y0 * a.src_step.row + rows.x0 * a.src_step.px;
        a.ddst = ddst + y0 * a.ddst_step.row + rows.x0 * a.ddst_step.px;
        if (joins_rows_) {
          a.px *= a.rows;
          a.rows = 1;
        }
      }
      a.dweights = dweights + rows.first_row * d_.oc() + column;
      if (plan_.depthwise) {
        kernels_.depthwise(a);
      } else {
        (narrow ? kernels_.narrow_tile : kernels_.tile)[rows.rows - 1](a);
      }
    }
  }

  const BackwardWeightsPlan& plan_;
  const ConvDesc& d_;
  const BackwardWeightsBuffers& b_;
  const BackwardWeightsKernels& kernels_;
  const bool plain_ddst_;
  BackwardWeightsTile tile_ = {};
  bool joins_rows_;
};

}  // namespace

std::string MakeBackwardWeightsPlan(const ConvDesc& desc, Isa isa, int threads,
                                    BackwardWeightsPlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  *plan = BackwardWeightsPlan();
  plan->desc = desc;
  plan->isa = isa;
  plan->threads = threads;
  plan->depthwise = desc.groups > 1 && desc.depthwise();
  Rows rows(plan->desc, BackwardWeightsKernelsFor(isa).max_rows, plan);
  if (desc.src.channels_last()) {
    rows.AddPlain();
  } else {
    rows.AddBlocks();
  }
  const int64_t blocks = CeilDiv(desc.oc(), kBlock), units = plan->units.size();
  const int64_t bytes = plan->floats() * sizeof(float), pixels = desc.n() * desc.oh() * desc.ow();
  // Sums beyond L2 come from memory for every chunk.
  const int64_t chunk = bytes / threads > ThisMachine().l2_bytes ? 4 * kChunkPixels : kChunkPixels;
  if (pixels > 0) {
    CutIntoChunks(desc, std::max(chunk, pixels / Size::kMostEntries), &plan->chunks);
  }
  const int64_t chunks = plan->chunks.size();
  if (threads > 1 && bytes <= kSplitBytes && chunks >= 4 * threads) {
    plan->splits = 2 * threads;
    plan->sums = plan->scratch.Book<float>("sums", plan->floats(), plan->splits - 1);
    return plan->scratch.Check();
  }
  const int64_t wanted = 4 * threads;
  plan->unit_tasks = std::clamp<int64_t>(units, 1, wanted);
  plan->block_tasks =
      plan->depthwise || desc.groups > 1 ? 1 : std::min(blocks, CeilDiv(wanted, plan->unit_tasks));
  return "";
}

void RunBackwardWeights(const BackwardWeightsPlan& plan, const BackwardWeightsBuffers& buffers,
                        ThreadPool& pool) {
  const int64_t floats = plan.floats(), units = plan.units.size(), chunks = plan.chunks.size();
  if (floats == 0) return;
  if (chunks == 0) {
    std::memset(buffers.dweights, 0, floats * sizeof(float));
    return;
  }
  const Run run(plan, buffers);
  if (plan.splits == 1) {
    const int64_t parts = plan.block_tasks;
    pool.ParallelFor(plan.unit_tasks * parts, [&](int64_t task, int) {
      const int64_t t = task / parts;
      run.Sum(0, chunks, units * t / plan.unit_tasks, units * (t + 1) / plan.unit_tasks,
              task % parts, parts, buffers.dweights);
    });
    return;
  }
  const Scratch scratch(buffers.scratch);
  const auto sums = [&](int64_t split) {
    return split == 0 ? buffers.dweights : scratch.Grant(plan.sums, split - 1);
  };
  pool.ParallelFor(plan.splits, [&](int64_t s, int) {
    run.Sum(chunks * s / plan.splits, chunks * (s + 1) / plan.splits, 0, units, 0, 1, sums(s));
  });
  constexpr int64_t kTaskFloats = 16 << 10;
  pool.ParallelFor(CeilDiv(floats, kTaskFloats), [&](int64_t task, int) {
    const int64_t first = task * kTaskFloats, count = std::min(kTaskFloats, floats - first);
    for (int64_t s = 1; s < plan.splits; ++s) {
      BackwardWeightsKernelsFor(plan.isa).add(sums(s) + first, count, buffers.dweights + first);
    }
  });
}

}  // namespace bd
