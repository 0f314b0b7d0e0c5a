// Where register tiles of a convolution multiply in pairs.
#pragma once

#include "cc/base/cpu/isa.h"
#include "cc/core/conv/common/conv_desc.h"

namespace bd {

// Whether those of Winograd's planes do, or those of direct sums over blocked tensors.
bool UsesFip(const ConvDesc& desc, bool winograd, Isa isa);

}  // namespace bd
