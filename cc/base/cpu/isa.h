// The instruction sets kernels are compiled for, and the one in force.
#pragma once

namespace bd {

// X(namespace of the kernels, enumerator), in the order in which kernels prefer them. Each is a
// superset of the one before it, every processor with AVX512_BF16 having AVX512_VNNI, but for
// avx2_vnni: its VPDPBUSD of 256 bits is on processors without AVX-512, and not on most of those
// with it, which prefer their own. avx512_amx has the tiles of bytes and of bfloat16: no processor
// has one without the other. The namespaces are the names that TF_BLOCKDNN_MAX_ISA takes;
// cc/build_defs.bzl has the flags.
#define BD_ISAS(X)            \
  X(generic, kGeneric)        \
  X(avx2, kAvx2)              \
  X(avx2_vnni, kAvx2Vnni)     \
  X(avx512, kAvx512)          \
  X(avx512_vnni, kAvx512Vnni) \
  X(avx512_bf16, kAvx512Bf16) \
  X(avx512_amx, kAvx512Amx)

#define BD_ISA_ENUMERATOR(name, enumerator) enumerator,
enum class Isa { BD_ISAS(BD_ISA_ENUMERATOR) };
#undef BD_ISA_ENUMERATOR

#define BD_COUNT_ISA(name, enumerator) +1
constexpr int kNumIsas = 0 BD_ISAS(BD_COUNT_ISA);
#undef BD_COUNT_ISA

// isa_names::avx2 == Isa::kAvx2, for macros.
namespace isa_names {
#define BD_NAMED_ISA(name, enumerator) constexpr Isa name = Isa::enumerator;
BD_ISAS(BD_NAMED_ISA)
#undef BD_NAMED_ISA
}  // namespace isa_names

const char* IsaName(Isa isa);

// The best ISA of this machine (CPUID and the operating system's XCR0). Asked for the first time,
// it asks the operating system for AMX's tiles and multiplies one; what fails is said on stderr.
Isa DetectIsa();

// The best ISA of this machine that TF_BLOCKDNN_MAX_ISA does not cap; read once. An unknown name
// caps nothing and is reported on stderr once.
Isa ActiveIsa();

// Whether VPDPBUSD multiplies bytes as they are.
inline bool MultipliesBytes(Isa isa) { return isa == Isa::kAvx2Vnni || isa >= Isa::kAvx512Vnni; }

// Whether bfloat16 numbers are multiplied as they are.
inline bool MultipliesBfloat16(Isa isa) { return isa >= Isa::kAvx512Bf16; }

// The machine has these instructions, and the environment variable BD_TEST_EMULATE does not ask to
// do without those that can be emulated. Only tables of kernels and tests ask.
bool RunsHere(Isa isa);

}  // namespace bd
