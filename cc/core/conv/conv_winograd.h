// Winograd's share of planning, packing and running; the rest of convolution
// calls these and nothing else of it.
#ifndef CC_CORE_CONV_CONV_WINOGRAD_H_
#define CC_CORE_CONV_CONV_WINOGRAD_H_

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_run.h"
#include "cc/core/conv/conv_winograd_kernel.h"

namespace bd {

// The row of kWinogradTransforms that beats the direct kernels for this shape,
// batch and number of threads, or kNoWinograd. With algorithm == kWinograd the
// best of those that apply, if any does.
int ChooseWinograd(const ConvDesc& desc, Isa isa, int threads);

// Only where packing.form == kWinograd.
inline const WinogradTransform& TransformOf(const ConvPacking& packing) {
  return kWinogradTransforms[packing.winograd];
}

// Whether the dst stage can store maxima of 2x2 pixels: its tiles hold whole windows, and
// the chain reads nothing but a bias and ends with a clamp at most.
bool CanPoolTiles(const ConvPlan& plan);

// Tasks and scratch; plan->packing.winograd, groups and pools_tiles are set.
void PlanWinograd(ConvPlan* plan);

// U = G g G^T in double, as [xi][group][icb][ic in block][block of group][16], where
// channels of phases are ordered [row][column][ic]. Of paired products, behind each plane
// [ocb][16] to multiply sums by and [ocb][16] of terms (conv_paired.h).
void PackWinograd(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);

void RunWinograd(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_WINOGRAD_H_
