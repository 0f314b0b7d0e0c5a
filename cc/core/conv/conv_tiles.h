// Forms that multiply register tiles out of a strip of the source.
#ifndef CC_CORE_CONV_CONV_TILES_H_
#define CC_CORE_CONV_CONV_TILES_H_

#include "cc/base/thread_pool.h"
#include "cc/core/conv/conv.h"
#include "cc/core/conv/conv_run.h"

namespace bd {

// A 1x1 convolution whose source and destination have the same pixels.
bool IsInPlace(const ConvDesc& d);

// Fills in strips, splits, K chunks and taps of a plan that has form and groups.
void PlanTiles(ConvPlan* plan);

// One execution, of tiles or of dot products.
void RunTiles(const ConvRun& run, ThreadPool& pool);
void RunDots(const ConvRun& run, ThreadPool& pool);

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_TILES_H_
