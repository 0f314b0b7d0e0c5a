#include "cc/base/cpu/cpu_model.h"

#include <cpuid.h>

#include <atomic>

#include "cc/base/cpu/isa.h"

namespace bd {
namespace {

// AMD's family of Zen 3, which has no AVX-512, and of Zen 4, which has.
constexpr int kZen3And4 = 0x19;

std::atomic<const CpuModel*> g_pretended{nullptr};

}  // namespace

CpuModel CpuModel::Decode(const uint32_t (&name)[3], uint32_t signature) {
  const auto bits = [signature](int first, int count) {
    return static_cast<int>(signature >> first & ((1u << count) - 1));
  };
  CpuModel cpu;
  cpu.vendor.assign(reinterpret_cast<const char*>(name), sizeof(name));
  // Families from 15 on are the sum of both fields. The upper digit of the model counts in
  // family 6 and from 15 on.
  cpu.family = bits(8, 4);
  cpu.model = bits(4, 4);
  if (cpu.family == 6 || cpu.family == 15) cpu.model += bits(16, 4) << 4;
  if (cpu.family == 15) cpu.family += bits(20, 8);
  return cpu;
}

CpuModel CpuModel::OfThisMachine() {
  uint32_t eax, ebx, ecx, edx, signature;
  if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx)) return {};
  const uint32_t name[] = {ebx, edx, ecx};
  if (!__get_cpuid(1, &signature, &ebx, &ecx, &edx)) return {};
  return Decode(name, signature);
}

bool CpuModel::AddsBesideMultiplies() const {
  return vendor == "AuthenticAMD" && family == kZen3And4;
}

void PretendCpu(const CpuModel* cpu) { g_pretended = cpu; }

bool AddsBesideMultiplies() {
  if (const CpuModel* cpu = g_pretended) return cpu->AddsBesideMultiplies();
  static const bool adds =
      ActiveIsa() >= Isa::kAvx512 && CpuModel::OfThisMachine().AddsBesideMultiplies();
  return adds;
}

}  // namespace bd
