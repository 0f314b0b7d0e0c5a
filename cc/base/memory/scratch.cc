#include "cc/base/memory/scratch.h"

namespace bd {

size_t ScratchBook::Reserve(const char* name, size_t bytes_a_copy, int64_t copies) {
  const size_t offset = bytes_;
  const size_t bytes = bytes_a_copy * copies;
  if (bytes > 0) entries_.push_back({name, offset, bytes, copies});
  bytes_ += bytes;
  return offset;
}

}  // namespace bd
