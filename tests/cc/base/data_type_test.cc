#include "cc/base/data_type.h"

#include <gtest/gtest.h>

namespace bd {
namespace {

TEST(DataType, NamesAndSizes) {
  for (int i = 0; i < kNumDataTypes; ++i) {
    const DataType dtype = static_cast<DataType>(i);
    DataType parsed = dtype == DataType::f32 ? DataType::u8 : DataType::f32;
    EXPECT_TRUE(ParseDataType(DataTypeName(dtype), &parsed));
    EXPECT_EQ(parsed, dtype);
  }
  DataType dtype = DataType::s8;
  EXPECT_FALSE(ParseDataType("float64", &dtype));
  EXPECT_EQ(dtype, DataType::s8);
  EXPECT_EQ(SizeOf(DataType::f32), 4);
  EXPECT_EQ(SizeOf(DataType::bf16), 2);
  EXPECT_EQ(SizeOf(DataType::f16), 2);
  EXPECT_EQ(SizeOf(DataType::s32), 4);
  EXPECT_EQ(SizeOf(DataType::s8), 1);
  EXPECT_EQ(SizeOf(DataType::u8), 1);
}

}  // namespace
}  // namespace bd
