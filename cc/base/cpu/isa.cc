#include "cc/base/cpu/isa.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cc/base/environment.h"

namespace bd {
namespace {

#define BD_ISA_NAME(name, enumerator) #name,
constexpr const char* kNames[] = {BD_ISAS(BD_ISA_NAME)};
#undef BD_ISA_NAME

// The flags per-ISA kernels are compiled with: cc/build_defs.bzl.
// __builtin_cpu_supports asks CPUID and XCR0, so a set the operating system
// does not save counts as absent.
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
}

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool HasAvx512Vnni() { return __builtin_cpu_supports("avx512vnni"); }
bool HasAvx512Bf16() { return __builtin_cpu_supports("avx512bf16"); }

Isa CappedByEnvironment(Isa best) {
  const char* cap = getenv("TF_BLOCKDNN_MAX_ISA");
  if (cap == nullptr || *cap == '\0') return best;
  std::string names;
  for (int i = 0; i < kNumIsas; ++i) {
    if (strcmp(cap, kNames[i]) == 0) return std::min(best, static_cast<Isa>(i));
    names += (i == 0 ? "" : i == kNumIsas - 1 ? " or " : ", ") + std::string(kNames[i]);
  }
  fprintf(stderr, "tf_blockdnn: TF_BLOCKDNN_MAX_ISA=%s is unknown and ignored; use %s\n", cap,
          names.c_str());
  return best;
}

}  // namespace

const char* IsaName(Isa isa) { return kNames[static_cast<int>(isa)]; }

Isa DetectIsa() {
  static const Isa best = [] {
    __builtin_cpu_init();
    constexpr bool (*kHas[])() = {HasAvx2, HasAvx512, HasAvx512Vnni, HasAvx512Bf16};
    static_assert(sizeof(kHas) / sizeof(*kHas) == kNumIsas - 1, "one check for each set");
    int isa = 0;  // generic
    while (isa + 1 < kNumIsas && kHas[isa]()) ++isa;
    return static_cast<Isa>(isa);
  }();
  return best;
}

Isa ActiveIsa() {
  static const Isa active = CappedByEnvironment(DetectIsa());
  return active;
}

bool RunsHere(Isa isa) {
  static const Isa best =
      IsSwitchedOn("BD_TEST_EMULATE") ? std::min(DetectIsa(), Isa::kAvx2) : DetectIsa();
  return isa <= best;
}

}  // namespace bd
