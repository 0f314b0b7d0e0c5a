// Winograd's share of planning, packing and running; the rest of convolution
// calls these and nothing else of it.
#ifndef CC_CORE_CONV_CONV_WINOGRAD_H_
#define CC_CORE_CONV_CONV_WINOGRAD_H_

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_run.h"

namespace bd {

// The output tile (2 or 4) with which Winograd beats the direct kernels for
// this shape, batch and number of threads, or 0. With algorithm == kWinograd
// the better of the two tiles wherever the algorithm applies.
int ChooseWinogradTile(const ConvDesc& desc, Isa isa, int threads);

// Tasks and scratch; plan->packing.winograd_m and plan->groups are set.
void PlanWinograd(ConvPlan* plan);

// U = G g G^T in double, as [xi][group][icb][ic in block][block of group][16].
void PackWinograd(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool);

void RunWinograd(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_WINOGRAD_H_
