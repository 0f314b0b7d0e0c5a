// The instruction sets a test runs its kernels on: all that this machine has, and all that it can
// emulate, which with AVX2 are those of 512 bits (cc/base/cpu/kernel_table.h).
#pragma once

#include <algorithm>
#include <vector>

#include "cc/base/cpu/isa.h"

namespace bd {

// The best that kernels can be run on here, up to `last`.
inline Isa BestTestIsa(Isa last = Isa::kAvx512) {
  return DetectIsa() < Isa::kAvx2 ? DetectIsa() : last;
}

// `last` is the highest set that the kernels are there for.
inline std::vector<Isa> TestIsas(Isa last = Isa::kAvx512) {
  std::vector<Isa> isas;
  for (int isa = 0; isa <= static_cast<int>(BestTestIsa(last)); ++isa) {
    isas.push_back(static_cast<Isa>(isa));
  }
  return isas;
}

}  // namespace bd
