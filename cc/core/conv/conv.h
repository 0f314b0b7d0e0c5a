// Convolution: ConvDesc -> ConvPlan (immutable) -> PackConvWeights, RunConv.
//
//   conv_plan.cc  the table of algorithms, and the choice of a row
//   common/       the descriptions, what all plans and runs share, costs
//   direct/ winograd/ depthwise/ rows/   a room an algorithm; none sees another
//   conv_depthwise/     1x1 and depthwise as one primitive, on direct and depthwise
#pragma once

#include <string>
#include <vector>

#include "cc/core/conv/common/conv_plan.h"

namespace bd {

// Fills *plan; returns an empty string or one line saying what is wrong.
std::string MakeConvPlan(const ConvDesc& desc, Isa isa, int threads, ConvPlan* plan);

// `packed` holds plan.packed_bytes, 64-byte aligned; nothing is done where that is 0.
// `src` is one that the weights will meet, or null: no result depends on it, but a source of
// another magnitude takes longer where weights are multiplied in pairs.
void PackConvWeights(const ConvPlan& plan, const float* hwio, float* packed, ThreadPool& pool,
                     const float* src = nullptr);

// The power of two by which weights are packed for such a source; 0 for most algorithms.
int ConvWeightsExponent(const ConvPlan& plan, const float* src);

// `pool.num_threads()` must equal plan.threads.
void RunConv(const ConvPlan& plan, const ConvBuffers& buffers, ThreadPool& pool);

// The table of algorithms: a new one is a room, a row here, and nothing else. Of equal costs the
// first is chosen.
const std::vector<Algorithm>& ConvAlgorithms();

// Why a row is none for this convolution, or nothing.
std::string WhyNot(const Algorithm& algorithm, const ConvDesc& desc, Isa isa);

// MakeConvPlan by a row that applies, whatever it costs.
std::string MakeConvPlanBy(const Algorithm& algorithm, const ConvDesc& desc, Isa isa, int threads,
                           ConvPlan* plan);

}  // namespace bd
