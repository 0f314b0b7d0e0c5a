#include "cc/core/conv/conv_transpose/conv_transpose.h"

#include <algorithm>
#include <vector>

#include "cc/base/machine.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/conv_transpose/conv_transpose_kernel.h"
#include "cc/core/gemm/gemm_panels.h"
#include "cc/core/post_ops/post_ops.h"

namespace bd {
namespace {

// Results of phases that are made before rows of dst are: as many images as lie in L2 caches, and
// so many times, unless that takes too many trials.
int64_t ImagesAtATime(int64_t n, int64_t bytes_an_image, int threads) {
  constexpr int64_t kMostTimes = 1024;
  const int64_t fit = std::max<int64_t>(
      1, ThisMachine().l2_bytes * threads / 2 / std::max<int64_t>(1, bytes_an_image));
  for (int64_t times = CeilDiv(n, fit); times > 0 && times <= kMostTimes; ++times) {
    if (n % times == 0) return n / times;
  }
  return 1;
}

std::string Check(const ConvTransposeDesc& d) {
  if (d.src.dtype() != DataType::f32 || d.dst.dtype() != DataType::f32) {
    return "transposed convolution takes float32";
  }
  if (d.src.layout() != Layout::nChw16c)
    return "transposed convolution takes nChw16c; add a reorder";
  if (d.dst.layout() != Layout::nhwc && d.dst.layout() != Layout::nChw16c) {
    return "transposed convolution makes nhwc and nChw16c tensors; add a reorder";
  }
  if (d.dst.channels_last() && d.oc() >= kBlock) {
    return "transposed convolution makes nhwc tensors of fewer than 16 channels; add a reorder";
  }
  if (std::min({d.kh - 1, d.kw - 1, d.sh - 1, d.sw - 1, d.pad_top, d.pad_left}) < 0) {
    return "transposed convolution takes kernels and strides of 1 and more, and crops of 0 and "
           "more";
  }
  if (std::max(d.sh, d.sw) > kMostPhases)
    return "transposed convolution takes strides of at most 16";
  if (IsPart(d.dst) && !d.dst.blocked()) {
    return "only nChw16c tensors can be parts of wider ones; add a reorder";
  }
  if (IsPart(d.dst) && d.post_ops.ReadsDst()) {
    return "a sum cannot read the previous dst where that is a part of a wider tensor; "
           "give it an operand";
  }
  return "";
}

PhaseTaps Span(const PhaseTaps& a, const PhaseTaps& b) {
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

// What is infinite may be multiplied by no zero that stands for a tap.
bool IsExact(const ConvTransposeDesc& d) { return d.algorithm == ConvAlgorithm::kDirect; }

// Taps of phases (q, q) of both axes; all algorithms take windows that hold the pixel itself.
PhaseTaps TapsAlong(const ConvTransposeDesc& d, int axis, int64_t q) {
  const PhaseTaps taps =
      axis == 0 ? TapsOfPhase(d.kh, d.sh, d.pad_top, q) : TapsOfPhase(d.kw, d.sw, d.pad_left, q);
  if (IsExact(d)) return taps;
  return taps.count() == 0 ? PhaseTaps{0, 0} : Span(taps, {0, 0});
}

// Whether all phases have the same taps.
bool AreAlike(const ConvTransposeDesc& d) {
  for (int axis = 0; axis < 2; ++axis) {
    for (int64_t q = 1; q < (axis == 0 ? d.sh : d.sw); ++q) {
      if (!(TapsAlong(d, axis, q) == TapsAlong(d, axis, 0))) return false;
    }
  }
  return true;
}

// The convolution of phases [first, first + count), of all channels of the source.
std::string PlanConv(const ConvTransposeDesc& d, Isa isa, int threads, int64_t images,
                     int64_t first, int64_t count, bool narrow, PhaseConv* part) {
  part->first_phase = first;
  part->phases = count;
  part->stride = narrow ? d.oc() : CeilDiv(d.oc(), kBlock) * kBlock;
  part->h = TapsAlong(d, 0, first / d.sw);
  part->w = TapsAlong(d, 1, first % d.sw);
  for (int64_t p = first; p < first + count; ++p) {
    part->h = Span(part->h, TapsAlong(d, 0, p / d.sw));
    part->w = Span(part->w, TapsAlong(d, 1, p % d.sw));
  }
  const int64_t oc = count == 1 ? d.oc() : count * part->stride;
  const int64_t oh = std::max<int64_t>(0, CeilDiv(d.oh() - first / d.sw, d.sh));
  const int64_t ow = std::max<int64_t>(0, CeilDiv(d.ow() - first % d.sw, d.sw));
  // Few channels without Winograd: lanes run over source channels.
  const Layout layout = oc <= 4 ? Layout::nhwc : Layout::nChw16c;
  ConvDesc c;
  std::string error =
      TensorView::Make(DataType::f32, Layout::nChw16c, {images, d.ic(), d.ih(), d.iw()},
                       d.src.image_stride(), &c.src);
  if (error.empty()) {
    error = TensorView::Make(DataType::f32, layout, {images, oc, oh, ow}, 0, &c.dst);
  }
  if (!error.empty()) return error;
  const auto axis = [](int64_t size, const PhaseTaps& taps, int64_t out) {
    return Window1d{size, std::max<int64_t>(1, taps.count()), 1, 1, -taps.first, 0, out};
  };
  c.windows.h = axis(d.ih(), part->h, oh);
  c.windows.w = axis(d.iw(), part->w, ow);
  c.algorithm = d.algorithm;
  c.changes_weights = d.changes_weights;
  return MakeConvPlan(c, isa, threads, &part->conv);
}

double Cycles(const std::vector<PhaseConv>& convs) {
  double cycles = 0;
  for (const PhaseConv& part : convs) {
    const ConvPlan& conv = part.conv;
    if (conv.empty() || part.is_zero()) continue;
    const Algorithm& row = *conv.algorithm;
    cycles += CyclesOf(row.cost(row, conv.desc, conv.isa, conv.threads), conv.threads);
  }
  return cycles;
}

std::string PlanConvs(const ConvTransposeDesc& d, Isa isa, int threads, int64_t images,
                      ConvTransposePlan* plan) {
  plan->narrow = d.oc() < kBlock;
  plan->convs.resize(1);
  const bool may_join = !IsExact(d) || AreAlike(d);
  std::string error;
  if (may_join) {
    error = PlanConv(d, isa, threads, images, 0, d.phases(), plan->narrow, &plan->convs[0]);
    if (plan->narrow || d.phases() == 1 || !error.empty()) return error;
  }
  std::vector<PhaseConv> by_phase(d.phases());
  for (int64_t p = 0; p < d.phases() && error.empty(); ++p) {
    error = PlanConv(d, isa, threads, images, p, 1, plan->narrow, &by_phase[p]);
  }
  if (!error.empty()) return error;
  const auto bytes = [](const std::vector<PhaseConv>& convs) {
    int64_t sum = 0;
    for (const PhaseConv& part : convs) sum += part.conv.packed_bytes;
    return sum;
  };
  const bool better = !may_join || (d.algorithm == ConvAlgorithm::kAutoSmallest
                                        ? bytes(by_phase) < bytes(plan->convs)  // it packs no zeros
                                        : Cycles(by_phase) < Cycles(plan->convs));
  if (better) plan->convs = std::move(by_phase);
  return error;
}

// A word for all that decides about the packed bytes beside the weights' shape.
int64_t Blocking(const ConvTransposePlan& plan) {
  const ConvTransposeDesc& d = plan.desc;
  uint64_t word = 0;
  const auto mix = [&word](int64_t value) {
    word = (word ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    word ^= word >> 29;
  };
  for (int64_t value : {d.sh, d.sw, d.pad_top, d.pad_left}) mix(value);
  for (const PhaseConv& part : plan.convs) {
    for (const char* name = part.conv.pack_key.algorithm; *name != 0; ++name) mix(*name);
    for (int64_t value :
         {part.conv.pack_key.blocking, part.h.first, part.h.last, part.w.first, part.w.last}) {
      mix(value);
    }
  }
  return static_cast<int64_t>(word);
}

// The tap of an axis with which phase q reads the pixel `offset` from its own, or -1.
int64_t TapAt(int64_t kernel, int64_t stride, int64_t pad, int64_t phase, int64_t offset) {
  const int64_t tap = (phase + pad) - offset * stride;
  return tap >= 0 && tap < kernel ? tap : -1;
}

// HWIO of a part.
void Expand(const ConvTransposeDesc& d, const PhaseConv& part, const float* weights, float* hwio,
            ThreadPool& pool) {
  const ConvDesc& c = part.conv.desc;
  pool.ParallelFor(c.kh() * c.kw() * c.ic(), [&](int64_t row, int) {
    const int64_t i = row % c.ic(), tap = row / c.ic();
    float* out = hwio + row * c.oc();
    std::fill_n(out, c.oc(), 0.f);
    for (int64_t p = part.first_phase; p < part.first_phase + part.phases; ++p) {
      const int64_t kh = TapAt(d.kh, d.sh, d.pad_top, p / d.sw, part.h.first + tap / c.kw());
      const int64_t kw = TapAt(d.kw, d.sw, d.pad_left, p % d.sw, part.w.first + tap % c.kw());
      if (kh < 0 || kw < 0) continue;
      const float* from = weights + (kh * d.kw + kw) * d.oc() * d.ic() + i;
      float* to = out + (p - part.first_phase) * part.stride;
      for (int64_t o = 0; o < d.oc(); ++o) to[o] = from[o * d.ic()];
    }
  });
}

// The rows of one execution.
class Rows {
 public:
  Rows(const ConvTransposePlan& plan, const ConvBuffers& buffers)
      : plan_(plan),
        d_(plan.desc),
        buffers_(buffers),
        scratch_(buffers.scratch),
        ocb_(CeilDiv(d_.oc(), kBlock)),
        plain_(d_.dst.channels_last()),
        program_(d_.post_ops, plan.isa, d_.oc(), buffers.args, buffers.dst) {}

  void Run(int64_t first_image, ThreadPool& pool) {
    pool.ParallelFor(plan_.images * ocb_ * plan_.row_tasks, [&](int64_t task, int) {
      const int64_t begin = task % plan_.row_tasks * plan_.rows_per_task;
      const int64_t image = task / plan_.row_tasks;
      for (int64_t y = begin; y < std::min(d_.oh(), begin + plan_.rows_per_task); ++y) {
        Row(first_image, image / ocb_, image % ocb_, y);
      }
    });
  }

 private:
  void Row(int64_t first_image, int64_t image, int64_t block, int64_t y) const {
    const int64_t n = first_image + image, lanes = plain_ ? d_.oc() : kBlock;
    const int64_t channel = block * kBlock, pixel = y * d_.ow();
    const int64_t own = ((n * ocb_ + block) * d_.oh() * d_.ow() + pixel) * lanes;
    InterleaveArgs a = {};
    a.phases = d_.sw;
    a.px = d_.ow();
    a.dst = buffers_.dst + d_.dst.offset(n, block, pixel);
    a.program = program_.program();
    a.dst_offset = own;
    a.channel = channel;
    a.sample_channel = n * (plain_ ? d_.oc() : ocb_ * kBlock) + channel;
    a.valid_lanes = static_cast<int32_t>(std::min(kBlock, d_.oc() - channel));
    const int64_t q = y % d_.sh, t = y / d_.sh;
    const auto& kernels = ConvTransposeKernelsFor(plan_.isa);
    if (plan_.narrow) {
      int64_t offsets[kMostPhases * kBlock];
      a.base = Channel(image, q * d_.sw, t, 0);
      for (int64_t i = 0; i < d_.sw * d_.oc(); ++i) {
        offsets[i] = Channel(image, q * d_.sw + i / d_.oc(), t, i % d_.oc()) - a.base;
      }
      a.src_step = plan_.convs[0].conv.desc.dst.lanes();
      a.channels = d_.oc();
      a.plain = plain_;
      a.offsets = offsets;
      return kernels.narrow(a);
    }
    const float* phase[kMostPhases];
    for (int64_t p = 0; p < d_.sw; ++p) phase[p] = Source(image, block, q * d_.sw + p, t);
    a.phase = phase;
    kernels.wide(a);
  }

  const PhaseConv& PartOf(int64_t phase) const {
    return plan_.convs[plan_.convs.size() > 1 ? phase : 0];
  }

  // Row t of a block of a phase; any pointer where the phase has no such row.
  const float* Source(int64_t image, int64_t block, int64_t phase, int64_t t) const {
    const PhaseConv& part = PartOf(phase);
    const ConvDesc& c = part.conv.desc;
    const int64_t at = (phase - part.first_phase) * ocb_ + block;
    return scratch_.Grant(part.result) +
           ((image * part.conv.ocb + at) * c.oh() + t) * c.ow() * kBlock;
  }

  // Row t of channel c of a phase, where channels of phases have no gaps between them.
  const float* Channel(int64_t image, int64_t phase, int64_t t, int64_t c) const {
    const PhaseConv& part = PartOf(phase);
    const ConvDesc& conv = part.conv.desc;
    const int64_t at = (phase - part.first_phase) * d_.oc() + c, lanes = conv.dst.lanes();
    return scratch_.Grant(part.result) + conv.dst.offset(image, at / lanes, t * conv.ow()) +
           at % lanes;
  }

  const ConvTransposePlan& plan_;
  const ConvTransposeDesc& d_;
  const ConvBuffers& buffers_;
  const Scratch scratch_;
  const int64_t ocb_;
  const bool plain_;
  const BoundPostOps program_;
};

}  // namespace

PhaseTaps TapsOfPhase(int64_t kernel, int64_t stride, int64_t pad, int64_t phase) {
  const int64_t a = (phase + pad) % stride, b = (phase + pad) / stride;
  if (a >= kernel) return {};
  const int64_t taps = CeilDiv(kernel - a, stride);
  return {b - (taps - 1), b};
}

std::string MakeConvTransposePlan(const ConvTransposeDesc& desc, Isa isa, int threads,
                                  ConvTransposePlan* plan) {
  if (std::string error = Check(desc); !error.empty()) return error;
  *plan = ConvTransposePlan();
  plan->desc = desc;
  plan->isa = isa;
  plan->threads = threads;
  const int64_t lanes = desc.oc() < kBlock ? desc.oc() : CeilDiv(desc.oc(), kBlock) * kBlock;
  plan->images =
      ImagesAtATime(desc.n(), desc.oh() * desc.ow() * lanes * int64_t{sizeof(float)}, threads);
  const int64_t images = std::min(desc.n(), plan->images);
  if (std::string e = PlanConvs(desc, isa, threads, images, plan); !e.empty()) return e;
  for (PhaseConv& part : plan->convs) {
    part.packed = plan->packed_bytes / int64_t{sizeof(float)};
    if (!part.is_zero()) plan->packed_bytes += CeilDiv(part.conv.packed_bytes, 64) * 64;
  }
  plan->pack_key = {plan->algorithm_name(), DataType::f32, Blocking(*plan)};
  if (plan->empty()) return "";
  int64_t booked = 0;  // convolutions run one after the other, in the same memory
  for (PhaseConv& part : plan->convs) {
    const ConvDesc& c = part.conv.desc;
    part.result = plan->scratch.Book<float>("phases", c.dst.elements());
    booked = std::max(booked, part.conv.scratch.bytes());
  }
  const ScratchPiece<char> shared = plan->scratch.Book<char>("convolution", booked);
  for (PhaseConv& part : plan->convs) part.scratch = shared;
  constexpr int64_t kTaskFloats = 8 << 10;
  plan->rows_per_task = std::clamp<int64_t>(kTaskFloats / (desc.ow() * kBlock), 1, desc.oh());
  plan->row_tasks = CeilDiv(desc.oh(), plan->rows_per_task);
  return plan->scratch.Check();
}

void PackConvTransposeWeights(const ConvTransposePlan& plan, const float* weights, float* packed,
                              ThreadPool& pool, const float* src) {
  std::vector<float> hwio;
  for (const PhaseConv& part : plan.convs) {
    if (part.is_zero()) continue;
    const ConvDesc& c = part.conv.desc;
    hwio.resize(c.kh() * c.kw() * c.ic() * c.oc());
    Expand(plan.desc, part, weights, hwio.data(), pool);
    PackConvWeights(part.conv, hwio.data(), packed + part.packed, pool, src);
  }
}

int ConvTransposeExponent(const ConvTransposePlan& plan, const float* src) {
  for (const PhaseConv& part : plan.convs) {  // all of which read one source
    const int exponent = part.is_zero() ? 0 : ConvWeightsExponent(part.conv, src);
    if (exponent != 0) return exponent;
  }
  return 0;
}

void RunConvTranspose(const ConvTransposePlan& plan, const ConvBuffers& buffers, ThreadPool& pool) {
  if (plan.empty()) return;
  const ConvTransposeDesc& d = plan.desc;
  const Scratch scratch(buffers.scratch);
  Rows rows(plan, buffers);
  for (int64_t n = 0; n < d.n(); n += plan.images) {
    for (const PhaseConv& part : plan.convs) {
      if (part.is_zero()) {
        std::fill_n(scratch.Grant(part.result), part.result.count, 0.f);
        continue;
      }
      RunConv(part.conv,
              {buffers.src + d.src.offset(n, 0, 0), buffers.packed + part.packed, nullptr,
               scratch.Grant(part.result), scratch.Grant(part.scratch)},
              pool);
    }
    rows.Run(n, pool);
  }
}

}  // namespace bd
