// What a kernel file must not do: use a std container, and initialise at load
// time. leak_is_seen_test expects the symbols check to reject it.
#include <vector>

namespace bd::BD_ISA {

std::vector<float> g_leak(17, 1.f);

float GetLeakyKernels(const std::vector<float>& values) {
  std::vector<float> copy(values);
  copy.push_back(g_leak.back());
  return copy.front();
}

}  // namespace bd::BD_ISA
