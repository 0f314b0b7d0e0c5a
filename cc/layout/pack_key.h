// What distinguishes packed weights of one source.
#pragma once

#include <cstdint>
#include <cstring>

#include "cc/base/data_type.h"

namespace bd {

// The order and the type of packed weights: of one weight, equal keys are equal bytes.
struct PackKey {
  const char* algorithm = "";  // a literal
  DataType dtype = DataType::f32;
  int64_t blocking = 0;  // the algorithm's own word for how it cuts channels
  const char* op = "";   // a literal, where ops with other meanings of a shape share algorithms

  bool operator==(const PackKey& o) const {
    return std::strcmp(algorithm, o.algorithm) == 0 && dtype == o.dtype && blocking == o.blocking &&
           std::strcmp(op, o.op) == 0;
  }
};

}  // namespace bd
