#include "cc/base/cpu/isa.h"

#include <array>
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

bool HasAvx2Vnni() { return HasAvx2() && __builtin_cpu_supports("avxvnni"); }

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool HasAvx512Vnni() { return HasAvx512() && __builtin_cpu_supports("avx512vnni"); }
bool HasAvx512Bf16() { return HasAvx512Vnni() && __builtin_cpu_supports("avx512bf16"); }

// Asked of each set, since having one does not say that those below it are there.
bool Has(Isa isa) {
  static const std::array<bool, kNumIsas> has = [] {
    __builtin_cpu_init();
    return std::array<bool, kNumIsas>{true,        HasAvx2(),       HasAvx2Vnni(),
                                      HasAvx512(), HasAvx512Vnni(), HasAvx512Bf16()};
  }();
  return has[static_cast<size_t>(isa)];
}

// The best set of this machine that is not above `most`.
Isa BestUpTo(int most) {
  while (!Has(static_cast<Isa>(most))) --most;
  return static_cast<Isa>(most);
}

Isa CappedByEnvironment() {
  const char* cap = getenv("TF_BLOCKDNN_MAX_ISA");
  if (cap == nullptr || *cap == '\0') return DetectIsa();
  std::string names;
  for (int i = 0; i < kNumIsas; ++i) {
    if (strcmp(cap, kNames[i]) == 0) return BestUpTo(i);
    names += (i == 0 ? "" : i == kNumIsas - 1 ? " or " : ", ") + std::string(kNames[i]);
  }
  fprintf(stderr, "tf_blockdnn: TF_BLOCKDNN_MAX_ISA=%s is unknown and ignored; use %s\n", cap,
          names.c_str());
  return DetectIsa();
}

}  // namespace

const char* IsaName(Isa isa) { return kNames[static_cast<int>(isa)]; }

Isa DetectIsa() {
  static const Isa best = BestUpTo(kNumIsas - 1);
  return best;
}

Isa ActiveIsa() {
  static const Isa active = CappedByEnvironment();
  return active;
}

bool RunsHere(Isa isa) {
  static const bool emulates = IsSwitchedOn("BD_TEST_EMULATE");
  return Has(isa) && (isa <= Isa::kAvx2 || !emulates);
}

}  // namespace bd
