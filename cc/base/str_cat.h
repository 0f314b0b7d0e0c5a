// Texts and numbers in one text.
#pragma once

#include <string>
#include <type_traits>

namespace bd {

// The texts of `parts` in one: numbers as std::to_string() writes them, all else as it is.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string text;
  const auto append = [&text](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (append(parts), ...);
  return text;
}

}  // namespace bd
