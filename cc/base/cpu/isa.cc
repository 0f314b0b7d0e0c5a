#include "cc/base/cpu/isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cc/base/cpu/tile_registers.h"
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

// The system saves tiles for those processes only that ask for it, for all their threads.
bool MaySaveTiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Whether a product of small tiles is right: no machine with AMX has run these kernels before it
// was released, and no emulator of one shall make wrong numbers.
__attribute__((target("amx-tile,amx-int8"))) bool TilesWork() {
  constexpr int kColumns = 16, kPer = 4, kRows = 2, kOfK = kRows * kPer;
  uint8_t a[kOfK];
  int8_t b[kRows][kColumns][kPer];
  int32_t sums[kColumns], expected[kColumns] = {};
  for (int k = 0; k < kOfK; ++k) a[k] = static_cast<uint8_t>(255 - 3 * k);
  for (int j = 0; j < kColumns; ++j) {
    for (int k = 0; k < kOfK; ++k) {
      b[k / kPer][j][k % kPer] = static_cast<int8_t>(17 * j + k - 128);
      expected[j] += a[k] * b[k / kPer][j][k % kPer];
    }
  }
  TileConfig config;
  config.Set(0, 1, sizeof(sums));
  config.Set(1, 1, sizeof(a));
  config.Set(2, kRows, sizeof(b[0]));
  TileRegisters tiles(config);
  tiles.Zero<0>();
  tiles.Load<1>(a, 0);
  tiles.Load<2>(b, sizeof(b[0]));
  tiles.DotBytes<0, 1, 2>();
  tiles.Store<0>(sums, 0);
  return memcmp(sums, expected, sizeof(sums)) == 0;
}

bool HasAmx() {
  if (!HasAvx512Bf16() || !__builtin_cpu_supports("amx-tile") ||
      !__builtin_cpu_supports("amx-int8") || !__builtin_cpu_supports("amx-bf16")) {
    return false;
  }
  const char* const fault = !MaySaveTiles() ? "the system does not let this process use them"
                            : !TilesWork()  ? "a product of two was wrong"
                                            : nullptr;
  if (fault == nullptr) return true;
  fprintf(stderr, "tf_blockdnn: the processor's AMX tiles are not used: %s\n", fault);
  return false;
}

// Asked of each set, since having one does not say that those below it are there. AMX is asked for
// where nothing caps sets below it.
bool Has(Isa isa) {
  if (isa == Isa::kAvx512Amx) {
    __builtin_cpu_init();
    static const bool has_amx = HasAmx();
    return has_amx;
  }
  static const std::array<bool, kNumIsas - 1> has = [] {
    __builtin_cpu_init();
    return std::array<bool, kNumIsas - 1>{true,        HasAvx2(),       HasAvx2Vnni(),
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
