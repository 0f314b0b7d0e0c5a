// The instruction sets a test runs its kernels on: all this machine has.
#ifndef TESTS_CC_ISAS_H_
#define TESTS_CC_ISAS_H_

#include <vector>

#include "cc/base/isa.h"

namespace bd {

inline std::vector<Isa> TestIsas() {
  std::vector<Isa> isas;
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= DetectIsa()) isas.push_back(isa);
  }
  return isas;
}

}  // namespace bd

#endif  // TESTS_CC_ISAS_H_
