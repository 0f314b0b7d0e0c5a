// What bd.info() asks the library through ctypes.
#include "cc/base/isa.h"

extern "C" __attribute__((visibility("default"))) const char* BlockdnnActiveIsa() {
  return bd::IsaName(bd::ActiveIsa());
}
