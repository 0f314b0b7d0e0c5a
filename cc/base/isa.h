// The instruction sets kernels are compiled for, and the one in force.
#ifndef CC_BASE_ISA_H_
#define CC_BASE_ISA_H_

namespace bd {

enum class Isa { kGeneric = 0, kAvx2 = 1, kAvx512 = 2 };

// "generic", "avx2", "avx512": the names TF_BLOCKDNN_MAX_ISA takes.
const char* IsaName(Isa isa);

// The best ISA of this machine (CPUID and the operating system's XCR0).
Isa DetectIsa();

// DetectIsa() capped by TF_BLOCKDNN_MAX_ISA; read once. An unknown name caps
// nothing and is reported on stderr once.
Isa ActiveIsa();

// Whether this CPU adds on pipes of its own beside those that multiply, 512 bits of each a
// cycle: AMD's Zen 4. Zen 5 multiplies on both; of others nobody has measured it.
bool AddsBesideMultiplies();

}  // namespace bd

#endif  // CC_BASE_ISA_H_
