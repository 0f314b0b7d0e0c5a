// The table of algorithms: a new one is a room, a row here, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "cc/core/conv/common/conv_plan.h"

namespace bd {

// Of equal costs the first is chosen.
const std::vector<Algorithm>& ConvAlgorithms();

// Why a row is none for this convolution, or nothing.
std::string WhyNot(const Algorithm& algorithm, const ConvDesc& desc, Isa isa);

// MakeConvPlan by a row that applies, whatever it costs.
std::string MakeConvPlanBy(const Algorithm& algorithm, const ConvDesc& desc, Isa isa, int threads,
                           ConvPlan* plan);

}  // namespace bd
