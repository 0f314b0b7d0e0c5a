#include "cc/kernels/verbose.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bd {

bool VerboseEnabled() {
  static const bool enabled = [] {
    const char* value = std::getenv("TF_BLOCKDNN_VERBOSE");
    return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
  }();
  return enabled;
}

void PrintExecution(const std::string& description, double microseconds) {
  std::fprintf(stderr, "tf_blockdnn %s %.1fus\n", description.c_str(), microseconds);
}

}  // namespace bd
