// Convolutions whose groups share blocks of channels, each of which sees its own sources only.
//
// Register tiles (../direct) multiply whole blocks, by weights that are zero for channels of other
// groups; and zero times infinity is NaN. Here lane l of a block of dst, of group g(l), reads what
// lies in lane l, too: row j of the spread source holds channel j of group g(l),
//
//   spread[j][x][l] = src[x][g(l) * inputs + j]       0 <= j < inputs, channels of a group
//   dst[p][l] = sum over kh, j, kw of spread[j][p * sw + kw * dw - pad_left][l] * w[kh][j][kw][l]
//
// which is a depthwise convolution by kh * inputs rows (../depthwise).
#include <algorithm>
#include <memory>
#include <vector>

#include "cc/core/conv/common/conv_run.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/depthwise/depthwise.h"

namespace bd {
namespace {

struct LanesPlan {
  int64_t ring = 1;                    // source rows that stay spread
  ScratchPiece<float> spread;          // for each thread: [ring][inputs][iw][16]
  ScratchPiece<const float*> of_taps;  // for each thread: [kh][inputs]
  ScratchPiece<float> row;             // for each thread, of a plain dst
};

int64_t Inputs(const ConvDesc& d) { return d.ic() / d.groups; }

// One block of dst of an image.
class Block {
 public:
  Block(const ConvRun& run, int64_t n, int64_t block, int thread)
      : run_(run),
        d_(run.d),
        p_(run.plan.Own<LanesPlan>()),
        n_(n),
        channel_(block * kBlock),
        lanes_(std::min(kBlock, d_.oc() - channel_)),
        rows_(run, n, block, Inputs(d_)),
        spread_(run.scratch.Grant(p_.spread, thread)),
        of_taps_(run.scratch.Grant(p_.of_taps, thread)),
        row_(run.scratch.Grant(p_.row, thread)),
        kept_(p_.ring, -1) {}

  // Output row h.
  void Run(int64_t h) {
    const int64_t inputs = Inputs(d_);
    for (int64_t k = 0; k < d_.kh(); ++k) {
      const int64_t r = h * d_.sh() - d_.pad_top() + k * d_.dh();
      const float* const first = r >= 0 && r < d_.ih() ? Row(r) : nullptr;
      for (int64_t j = 0; j < inputs; ++j) {
        of_taps_[k * inputs + j] = first == nullptr ? nullptr : first + j * d_.iw() * kBlock;
      }
    }
    if (row_ == nullptr) return rows_.Run(h, of_taps_);
    rows_.RunInto(of_taps_, row_);
    const int64_t begin = h * d_.ow();
    StorePlain(run_, {n_, begin, begin + d_.ow(), channel_ / kBlock, 1}, row_);
  }

 private:
  // Source row r, spread.
  const float* Row(int64_t r) {
    float* const out = spread_ + r % p_.ring * Inputs(d_) * d_.iw() * kBlock;
    if (kept_[r % p_.ring] == r) return out;
    kept_[r % p_.ring] = r;
    for (int64_t j = 0; j < Inputs(d_); ++j) Spread(r, j, out + j * d_.iw() * kBlock);
    return out;
  }

  void Spread(int64_t r, int64_t j, float* out) const {
    const bool plain = d_.src.channels_last();
    const int64_t outputs = d_.oc() / d_.groups, step = plain ? d_.ic() : kBlock;
    const float* from[kBlock] = {};
    for (int64_t l = 0; l < lanes_; ++l) {
      const int64_t c = (channel_ + l) / outputs * Inputs(d_) + j;
      from[l] = plain ? run_.buffers.src + (n_ * d_.ih() + r) * d_.iw() * d_.ic() + c
                      : run_.SrcBlock(n_, c / kBlock) + r * d_.iw() * kBlock + c % kBlock;
    }
    for (int64_t x = 0; x < d_.iw(); ++x, out += kBlock) {
      for (int64_t l = 0; l < lanes_; ++l) out[l] = from[l][x * step];
      std::fill(out + lanes_, out + kBlock, 0.f);
    }
  }

  const ConvRun& run_;
  const ConvDesc& d_;
  const LanesPlan& p_;
  const int64_t n_, channel_, lanes_;
  DepthwiseBlock rows_;
  float* const spread_;
  const float** const of_taps_;
  float* const row_;
  std::vector<int64_t> kept_;  // which source row a slot of the ring holds
};

std::string Applies(const Algorithm&, const ConvDesc& d, Isa) {
  if (d.pooled()) return "lanes do not pool";
  return d.algorithm == ConvAlgorithm::kDirect && d.tiles_mix_groups()
             ? ""
             : "groups have whole blocks, or what is infinite may reach their neighbours";
}

ConvCost Cost(const Algorithm&, const ConvDesc& d, Isa, int threads) {
  const double taps = kCpu.depthwise_tap * static_cast<double>(d.kh() * d.kw());
  const double row = kCpu.depthwise_row + d.ow() * Inputs(d) * (taps + kCpu.spread_pixel);
  return {d.n() * CeilDiv(d.oc(), kBlock) * d.oh() * row / threads};
}

void Plan(const Algorithm& self, ConvPlan* plan) {
  const ConvDesc& d = plan->desc;
  const auto own = std::make_shared<LanesPlan>();
  plan->own = own;
  plan->pack_key = {self.name, DataType::f32, 1};
  const int64_t taps = Inputs(d) * d.kh() * d.kw();
  plan->packed_bytes = plan->ocb * taps * kBlock * int64_t{sizeof(float)};
  if (plan->empty()) return;
  const int64_t rows = d.n() * plan->ocb * d.oh();
  const int64_t work = rows * d.ow() * taps;
  plan->tasks = std::clamp<int64_t>(work / 2000, 1, std::min<int64_t>(rows, 4 * plan->threads));
  own->ring = std::clamp<int64_t>((d.kh() - 1) * d.dh() + 1, 1, std::max<int64_t>(1, d.ih()));
  const int64_t spread = own->ring * Inputs(d) * d.iw() * kBlock;
  const int64_t row = d.dst.channels_last() ? d.ow() * kBlock : 0;
  own->spread = plan->scratch.Book<float>("strip", spread, plan->threads);
  own->of_taps = plan->scratch.Book<const float*>("taps", d.kh() * Inputs(d), plan->threads);
  own->row = plan->scratch.Book<float>("row", row, plan->threads);
  plan->blocking = {{"strip_rows", own->ring}, {"task_blocks", 1}};
}

// [ocb][kh][inputs][kw][16]
void Pack(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool) {
  const ConvDesc& d = plan.desc;
  const int64_t inputs = Inputs(d);
  pool.ParallelFor(plan.ocb * d.kh(), [&](int64_t task, int) {
    const int64_t first = task / d.kh() * kBlock, lanes = std::min(kBlock, d.oc() - first);
    float* out = packed + task * inputs * d.kw() * kBlock;
    for (int64_t j = 0; j < inputs; ++j) {
      for (int64_t w = 0; w < d.kw(); ++w, out += kBlock) {
        const float* from = hwio + ((task % d.kh() * d.kw() + w) * inputs + j) * d.oc() + first;
        std::fill(std::copy_n(from, lanes, out), out + kBlock, 0.f);
      }
    }
  });
}

void Run(const ConvRun& run, ThreadPool& pool) {
  ForBlockRows(run, pool, [&](int64_t n, int64_t b, int64_t begin, int64_t end, int thread) {
    Block block(run, n, b, thread);
    for (int64_t h = begin; h < end; ++h) block.Run(h);
  });
}

}  // namespace

const Algorithm kLanes = {"lanes", 0, false, Applies, Cost, Plan, Pack, Run};

}  // namespace bd
