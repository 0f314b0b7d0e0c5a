#include "cc/base/memory/scratch.h"

namespace bd {

int64_t ScratchBook::Reserve(const char* name, Size bytes_a_copy, Size copies) {
  const int64_t offset = bytes_.value();
  const Size bytes = bytes_a_copy * copies;
  if (bytes.value() > 0) entries_.push_back({name, offset, bytes.value(), copies.value()});
  bytes_ = bytes_ + bytes;
  return offset;
}

std::string ScratchBook::Check() const {
  return bytes_.fits() ? "" : "the temporary memory would be more than 2^47 bytes";
}

}  // namespace bd
