// The definition of reorder, for tests.
#pragma once

#include <cstring>

#include "cc/core/reorder/reorder.h"
#include "tests/cc/convert_ref.h"

namespace bd {
// The same, element by element.
inline void ReorderRef(const ReorderDesc& desc, const void* src, void* dst) {
  const Dims& dims = desc.dst.dims();
  const Dims& padded = desc.dst.padded_dims();
  if (desc.dst.size() == 0) return;
  const DataType src_type = desc.src.dtype(), dst_type = desc.dst.dtype();
  const int64_t bytes = SizeOf(dst_type);

  Dims index = Dims::Filled(padded.size(), 0);
  for (int d = 0; d >= 0;) {
    const int64_t to = desc.dst.OffsetOf(index.data());
    char* element = static_cast<char*>(dst) + to * bytes;
    bool tail = false;
    int64_t scale = 0;
    for (int i = 0; i < dims.size(); ++i) {
      tail = tail || index[i] >= dims[i];
      if (desc.scale_mask >> i & 1) scale = scale * dims[i] + index[i];
    }
    if (tail) {
      memset(element, desc.dst_quantization.zero_point, bytes);
    } else if (desc.copies()) {
      const int64_t from = desc.src.OffsetOf(index.data());
      memcpy(element, static_cast<const char*>(src) + from * bytes, bytes);
    } else {
      float value = LoadAsFloatRef(src_type, src, desc.src.OffsetOf(index.data()));
      value = Dequantized(desc.src_quantization, value);
      if (!desc.scales.empty()) value *= desc.scales[scale];
      if (desc.beta != 0) {
        const float old = Dequantized(desc.dst_quantization, LoadAsFloatRef(dst_type, dst, to));
        const float added = desc.beta * old;
        value += added;
      }
      StoreFloatRef(dst_type, Quantized(desc.dst_quantization, value), dst, to);
    }
    for (d = padded.size() - 1; d >= 0 && ++index[d] == padded[d]; --d) index[d] = 0;
  }
}

}  // namespace bd
