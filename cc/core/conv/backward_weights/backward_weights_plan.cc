// Which rows of dweights meet which pixels, chunks of pixels, and who sums what.
#include <algorithm>

#include "cc/base/machine.h"
#include "cc/base/size.h"
#include "cc/core/conv/backward_weights/backward_weights.h"
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
  // a tile share its pixels, and pixels at the border that some of them do not meet come apart.
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

}  // namespace bd
