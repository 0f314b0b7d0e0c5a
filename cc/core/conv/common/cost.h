// Cycles of one core, as all estimates of convolution count them, and the constants of the CPU that
// all of them share. A multiply-add of 16 channels is one cycle.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/base/machine.h"
#include "cc/core/conv/common/conv_plan.h"
#include "cc/core/gemm/fip.h"

namespace bd {

// The core, measured on Zen 3 and Zen 4. What lies between cores is of the machine (machine.h).
struct CpuCosts {
  // By what starting and storing tiles and strips takes longer; of Winograd's planes, and what a
  // call of panels for one of them takes.
  double tiles_overhead = 1.05, planes_overhead = 1.06, panels_call = 300;
  // A line of a strip that is copied; of weights that a strip, or a task of Winograd, reads, mostly
  // hidden behind multiply-adds; and of a matrix, which may come from memory.
  double strip_line = 1.5, strip_weights_line = 0.25, planes_weights_line = 1;
  double matrix_weights_line = 3;
  // A multiply-add in pairs; the terms of the source, a vector of it and a pixel (FIP); and the
  // same where it is copied and scaled as well.
  double fip_multiply = 0.72, fip_vector = 2, fip_pixel = 3;
  double fip_copied_vector = 24, fip_copied_pixel = 48;
  // A multiply-add of bfloat16: VDPBF16PS, or two of widened numbers.
  double bf16_multiply = 0.5, bf16_widened_multiply = 1.6;
  // Those of AMX, by published numbers, since no such processor was there to measure: 32 rows by 32
  // columns by 16 dwords are four products of 16 cycles each, and take about as long once more
  // where rows are joined of several taps, as those of blocks of 16 channels are.
  double amx_bf16_multiply = 1. / 16, amx_bytes_multiply = 1. / 32;
  // Of bytes: VPDPBUSD; and of words, VPDPWSSD, or a product and a sum.
  double bytes_multiply = 0.25, words_multiply = 0.5, words_by_two = 0.75;
  // Of weights that are packed for one call: a line of a copy, what pairs add to it, and a line of
  // Winograd's planes. It comes from memory and goes there, which costs more than the arithmetic.
  double pack_line = 40, pack_pairs = 6, pack_winograd = 100;
  // The same where a panel is packed right before it is multiplied: nothing goes to memory.
  double pack_panel_line = 15;
  // Beginning a task, or a part of one.
  double task = 300;
  // What a thread beyond the eighth has to do at least.
  double thread_work = 12000;
  // A row of depthwise pixels; of each pixel a tap, and what comes beside.
  double depthwise_row = 30, depthwise_tap = 1.3, depthwise_pixel = 6;
  // A pixel of small groups, whose source goes to the lanes one after the other.
  double spread_pixel = 20;
  // A pixel that a 1x1 convolution hands to a depthwise one; 64 bytes that go to a cache between
  // them, or come back.
  double handed_pixel = 4, cache_line = 4;
  // A vector of a chain that does not fit the registers (swish).
  double chain_vector = 25;
  // A neighbour on the same core slows a thread down.
  double slow_thread = 1.4;
};
constexpr CpuCosts kCpu;

// Of a call: weights come from memory once, however many tasks read them, while others are
// multiplied.
inline double CyclesOf(const ConvCost& cost, int threads) {
  const Machine& machine = ThisMachine();
  const double stream = cost.weights / 16 * machine.MemoryLine(threads);
  return std::max(cost.cycles, stream) + machine.ForkJoin(threads) + cost.packing;
}

// Of `threads` those among which work of so many cycles is cut. Beyond eight a thread that has less
// than half of a fork-join to do saves less than it takes to bring its source to another core: of
// MobileNetV2's layers 16 to 32 threads were the fastest of 8 to 128 (benchmarks/cc/task_split).
inline int ThreadsFor(double cycles, int threads) {
  constexpr int kFew = 8;
  if (threads <= kFew) return threads;
  return static_cast<int>(std::clamp<double>(cycles / kCpu.thread_work, kFew, threads));
}

// A barrier of those of `threads` that have one of so many tasks.
inline double BarrierOf(int64_t tasks, int threads) {
  const int waiting = static_cast<int>(std::min<int64_t>(tasks, threads));
  return waiting > 1 ? ThisMachine().Barrier(waiting) : 0;
}

// Packing `floats` of weights, `line` cycles each 16 of them, where it is done in every call.
inline double PackCycles(const ConvDesc& d, double floats, double line, int threads) {
  return d.changes_weights ? floats / 16 * line / threads : 0;
}

inline double Bf16Multiply(Isa isa) {
  return isa >= Isa::kAvx512Amx    ? kCpu.amx_bf16_multiply
         : MultipliesBfloat16(isa) ? kCpu.bf16_multiply
                                   : kCpu.bf16_widened_multiply;
}

// Whether register tiles over blocked tensors multiply in pairs, or those of Winograd's planes.
inline bool UsesFip(const ConvDesc& d, bool winograd, Isa isa) {
  // Fewer results a pixel save less than the pixel's terms and sums take (1x1 on Zen 4, in times of
  // "direct": 32->16 at 112x112 1.15, 144->16 at 56x56 1.03; but 144->32 0.89, 32->64 at 112x112
  // 0.91).
  constexpr int64_t kMinOutputChannels = 32;
  // Scales and terms are two vectors a plane beside its weights: a sixteenth at most.
  constexpr int64_t kMinWinogradChannels = 32;
  if (d.groups > 1 || FipKernelsFor(isa).tile_pixels == 0 || d.ic() < 16) return false;
  if (d.algorithm == ConvAlgorithm::kFip) return true;
  if (d.algorithm == ConvAlgorithm::kDirect || d.algorithm == ConvAlgorithm::kWinograd ||
      (winograd && (d.algorithm != ConvAlgorithm::kAuto || d.ic() < kMinWinogradChannels))) {
    return false;
  }
  return GainsFromFip(isa) && d.oc() >= kMinOutputChannels;
}

// A row of dst of a channel block, `chain` cycles for a vector in a chain.
inline double DepthwiseRowCycles(const ConvDesc& d, double chain) {
  const double taps = kCpu.depthwise_tap * static_cast<double>(d.kh() * d.kw());
  return kCpu.depthwise_row + d.ow() * (taps + kCpu.depthwise_pixel + chain);
}

// Direct sums over all taps, split perfectly; `multiply` cycles a multiply-add.
inline ConvCost DirectSums(const ConvDesc& d, double multiply, int threads) {
  // Tiles multiply whole blocks of source channels, whatever a group sees of them.
  const int64_t of_group = d.ic() / d.groups;
  const int64_t reach = d.groups > 1 || d.depthwise() ? (of_group + 15) / 16 * 16 : d.ic();
  const double weights = static_cast<double>(d.kh() * d.kw() * reach) * ((d.oc() + 15) / 16 * 16);
  const double pixels = static_cast<double>(d.n()) * d.oh() * d.ow();
  const double cycles = kCpu.tiles_overhead * multiply * pixels * weights / 16;
  return {cycles / ThreadsFor(cycles, threads), weights, 0};
}

}  // namespace bd
