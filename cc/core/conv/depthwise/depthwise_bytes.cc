// Depthwise convolutions of bytes: rows of src become pairs of words, each pair once for all rows
// of dst that read it, and rows of exact sums become rows of dst.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/conv/depthwise/depthwise_bytes_kernel.h"
#include "cc/core/gemm/narrow_pack.h"

namespace bd {
namespace {

// Output rows of one channel block.
class ByteRows {
 public:
  ByteRows(const ConvRun& run, int64_t n, int64_t block, int thread)
      : run_(run),
        d_(run.d),
        kernels_(DepthwiseBytesKernelsFor(run.plan.isa)),
        own_(run.plan.Own<DepthwisePlan>()),
        ring_(run.scratch.Grant(own_.ring, thread)),
        sums_(run.scratch.Grant(own_.sums, thread)),
        src_(run.SrcBlock(n, block)),
        held_(own_.ring_rows, INT64_MIN),
        n_(n),
        block_(block),
        args_(),
        tile_() {
    const int64_t channel = block * kBlock, of_block = own_.pairs * d_.kw() * kBlock;
    const float* const packed = run.buffers.packed;
    columns_.Bind(d_.types.src_quantization,
                  reinterpret_cast<const int32_t*>(packed + run.plan.icb * of_block) + channel,
                  run.buffers.weight_scales + channel, d_.oc() - channel, kBlock, &tile_);
    tile_.narrow = &run.plan.tensors;
    args_.weights = reinterpret_cast<const int16_t*>(packed + block * of_block);
    args_.start = reinterpret_cast<const int32_t*>(tile_.fip.channel_terms);
    args_.count = own_.pairs;
    args_.kw = d_.kw();
    args_.sw = d_.sw();
    args_.dw = d_.dw();
    args_.ow = d_.ow();
    args_.sums = reinterpret_cast<int32_t*>(sums_);
  }

  void Run(int64_t h) {
    const int16_t* pairs[kMaxDepthwiseRows / 2];
    int64_t r = h * d_.sh() - d_.pad_top();
    for (int64_t i = 0; i < own_.pairs; ++i, r += 2 * d_.dh()) pairs[i] = Pair(r);
    args_.pairs = pairs;
    kernels_.row(args_);
    tile_.epilogue = BlocksEpilogue(run_, block_, 1, n_, h * d_.ow());
    tile_.dst =
        BytesFrom(run_.DstBlock(n_, block_), h * d_.ow() * kBlock * run_.plan.tensors.dst_bytes);
    kernels_.finish(tile_, args_.sums, d_.ow());
  }

 private:
  // Row r of src and the one dh below it; those of a window are all there at once.
  const int16_t* Pair(int64_t r) {
    const int64_t slot = (r + d_.pad_top()) % own_.ring_rows;
    int16_t* const to = reinterpret_cast<int16_t*>(ring_ + slot * own_.columns * kBlock);
    if (held_[slot] == r) return to;
    held_[slot] = r;
    RowPairArgs a;
    a.rows[0] = Row(r);
    a.rows[1] = Row(r + d_.dh());
    a.zero = static_cast<uint8_t>(d_.types.src_quantization.zero_point);
    a.left = std::min(d_.pad_left(), own_.columns);
    a.inside = std::min(d_.iw(), own_.columns - a.left);
    a.columns = own_.columns;
    a.dst = to;
    kernels_.pair(a);
    return to;
  }

  const uint8_t* Row(int64_t r) const {
    if (r < 0 || r >= d_.ih()) return nullptr;
    return reinterpret_cast<const uint8_t*>(src_) + r * d_.iw() * kBlock;
  }

  const ConvRun& run_;
  const ConvDesc& d_;
  const DepthwiseBytesKernels& kernels_;
  const DepthwisePlan& own_;
  float* const ring_;
  float* const sums_;
  const float* const src_;
  std::vector<int64_t> held_;  // the row in each slot of the ring
  const int64_t n_, block_;
  Int8Columns columns_;
  ByteRowArgs args_;
  TileArgs tile_;
};

}  // namespace

void PlanDepthwiseBytes(ConvPlan* plan, DepthwisePlan* own) {
  const ConvDesc& d = plan->desc;
  own->pairs = CeilDiv(d.kh(), 2);
  own->columns = (d.ow() - 1) * d.sw() + (d.kw() - 1) * d.dw() + 1;
  own->ring_rows = (own->pairs - 1) * 2 * d.dh() + 1;
  own->ring =
      plan->scratch.Book<float>("ring", own->ring_rows * own->columns * kBlock, plan->threads);
  own->sums = plan->scratch.Book<float>("sums", d.ow() * kBlock, plan->threads);
}

void PackDepthwiseBytes(const ConvPlan& plan, const int8_t* hwio, float* packed) {
  const ConvDesc& d = plan.desc;
  const int64_t pairs = CeilDiv(d.kh(), 2), of_block = pairs * d.kw() * kBlock;
  int32_t* const sums = reinterpret_cast<int32_t*>(packed + plan.icb * of_block);
  std::fill_n(sums, plan.icb * kBlock, 0);
  for (int64_t b = 0; b < plan.icb; ++b) {
    const auto put = [&](int64_t row, int64_t tap, float* out) {
      const auto index_of = [&](int64_t k, int64_t lane) -> int64_t {
        const int64_t h = row + k, c = b * kBlock + lane;
        return h < d.kh() && c < d.ic() ? (h * d.kw() + tap) * d.ic() + c : -1;
      };
      PackNarrow(TileFamily::kWords, DataType::s8, hwio, 2, kBlock, index_of, out,
                 sums + b * kBlock);
    };
    for (int64_t i = 0; i < pairs; ++i) {
      for (int64_t t = 0; t < d.kw(); ++t) {
        put(2 * i, t, packed + b * of_block + (i * d.kw() + t) * kBlock);
      }
    }
  }
}

void RunDepthwiseBytes(const ConvRun& run, ThreadPool& pool) {
  ForBlockRows(run, pool, [&](int64_t n, int64_t block, int64_t begin, int64_t end, int thread) {
    ByteRows of_block(run, n, block, thread);
    for (int64_t h = begin; h < end; ++h) of_block.Run(h);
  });
}

}  // namespace bd
