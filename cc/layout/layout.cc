#include "cc/layout/layout.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

#include "cc/base/str_cat.h"

namespace bd {
namespace {

#define BD_LAYOUT_NAME(name) #name,
constexpr const char* kNames[] = {BD_LAYOUTS(BD_LAYOUT_NAME)};
#undef BD_LAYOUT_NAME

// The logical order, of activations and of weights at once.
constexpr char kLogicalOrder[] = "xngoicdhw";

LayoutParts Parse(const char* name) {
  LayoutParts parts;
  bool present[sizeof(kLogicalOrder)] = {};
  const char* end = name;
  for (; isalpha(*end); ++end) present[strchr(kLogicalOrder, tolower(*end)) - kLogicalOrder] = true;
  for (int i = 0; kLogicalOrder[i] != '\0'; ++i) {
    if (present[i]) parts.letters[parts.rank++] = kLogicalOrder[i];
  }
  const auto dim_of = [&](char letter) {
    return static_cast<int>(strchr(parts.letters, tolower(letter)) - parts.letters);
  };
  for (int i = 0; i < parts.rank; ++i) parts.order[i] = dim_of(name[i]);
  while (*end != '\0') {
    char* letter;
    parts.inner_size[parts.num_inner] = strtol(end, &letter, 10);
    parts.inner_dim[parts.num_inner++] = dim_of(*letter);
    end = letter + 1;
  }
  return parts;
}

}  // namespace

const char* LayoutName(Layout layout) { return kNames[static_cast<int>(layout)]; }

bool ParseLayout(const std::string& name, Layout* layout) {
  for (int i = 0; i < kNumLayouts; ++i) {
    if (name != kNames[i]) continue;
    *layout = static_cast<Layout>(i);
    return true;
  }
  return false;
}

std::string UnknownLayout(const std::string& name) {
  return StrCat("unknown layout \"", name,
                "\": names are like nhwc, nChw16c, OIhw16i16o; bd.TensorDesc.layouts() lists all ",
                kNumLayouts);
}

LayoutParts PartsOf(Layout layout) { return Parse(LayoutName(layout)); }

int64_t ChannelBlock(Layout layout) {
  const LayoutParts parts = PartsOf(layout);
  const char* c = strchr(parts.letters, 'c');
  return c == nullptr ? 1 : parts.block(static_cast<int>(c - parts.letters));
}

Dims PhysicalShape(Layout layout, const Dims& dims) {
  const LayoutParts parts = PartsOf(layout);
  Dims shape;
  for (int i = 0; i < parts.rank; ++i) {
    const int64_t size = dims[parts.order[i]], block = parts.block(parts.order[i]);
    shape.push_back(size < 0 ? -1 : size / block + (size % block != 0));
  }
  for (int i = 0; i < parts.num_inner; ++i) shape.push_back(parts.inner_size[i]);
  return shape;
}

}  // namespace bd
