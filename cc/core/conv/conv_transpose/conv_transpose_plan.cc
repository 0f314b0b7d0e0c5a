// The phases of a transposed convolution as convolutions.
#include <algorithm>

#include "cc/base/machine.h"
#include "cc/core/conv/common/cost.h"
#include "cc/core/conv/conv_transpose/conv_transpose.h"
#include "cc/core/gemm/gemm_panels.h"

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
  std::vector<PhaseConv> apart(d.phases());
  for (int64_t p = 0; p < d.phases() && error.empty(); ++p) {
    error = PlanConv(d, isa, threads, images, p, 1, plan->narrow, &apart[p]);
  }
  if (!error.empty()) return error;
  const auto bytes = [](const std::vector<PhaseConv>& convs) {
    int64_t sum = 0;
    for (const PhaseConv& part : convs) sum += part.conv.packed_bytes;
    return sum;
  };
  const bool better = !may_join || (d.algorithm == ConvAlgorithm::kAutoSmallest
                                        ? bytes(apart) < bytes(plan->convs)  // it packs no zeros
                                        : Cycles(apart) < Cycles(plan->convs));
  if (better) plan->convs = std::move(apart);
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

}  // namespace bd
