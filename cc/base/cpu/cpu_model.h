// Which processor this is, where its instruction sets do not say enough.
#pragma once

#include <cstdint>
#include <string>

namespace bd {

struct CpuModel {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", ...
  int family = 0, model = 0;

  static CpuModel OfThisMachine();

  // From what CPUID answers: `name` is ebx, edx, ecx of leaf 0, `signature` eax of leaf 1.
  static CpuModel Decode(const uint32_t (&name)[3], uint32_t signature);

  // Whether a core starts additions on pipes of their own beside those that multiply, so that FIP,
  // which trades every other multiplication for an addition, gains with 512-bit vectors. AMD's
  // Zen 4 does: it multiplies 512 bits a cycle and adds 512 bits beside them. Zen 5 multiplies
  // 1024 bits a cycle, and Intel's adders are its multipliers.
  bool AddsBesideMultiplies() const;
};

// That of this machine, if it has AVX-512.
bool AddsBesideMultiplies();

// For tests of what depends on the answer, on machines whose answer is another: from now on it is
// that of `cpu`; null: of this machine again.
void PretendCpu(const CpuModel* cpu);

}  // namespace bd
