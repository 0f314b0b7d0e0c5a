#include "cc/base/isa.h"

#include <cpuid.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bd {
namespace {

constexpr Isa kIsas[] = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512};

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

Isa CappedByEnvironment(Isa best) {
  const char* cap = getenv("TF_BLOCKDNN_MAX_ISA");
  if (cap == nullptr || *cap == '\0') return best;
  for (Isa isa : kIsas) {
    if (strcmp(cap, IsaName(isa)) == 0) return isa < best ? isa : best;
  }
  fprintf(stderr,
          "tf_blockdnn: TF_BLOCKDNN_MAX_ISA=%s is unknown and ignored; "
          "use generic, avx2 or avx512\n",
          cap);
  return best;
}

}  // namespace

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kGeneric:
      break;
  }
  return "generic";
}

Isa DetectIsa() {
  static const Isa best = [] {
    __builtin_cpu_init();
    if (!HasAvx2()) return Isa::kGeneric;
    return HasAvx512() ? Isa::kAvx512 : Isa::kAvx2;
  }();
  return best;
}

bool AddsBesideMultiplies() {
  static const bool adds = [] {
    unsigned eax, ebx, ecx, edx;
    if (DetectIsa() != Isa::kAvx512 || !__get_cpuid(0, &eax, &ebx, &ecx, &edx)) return false;
    char vendor[12];  // in the order ebx, edx, ecx
    memcpy(vendor, &ebx, 4);
    memcpy(vendor + 4, &edx, 4);
    memcpy(vendor + 8, &ecx, 4);
    if (memcmp(vendor, "AuthenticAMD", sizeof(vendor)) != 0) return false;
    // Family 0x19 with AVX-512 is Zen 4, whose two pipes for multiply-adds are 256 bits wide. Zen
    // 5 (0x1a) multiplies 512 bits twice a cycle and has nothing to gain.
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    return ((eax >> 8) & 0xf) + ((eax >> 20) & 0xff) == 0x19;
  }();
  return adds;
}

Isa ActiveIsa() {
  static const Isa active = CappedByEnvironment(DetectIsa());
  return active;
}

}  // namespace bd
