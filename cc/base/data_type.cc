#include "cc/base/data_type.h"

#include <cstring>

namespace bd {
namespace {

struct Row {
  const char* name;
  int64_t bytes;
};

#define BD_DATA_TYPE_ROW(name, Stored, text) {text, sizeof(Stored)},
constexpr Row kRows[] = {BD_DATA_TYPES(BD_DATA_TYPE_ROW)};
#undef BD_DATA_TYPE_ROW

}  // namespace

const char* DataTypeName(DataType dtype) { return kRows[static_cast<int>(dtype)].name; }

int64_t SizeOf(DataType dtype) { return kRows[static_cast<int>(dtype)].bytes; }

bool ParseDataType(const char* name, DataType* dtype) {
  for (int i = 0; i < kNumDataTypes; ++i) {
    if (strcmp(name, kRows[i].name) != 0) continue;
    *dtype = static_cast<DataType>(i);
    return true;
  }
  return false;
}

}  // namespace bd
