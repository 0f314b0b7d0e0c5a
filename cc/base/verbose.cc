#include "cc/base/verbose.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bd {

bool VerboseEnabled() {
  static const bool enabled = [] {
    const char* value = getenv("TF_BLOCKDNN_VERBOSE");
    return value != nullptr && *value != '\0' && strcmp(value, "0") != 0;
  }();
  return enabled;
}

void PrintExecution(const std::string& description, double microseconds) {
  char time[32];
  snprintf(time, sizeof(time), " %.1fus\n", microseconds);
  const std::string line = "tf_blockdnn " + description + time;
  // A line that cannot be written is lost; the computation is not.
  const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(written);
}

}  // namespace bd
