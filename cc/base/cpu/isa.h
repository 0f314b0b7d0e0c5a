// The instruction sets kernels are compiled for, and the one in force.
#pragma once

namespace bd {

// X(namespace of the kernels, enumerator), each a superset of the one before it: every processor
// with AVX512_BF16 has AVX512_VNNI. The namespaces are the names that TF_BLOCKDNN_MAX_ISA takes;
// cc/build_defs.bzl has the flags.
#define BD_ISAS(X)            \
  X(generic, kGeneric)        \
  X(avx2, kAvx2)              \
  X(avx512, kAvx512)          \
  X(avx512_vnni, kAvx512Vnni) \
  X(avx512_bf16, kAvx512Bf16)

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

// The best ISA of this machine (CPUID and the operating system's XCR0).
Isa DetectIsa();

// DetectIsa() capped by TF_BLOCKDNN_MAX_ISA; read once. An unknown name caps
// nothing and is reported on stderr once.
Isa ActiveIsa();

// The machine has these instructions, and the environment variable BD_TEST_EMULATE does not ask to
// do without those of 512 bits. Only tables of kernels ask.
bool RunsHere(Isa isa);

}  // namespace bd
