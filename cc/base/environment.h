// Switches in the environment.
#pragma once

#include <cstdlib>
#include <cstring>

namespace bd {

// Whether the variable is set to anything but nothing and 0.
inline bool IsSwitchedOn(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0' && strcmp(value, "0") != 0;
}

}  // namespace bd
