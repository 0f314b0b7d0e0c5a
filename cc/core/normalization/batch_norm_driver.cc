#include <algorithm>
#include <cmath>
#include <vector>

#include "cc/base/bytes.h"
#include "cc/base/size.h"
#include "cc/core/normalization/batch_norm.h"
#include "cc/core/normalization/batch_norm_kernel.h"

namespace bd {
namespace {

// Of one channel block.
struct Sums {
  double of[2][kBlock] = {};

  void Add(const Sums& other) {
    for (int which = 0; which < 2; ++which) {
      for (int64_t i = 0; i < kBlock; ++i) of[which][i] += other.of[which][i];
    }
  }
};

// What the kernels take, and zeros after the channels.
struct Lanes {
  alignas(64) float mean[kBlock] = {}, scale[kBlock] = {}, shift[kBlock] = {};
  alignas(64) float slope[kBlock] = {}, offset[kBlock] = {};
};

// Calls sum(block, image, sums) for all images, finish(block, sums), which stores what is a
// channel's, and apply(block, image, lanes), in the order and on the threads that the plan says.
// lanes(block, sums) are made of what finish stored.
template <typename Sum, typename Finish, typename MakeLanes, typename Apply>
void RunPasses(const BatchNormPlan& plan, void* scratch, ThreadPool& pool, Sum&& sum,
               Finish&& finish, MakeLanes&& lanes, Apply&& apply) {
  const int64_t n = plan.desc.n, blocks = plan.desc.blocks();
  if (plan.by_block) {
    pool.ParallelFor(blocks, [&](int64_t b, int) {
      Sums all;
      for (int64_t i = 0; i < n; ++i) {
        Sums image;
        sum(b, i, image.of);
        all.Add(image);
      }
      finish(b, all);
      const Lanes of_block = lanes(b, all);
      // The last images are still in cache.
      for (int64_t i = n - 1; i >= 0; --i) apply(b, i, of_block);
    });
    return;
  }
  Sums* const images = As<Sums>(Scratch(scratch).Grant(plan.sums));
  pool.ParallelFor(blocks * n, [&](int64_t task, int) {
    images[task] = Sums();
    sum(task / n, task % n, images[task].of);
  });
  const auto all_of = [&](int64_t b) {
    Sums all;
    for (int64_t i = 0; i < n; ++i) all.Add(images[b * n + i]);
    return all;
  };
  for (int64_t b = 0; b < blocks; ++b) finish(b, all_of(b));
  pool.ParallelFor(blocks * n, [&](int64_t task, int) {
    apply(task / n, task % n, lanes(task / n, all_of(task / n)));
  });
}

// Mean, scale and shift of block b, y = scale x + shift, forward and backward with the same bits.
template <typename Args>
Lanes ScaleAndShift(const BatchNormDesc& d, int64_t b, const Args& args) {
  Lanes lanes;
  for (int64_t c = b * kBlock; c < std::min(d.channels, (b + 1) * kBlock); ++c) {
    const double factor = args.gamma[c] / std::sqrt(double{args.variance[c]} + d.epsilon);
    lanes.mean[c % kBlock] = args.mean[c];
    lanes.scale[c % kBlock] = static_cast<float>(factor);
    lanes.shift[c % kBlock] = static_cast<float>(args.beta[c] - args.mean[c] * factor);
  }
  return lanes;
}

}  // namespace

BatchNormPlan MakeBatchNormPlan(const BatchNormDesc& desc, Isa isa, int threads) {
  BatchNormPlan plan;
  plan.desc = desc;
  plan.isa = isa;
  const int64_t blocks = desc.blocks();
  plan.by_block = desc.n <= 1 || threads == 1 || blocks >= 4 * threads || blocks % threads == 0;
  if (!plan.by_block) {
    plan.sums = plan.scratch.Book<double>("sums", Size(blocks) * desc.n * 2 * kBlock);
  }
  return plan;
}

void RunBatchNorm(const BatchNormPlan& plan, const BatchNormArgs& args, ThreadPool& pool) {
  const BatchNormDesc& d = plan.desc;
  const BatchNormKernels& kernels = BatchNormKernelsFor(plan.isa);
  const int64_t plane = d.pixels * kBlock, blocks = d.blocks();
  const double count = static_cast<double>(d.n) * d.pixels;
  RunPasses(
      plan, args.scratch, pool,
      [&](int64_t b, int64_t i, double(*sums)[kBlock]) {
        const float* first = args.src + b * plane;  // of image 0, if there is one
        kernels.moments(args.src + (i * blocks + b) * plane, d.pixels, first, sums);
      },
      [&](int64_t b, const Sums& sums) {
        for (int64_t c = b * kBlock; c < std::min(d.channels, (b + 1) * kBlock); ++c) {
          const int64_t lane = c % kBlock;
          double mean = 0, variance = 0;
          if (count > 0) {
            const double off = sums.of[0][lane] / count;
            const double difference = sums.of[1][lane] / count - off * off;
            mean = args.src[b * plane + lane] + off;
            variance = difference < 0 ? 0 : difference;  // a NaN stays
          }
          args.mean[c] = static_cast<float>(mean);
          args.variance[c] = static_cast<float>(variance);
        }
      },
      [&](int64_t b, const Sums&) { return ScaleAndShift(d, b, args); },
      [&](int64_t b, int64_t i, const Lanes& lanes) {
        const int64_t at = (i * blocks + b) * plane;
        kernels.normalize(args.src + at, d.pixels, lanes.scale, lanes.shift, args.dst + at);
      });
}

void RunBatchNormGrad(const BatchNormPlan& plan, const BatchNormGradArgs& args, ThreadPool& pool) {
  const BatchNormDesc& d = plan.desc;
  const BatchNormKernels& kernels = BatchNormKernelsFor(plan.isa);
  const int64_t plane = d.pixels * kBlock, blocks = d.blocks();
  const double count = static_cast<double>(d.n) * d.pixels;
  const int clamp = static_cast<int>(args.clamp);
  const auto inverse = [&](int64_t c) {
    return 1 / std::sqrt(double{args.variance[c]} + d.epsilon);
  };
  RunPasses(
      plan, args.scratch, pool,
      [&](int64_t b, int64_t i, double(*sums)[kBlock]) {
        const Lanes lanes = ScaleAndShift(d, b, args);
        const int64_t at = (i * blocks + b) * plane;
        kernels.products[clamp](args.src + at, args.ddst + at, d.pixels, lanes.mean, lanes.scale,
                                lanes.shift, sums);
      },
      [&](int64_t b, const Sums& sums) {
        for (int64_t c = b * kBlock; c < std::min(d.channels, (b + 1) * kBlock); ++c) {
          args.dbeta[c] = static_cast<float>(sums.of[0][c % kBlock]);
          args.dgamma[c] = static_cast<float>(sums.of[1][c % kBlock] * inverse(c));
        }
      },
      [&](int64_t b, const Sums& sums) {
        Lanes lanes = ScaleAndShift(d, b, args);
        for (int64_t c = b * kBlock; c < std::min(d.channels, (b + 1) * kBlock); ++c) {
          if (count == 0) break;
          const int64_t lane = c % kBlock;
          const double r = inverse(c), factor = args.gamma[c] * r;
          const double slope = 2. * args.dvariance[c] - factor * r * r * sums.of[1][lane];
          lanes.slope[lane] = static_cast<float>(slope / count);
          lanes.offset[lane] =
              static_cast<float>((args.dmean[c] - factor * sums.of[0][lane]) / count);
        }
        return lanes;
      },
      [&](int64_t b, int64_t i, const Lanes& lanes) {
        const int64_t at = (i * blocks + b) * plane;
        kernels.gradient[clamp](args.src + at, args.ddst + at, d.pixels, lanes.mean, lanes.scale,
                                lanes.slope, lanes.offset, lanes.shift, args.dsrc + at);
      });
}

void FoldBatchNorm(const FoldBatchNormDesc& d, const FoldBatchNormArgs& a, ThreadPool& pool) {
  std::vector<float> factors(d.channels);
  for (int64_t c = 0; c < d.channels; ++c) {
    const double factor = a.gamma[c] / std::sqrt(double{a.variance[c]} + d.epsilon);
    factors[c] = static_cast<float>(factor);
    a.shift[c] = static_cast<float>(factor * (double{a.bias[c]} - a.mean[c]) + a.beta[c]);
  }
  // As many rows [channels, inner] a task as make it worth a thread.
  constexpr int64_t kTaskFloats = 1 << 14;
  const int64_t row = d.channels * d.inner;
  const int64_t rows = std::max<int64_t>(1, kTaskFloats / std::max<int64_t>(row, 1));
  pool.ForRanges(d.outer, CeilDiv(d.outer, rows), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* src = a.weights + r * row;
      float* dst = a.folded + r * row;
      if (d.inner == 1) {
        for (int64_t c = 0; c < d.channels; ++c) dst[c] = src[c] * factors[c];
        continue;
      }
      for (int64_t c = 0; c < d.channels; ++c, src += d.inner, dst += d.inner) {
        for (int64_t i = 0; i < d.inner; ++i) dst[i] = src[i] * factors[c];
      }
    }
  });
}

}  // namespace bd
