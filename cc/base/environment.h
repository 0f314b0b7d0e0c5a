// Switches in the environment.
#pragma once

namespace bd {

// Whether the variable is set to anything but nothing and 0.
bool IsSwitchedOn(const char* variable);

}  // namespace bd
