// The instruction sets a test runs its kernels on: all that this machine has, and all that it can
// emulate, which with AVX2 are those above it (cc/base/cpu/kernel_table.h).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cc/base/cpu/isa.h"

namespace bd {

// The best that kernels can be run on here, up to `last`.
inline Isa BestTestIsa(Isa last = Isa::kAvx512) {
  return DetectIsa() < Isa::kAvx2 ? DetectIsa() : last;
}

// `last` is the highest set that the kernels are there for. Kernels of avx2_vnni are those of avx2
// but for bytes.
inline std::vector<Isa> TestIsas(Isa last = Isa::kAvx512, bool of_bytes = false) {
  std::vector<Isa> isas;
  for (int i = 0; i <= static_cast<int>(BestTestIsa(last)); ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (isa != Isa::kAvx2Vnni || of_bytes) isas.push_back(isa);
  }
  return isas;
}
// Names the cases of a test whose parameter is a set.
inline std::string IsaParam(const testing::TestParamInfo<Isa>& info) { return IsaName(info.param); }

inline std::vector<Isa> TestIsasOfBytes() { return TestIsas(Isa::kAvx512Amx, true); }

}  // namespace bd
