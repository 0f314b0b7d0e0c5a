// Chooses between one pass and two, and how one pass splits.
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "cc/base/str_cat.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/conv_depthwise/conv_depthwise.h"
#include "cc/core/conv/depthwise/depthwise.h"
#include "cc/core/conv/direct/direct.h"

namespace bd {
namespace {

// A step expands at least so many pixels, divided by a group's blocks, that tiles come out even
// and a call of depthwise rows follows many of tiles: 50 KB. 24->144 at 56x56 with AVX-512 (2
// blocks): 4, 7 or 28 rows a step 164, 162 and 162 us; 112x112: 1, 2 or 4 rows 251, 247 and 245.
// With AVX2 (1 block) 7, 14, 21 or 28 rows: 205, 200, 199 and 196 us, nine pairs together 1262,
// 1242, 1239 and 1236.
constexpr int64_t kStepPixels = 784;

std::string Check(const ConvDesc& first, const ConvDesc& depthwise) {
  const int64_t c = first.oc();
  for (const ConvDesc* d : {&first, &depthwise}) {
    if (d->low_precision() || d->dst.dtype() != DataType::f32) {
      return "a pair of convolutions takes float32; use an op for each";
    }
    if (d->src.blocked() && d->dst.blocked()) continue;
    return "a 1x1 with a depthwise convolution takes and gives nChw16c; add a reorder";
  }
  if (first.pooled() || depthwise.pooled()) {
    return "a 1x1 with a depthwise convolution does not pool; use an op of its own";
  }
  if (depthwise.ic() != c || depthwise.oc() != c || depthwise.groups != c) {
    return StrCat("the second convolution must have one channel a group, and the ", c,
                  " channels of the first");
  }
  if (depthwise.n() != first.n() || depthwise.ih() != first.oh() || depthwise.iw() != first.ow()) {
    return "the second convolution must read what the first writes";
  }
  if (first.post_ops.ReadsDst()) {
    return "the first convolution has no previous dst for its sum; name an operand";
  }
  return "";
}

// Operands of the expanded tensor's own shape would be read at the ring's offsets.
bool ReadsTensors(const PostOpChain& chain) {
  const std::vector<PostOp>& ops = chain.entries();
  return std::any_of(ops.begin(), ops.end(), [](const PostOp& op) {
    return op.kind == PostOpKind::kSum ||
           (op.kind == PostOpKind::kBinary && op.shape == OperandShape::kTensor);
  });
}

// The plan of the first, if tiles make it.
const DirectPlan* TilesOf(const ConvPlan& first) {
  const bool tiles = first.algorithm->run == RunDirect && !first.empty();
  return tiles ? &first.Own<DirectPlan>() : nullptr;
}

// Whether tiles of the first can write a ring that depthwise rows read.
bool CanFuse(const ConvDepthwisePlan& plan) {
  const ConvDesc& first = plan.first.desc;
  const ConvDesc& d = plan.depthwise.desc;
  const DirectPlan* p = TilesOf(plan.first);
  return p != nullptr && p->in_place && !p->by_row && p->icb_chunk == plan.first.icb &&
         (p->variant == kBlockedTiles || p->variant == kFipTiles) && first.groups == 1 &&
         plan.depthwise.algorithm->run == RunDepthwise && !ReadsTensors(first.post_ops) &&
         d.sh() <= (d.kh() - 1) * d.dh() + 1 && !plan.depthwise.empty();
}

// Of a vector that goes through the rest of the chain.
double ChainCycles(const ConvPlan& plan) {
  return plan.epilogue.rest.len() > 0 ? kCpu.chain_vector : 0;
}

bool UsesFip(const ConvDepthwisePlan& plan) {
  const DirectPlan* p = TilesOf(plan.first);
  return p != nullptr && p->fip();
}

// Cycles that one row of pixels of one output block of the 1x1 convolution takes.
double FirstRow(const ConvDepthwisePlan& plan) {
  const ConvDesc& d = plan.first.desc;
  const double multiply = UsesFip(plan) ? kCpu.fip_multiply : 1;
  return static_cast<double>(d.ow()) *
         (multiply * d.ic() + kCpu.handed_pixel + ChainCycles(plan.first));
}

// Cycles that one output row of one block of the depthwise convolution takes.
double DepthwiseRow(const ConvDepthwisePlan& plan) {
  return DepthwiseRowCycles(plan.depthwise.desc, ChainCycles(plan.depthwise));
}

// Expanded rows that output rows [h0, h1) read.
int64_t RowsRead(const ConvDesc& d, int64_t h0, int64_t h1) {
  const int64_t begin = std::max<int64_t>(0, h0 * d.sh() - d.pad_top());
  const int64_t end = std::min(d.ih(), (h1 - 1) * d.sh() - d.pad_top() + (d.kh() - 1) * d.dh() + 1);
  return std::max<int64_t>(0, end - begin);
}

// Cycles that the terms of FIP take for `rows` source rows of an image.
double TermsOf(const ConvDepthwisePlan& plan, int64_t rows) {
  if (!UsesFip(plan)) return 0;
  return rows * plan.first.desc.ow() * (plan.first.icb * kCpu.fip_vector + kCpu.fip_pixel);
}

int ThreadsOf(const ConvDepthwisePlan& plan) {
  const ConvDesc& d = plan.depthwise.desc;
  const double row = FirstRow(plan) * d.ih() + DepthwiseRow(plan) * d.oh();
  return ThreadsFor(d.n() * plan.first.ocb * row, plan.first.threads);
}

// Images are alike, and so are threads: planning looks at so many images on so many threads.
struct Sample {
  explicit Sample(const ConvDepthwisePlan& plan) {
    const int64_t n = plan.first.desc.n(), all = ThreadsOf(plan);
    images = n < all ? 1 : std::min<int64_t>(all, 2);
    threads = n < all ? (all + n / 2) / n : images;
    repeats = static_cast<double>(n * threads) / static_cast<double>(images * all);
    // One of all threads is slow, not one of these.
    slow = 1 / (1 - (1 - 1 / kCpu.slow_thread) * static_cast<double>(threads) / all);
  }
  int64_t images, threads;
  double repeats, slow;
};

// Cycles of the busiest thread: the mean of equal threads and of one that a neighbour slows down.
// Threads take groups of each other's parts (parallel_units.h), as if these were handed out in
// order. A span of `most` and more need not be exact.
double Span(const ConvDepthwisePlan& plan, const std::vector<PairPart>& parts, const Sample& sample,
            double most) {
  const DirectPlan& p = plan.first.Own<DirectPlan>();
  const ConvDesc& d = plan.depthwise.desc;
  const int64_t tasks = sample.images * static_cast<int64_t>(parts.size());
  const auto busiest = [&](double slow) {     // where thread 0 is so many times slower
    using Busy = std::pair<double, int64_t>;  // until when, and which thread
    std::priority_queue<Busy, std::vector<Busy>, std::greater<Busy>> threads;
    for (int64_t t = 0; t < std::min(sample.threads, tasks); ++t) threads.emplace(0, t);
    double span = 0;
    for (int64_t task = 0; task < tasks; ++task) {
      const PairPart& part = parts[task % parts.size()];
      const int64_t read = RowsRead(d, part.row_begin, part.row_end);
      const double rows =
          FirstRow(plan) * read + DepthwiseRow(plan) * (part.row_end - part.row_begin);
      double start = kCpu.task + TermsOf(plan, read);
      for (int64_t g = part.group_begin; g < part.group_end; ++g, start = 0) {
        auto [until, thread] = threads.top();
        threads.pop();
        until += (thread == 0 ? slow : 1) * (start + p.groups[g].blocks * rows);
        span = std::max(span, until);
        threads.emplace(until, thread);
      }
    }
    return span * sample.repeats;
  };
  const double even = busiest(1);
  return plan.first.threads == 1 || even >= most ? even : (even + busiest(sample.slow)) / 2;
}

// Ranges of groups times ranges of rows.
std::vector<PairPart> Grid(int64_t count, int64_t splits, int64_t oh, int64_t row_splits) {
  std::vector<PairPart> parts;
  for (int64_t r = 0; r < row_splits; ++r) {
    for (int64_t g = 0; g < splits; ++g) {
      parts.push_back({count * g / splits, count * (g + 1) / splits, oh * r / row_splits,
                       oh * (r + 1) / row_splits});
    }
  }
  return parts;
}

void ChooseParts(ConvDepthwisePlan* plan, double* span) {
  const int64_t oh = plan->depthwise.desc.oh();
  const int64_t count = plan->first.Own<DirectPlan>().groups.size();
  const Sample sample(*plan);
  const int threads = ThreadsOf(*plan);
  const int64_t most = 8 * sample.threads;                  // parts of an image
  const int64_t fine = sample.threads <= 2 ? most + 1 : 2;  // all numbers of groups, or some
  *span = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= std::min(oh, most); rows *= 2) {
    const int64_t last = std::min(count, most / rows);
    for (int64_t groups = 1, next; groups <= last; groups = next) {
      next = groups + 1 + groups / fine;
      if (groups < last) next = std::min(next, last);
      std::vector<PairPart> parts = Grid(count, groups, oh, rows);
      const int64_t tasks = plan->first.desc.n() * rows * groups;
      const double more = std::max(0., BarrierOf(tasks, threads) - ThisMachine().barrier);
      const double cost = more + Span(*plan, parts, sample, *span * 0.995 - more);
      if (cost >= *span * 0.995) continue;
      *span = cost;
      plan->parts = std::move(parts);
    }
  }
}

// The same of two passes that split perfectly: they wait for each other once and
// move the tensor between them through caches, there and back.
double SpanOfTwoPasses(const ConvDepthwisePlan& plan) {
  const ConvDesc& d = plan.depthwise.desc;
  const int64_t blocks = d.n() * plan.first.ocb;
  const double work = blocks * (FirstRow(plan) * d.ih() + DepthwiseRow(plan) * d.oh()) +
                      d.n() * TermsOf(plan, d.ih());
  const double moved = 2 * kCpu.cache_line * blocks * d.ih() * d.iw();
  const int threads = ThreadsOf(plan);
  const double uneven = threads == 1 ? 1 : threads - 1 + 1 / kCpu.slow_thread;
  return ThisMachine().Barrier(threads) + (work + moved) * (1. / threads + 1 / uneven) / 2;
}

}  // namespace

std::string MakeConvDepthwisePlan(const ConvDesc& first, const ConvDesc& depthwise, Isa isa,
                                  int threads, ConvDepthwisePlan* plan) {
  if (std::string error = Check(first, depthwise); !error.empty()) return error;
  *plan = ConvDepthwisePlan();
  if (std::string e = MakeConvPlan(first, isa, threads, &plan->first); !e.empty()) return e;
  if (std::string e = MakeConvPlan(depthwise, isa, threads, &plan->depthwise); !e.empty()) return e;
  const ConvDesc& d = plan->depthwise.desc;
  if (CanFuse(*plan)) {
    double span;
    ChooseParts(plan, &span);
    plan->fused = span <= SpanOfTwoPasses(*plan);
  }
  const auto book = [&](const char* name, const ConvPlan& half) {
    return plan->scratch.Book<char>(name, half.scratch.bytes());
  };
  plan->first_scratch = book("first", plan->first);
  plan->depthwise_scratch = book("depthwise", plan->depthwise);
  if (!plan->fused) {
    const int64_t floats = d.n() * plan->first.ocb * d.ih() * d.iw() * kBlock;
    plan->between = plan->scratch.Book<float>("between", floats);
    return plan->scratch.Check();
  }
  plan->group_blocks = plan->first.Own<DirectPlan>().groups.widest_blocks;
  plan->step_rows = std::min(d.ih(), CeilDiv(kStepPixels / plan->group_blocks, d.iw()));
  // The rows of a step and those before it that its first output row reads.
  plan->ring_steps = std::min(CeilDiv(d.ih(), plan->step_rows),
                              1 + CeilDiv((d.kh() - 1) * d.dh(), plan->step_rows));
  plan->ring = plan->scratch.Book<float>(
      "ring", plan->step_rows * plan->ring_steps * d.iw() * kBlock * plan->group_blocks, threads);
  return plan->scratch.Check();
}

}  // namespace bd
