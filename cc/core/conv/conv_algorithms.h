// The table of algorithms: a new one is a room, a row here, and nothing else.
#ifndef CC_CORE_CONV_CONV_ALGORITHMS_H_
#define CC_CORE_CONV_CONV_ALGORITHMS_H_

#include <vector>

#include "cc/core/conv/common/conv_plan.h"

namespace bd {

// Of equal costs the first is chosen.
const std::vector<Algorithm>& ConvAlgorithms();

}  // namespace bd

#endif  // CC_CORE_CONV_CONV_ALGORITHMS_H_
