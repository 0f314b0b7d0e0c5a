// The words of the text form: names of algorithms and shapes, and which
// parameters an algorithm takes.
#pragma once

#include <string>
#include <string_view>

#include "cc/core/post_ops/post_op_step.h"

namespace bd {

struct PostOpParameter {
  enum Use { kNone, kOptional, kRequired } use;
  float fallback;  // the value where the text gives none
};

struct EltwiseWords {
  const char* name;
  const char* alias;  // accepted, never printed; or ""
  PostOpParameter alpha, beta;
};

const EltwiseWords& WordsOf(EltwiseAlg alg);
const char* NameOf(BinaryAlg alg);
const char* NameOf(OperandShape shape);

// False where there is no such name.
bool FindEltwise(std::string_view name, EltwiseAlg* alg);
bool FindBinary(std::string_view name, BinaryAlg* alg);
bool FindShape(std::string_view name, OperandShape* shape);

// "relu, leaky_relu, ...", for messages.
std::string EltwiseNames();
std::string BinaryNames();
std::string ShapeNames();

// A line for each function of x, and of x and an operand: "kind,word,op,alias", where op is
// TensorFlow's and may be empty, as an alias may.
const char* PostOpFunctions();

}  // namespace bd
