#include "cc/base/cpu/cpu_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cc/base/cpu/isa.h"

namespace bd {
namespace {

CpuModel Decode(const char* vendor, uint32_t signature) {
  uint32_t name[3];
  memcpy(name, vendor, sizeof(name));
  return CpuModel::Decode(name, signature);
}

// Signatures as CPUID gives them on these processors.
TEST(CpuModel, DecodesFamiliesAndModels) {
  const struct {
    const char *name, *vendor;
    uint32_t signature;
    int family, model;
    bool adds_beside;
  } cases[] = {
      {"Pentium III", "GenuineIntel", 0x00000681, 0x06, 0x08, false},
      {"Pentium 4", "GenuineIntel", 0x00000f29, 0x0f, 0x02, false},
      {"Skylake-X", "GenuineIntel", 0x00050654, 0x06, 0x55, false},
      {"Sapphire Rapids", "GenuineIntel", 0x000806f8, 0x06, 0x8f, false},
      {"Zen 2 (Rome)", "AuthenticAMD", 0x00830f10, 0x17, 0x31, false},
      {"Zen 3 (Milan)", "AuthenticAMD", 0x00a00f11, 0x19, 0x01, true},  // without AVX-512
      {"Zen 4 (Genoa)", "AuthenticAMD", 0x00a10f11, 0x19, 0x11, true},
      {"Zen 4 (Raphael)", "AuthenticAMD", 0x00a60f12, 0x19, 0x61, true},
      {"Zen 5 (Granite Ridge)", "AuthenticAMD", 0x00b40f40, 0x1a, 0x44, false},
      {"Zen 5 (Turin)", "AuthenticAMD", 0x00b00f21, 0x1a, 0x02, false},
      {"another vendor's", "HygonGenuine", 0x00a10f11, 0x19, 0x11, false},
  };
  for (const auto& c : cases) {
    const CpuModel cpu = Decode(c.vendor, c.signature);
    EXPECT_EQ(cpu.vendor, c.vendor);
    EXPECT_EQ(cpu.family, c.family) << c.name;
    EXPECT_EQ(cpu.model, c.model) << c.name;
    EXPECT_EQ(cpu.AddsBesideMultiplies(), c.adds_beside) << c.name;
  }
}

TEST(CpuModel, OfThisMachine) {
  const CpuModel cpu = CpuModel::OfThisMachine();
  EXPECT_EQ(cpu.vendor.size(), 12u);
  EXPECT_GT(cpu.family, 0);
  if (DetectIsa() < Isa::kAvx512) {
    EXPECT_FALSE(AddsBesideMultiplies());
  } else {
    EXPECT_EQ(AddsBesideMultiplies(), cpu.AddsBesideMultiplies());
  }
}

TEST(CpuModel, PretendedOnesAnswer) {
  const bool here = AddsBesideMultiplies();
  const CpuModel zen4 = {"AuthenticAMD", 0x19, 0x11}, zen5 = {"AuthenticAMD", 0x1a, 0x44};
  PretendCpu(&zen4);
  EXPECT_TRUE(AddsBesideMultiplies());
  PretendCpu(&zen5);
  EXPECT_FALSE(AddsBesideMultiplies());
  PretendCpu(nullptr);
  EXPECT_EQ(AddsBesideMultiplies(), here);
}

}  // namespace
}  // namespace bd
