#include "cc/core/post_ops/post_op_names.h"

#include "cc/base/str_cat.h"

namespace bd {
namespace {

constexpr PostOpParameter kNone = {PostOpParameter::kNone, 0.f};
constexpr PostOpParameter kRequired = {PostOpParameter::kRequired, 0.f};
constexpr PostOpParameter Default(float value) { return {PostOpParameter::kOptional, value}; }

// In the order of EltwiseAlg.
constexpr EltwiseWords kEltwise[] = {{"relu", "", Default(0.f), kNone},
                                     {"leaky_relu", "", kRequired, kNone},
                                     {"relu6", "", kNone, kNone},
                                     {"bounded_relu", "", kRequired, kNone},
                                     {"clip", "", kRequired, kRequired},
                                     {"elu", "", Default(1.f), kNone},
                                     {"linear", "", Default(1.f), Default(0.f)},
                                     {"swish", "silu", Default(1.f), kNone},
                                     {"hard_sigmoid", "", Default(1.f / 6), Default(0.5f)},
                                     {"hard_swish", "", Default(1.f / 6), Default(0.5f)},
                                     {"pow", "", Default(1.f), kRequired},
#define BD_ROW(function, word, alias, op, zero) {word, alias, kNone, kNone},
                                     BD_ELTWISE_FUNCTIONS(BD_ROW)
#undef BD_ROW
};
constexpr const char* kBinary[] = {
#define BD_ROW(name, function, word, op, zero) word,
    BD_BINARY_FUNCTIONS(BD_ROW)
#undef BD_ROW
};
constexpr const char* kShapes[] = {"scalar", "channel", "sample_channel", "tensor"};

template <typename Word, size_t n, typename F>
std::string Join(const Word (&words)[n], F name) {
  std::string text;
  for (const Word& word : words) text += StrCat((text.empty() ? "" : ", "), name(word));
  return text;
}

template <typename Word, size_t n, typename Enum, typename F>
bool Find(const Word (&words)[n], Enum* value, F matches) {
  for (size_t i = 0; i < n; ++i) {
    if (!matches(words[i])) continue;
    *value = static_cast<Enum>(i);
    return true;
  }
  return false;
}

const char* Itself(const char* name) { return name; }

}  // namespace

const EltwiseWords& WordsOf(EltwiseAlg alg) { return kEltwise[static_cast<int>(alg)]; }
const char* NameOf(BinaryAlg alg) { return kBinary[static_cast<int>(alg)]; }
const char* NameOf(OperandShape shape) { return kShapes[static_cast<int>(shape)]; }

bool FindEltwise(std::string_view name, EltwiseAlg* alg) {
  return Find(kEltwise, alg, [=](const EltwiseWords& w) {
    return name == w.name || (w.alias[0] != '\0' && name == w.alias);
  });
}
bool FindBinary(std::string_view name, BinaryAlg* alg) {
  return Find(kBinary, alg, [=](const char* word) { return name == word; });
}
bool FindShape(std::string_view name, OperandShape* shape) {
  return Find(kShapes, shape, [=](const char* word) { return name == word; });
}

std::string EltwiseNames() {
  return Join(kEltwise, [](const EltwiseWords& w) { return w.name; });
}
std::string BinaryNames() { return Join(kBinary, Itself); }
std::string ShapeNames() { return Join(kShapes, Itself); }

const char* PostOpFunctions() {
#define BD_ROW(function, word, alias, op, zero) "eltwise," word "," op "," alias "\n"
#define BD_BINARY_ROW(name, function, word, op, zero) "binary," word "," op ",\n"
  return BD_ELTWISE_FUNCTIONS(BD_ROW) BD_BINARY_FUNCTIONS(BD_BINARY_ROW);
#undef BD_BINARY_ROW
#undef BD_ROW
}

}  // namespace bd
