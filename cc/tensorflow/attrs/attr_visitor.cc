#include "cc/tensorflow/attrs/attr_visitor.h"

#include <algorithm>
#include <climits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cc/base/size.h"

namespace bd {
namespace {

absl::string_view NameOf(absl::string_view spec) { return spec.substr(0, spec.find(':')); }

// The 1 of "channels: int >= 1 = 2"; lists are for TensorFlow to check.
int64_t LeastOf(absl::string_view spec) {
  const size_t at = spec.find(">=");
  int64_t least;
  if (at == absl::string_view::npos) return INT64_MIN;
  absl::string_view rest = spec.substr(at + 2);
  rest = rest.substr(0, rest.find('='));
  return absl::SimpleAtoi(rest, &least) ? least : INT64_MIN;
}

constexpr struct {
  tensorflow::DataType tensorflow;
  DataType ours;
} kDataTypes[] = {
    {tensorflow::DT_FLOAT, DataType::f32}, {tensorflow::DT_BFLOAT16, DataType::bf16},
    {tensorflow::DT_HALF, DataType::f16},  {tensorflow::DT_INT32, DataType::s32},
    {tensorflow::DT_INT8, DataType::s8},   {tensorflow::DT_UINT8, DataType::u8},
};

// So that shape functions add and multiply a few of them without a thought.
constexpr bool Fits(int64_t value) { return value >= -Size::kMost && value <= Size::kMost; }

// An op's definition allows no others.
DataType OursOf(int type) {
  for (const auto& row : kDataTypes) {
    if (row.tensorflow == type) return row.ours;
  }
  return DataType::f32;
}

}  // namespace

const tensorflow::AttrValue* AttrVisitor::Find(absl::string_view spec) {
  if (definition_ != nullptr) {
    definition_->Attr(std::string(spec));
    return nullptr;
  }
  if (!status_.ok()) return nullptr;
  const tensorflow::AttrValue* const value = (*node_)(NameOf(spec));
  if (value == nullptr) status_ = Invalid("the node has no attribute ", NameOf(spec));
  return value;
}

void AttrVisitor::operator()(absl::string_view spec, int64_t* value) {
  const tensorflow::AttrValue* const attr = Find(spec);
  if (attr == nullptr) return;
  *value = attr->i();
  const int64_t least = LeastOf(spec);
  if (*value < least) {
    status_ = Invalid(NameOf(spec), " must be at least ", least, ", got ", *value);
  } else if (!Fits(*value)) {
    status_ = Invalid(NameOf(spec), " must be within 2^47, got ", *value);
  }
}

void AttrVisitor::operator()(absl::string_view spec, int* value) {
  int64_t wide = *value;
  (*this)(spec, &wide);
  if (wide < INT_MIN || wide > INT_MAX) {
    if (status_.ok()) status_ = Invalid(NameOf(spec), " must fit 32 bits, got ", wide);
    return;
  }
  *value = static_cast<int>(wide);
}

void AttrVisitor::operator()(absl::string_view spec, bool* value) {
  if (const auto* const attr = Find(spec)) *value = attr->b();
}

void AttrVisitor::operator()(absl::string_view spec, float* value) {
  if (const auto* const attr = Find(spec)) *value = attr->f();
}

void AttrVisitor::operator()(absl::string_view spec, std::string* value) {
  if (const auto* const attr = Find(spec)) *value = attr->s();
}

void AttrVisitor::operator()(absl::string_view spec, std::vector<int64_t>* value) {
  const auto* const attr = Find(spec);
  if (attr == nullptr) return;
  value->assign(attr->list().i().begin(), attr->list().i().end());
  const auto wrong = std::find_if_not(value->begin(), value->end(), Fits);
  if (wrong != value->end()) {
    status_ = Invalid(NameOf(spec), " must be within 2^47, got ", *wrong);
  }
}

void AttrVisitor::operator()(absl::string_view spec, std::vector<float>* value) {
  const auto* const attr = Find(spec);
  if (attr != nullptr) value->assign(attr->list().f().begin(), attr->list().f().end());
}

void AttrVisitor::operator()(absl::string_view spec, tensorflow::DataType* value) {
  if (const auto* const attr = Find(spec)) *value = attr->type();
}

void AttrVisitor::operator()(absl::string_view spec, DataType* value) {
  if (const auto* const attr = Find(spec)) *value = OursOf(attr->type());
}

void AttrVisitor::operator()(absl::string_view spec, std::vector<DataType>* value) {
  const auto* const attr = Find(spec);
  if (attr == nullptr) return;
  value->clear();
  for (const int type : attr->list().type()) value->push_back(OursOf(type));
}

void AttrVisitor::Choice(const char* name, Layout* value, std::initializer_list<Layout> choices,
                         const char* usual) {
  std::vector<const char*> names;
  for (Layout layout : choices) names.push_back(LayoutName(layout));
  const int chosen = Choose(name, names, usual);
  if (chosen >= 0) *value = *(choices.begin() + chosen);
}

int AttrVisitor::Choose(const char* name, const std::vector<const char*>& names,
                        const char* usual) {
  const std::string all = absl::StrCat("'", absl::StrJoin(names, "', '"), "'");
  const auto* const attr = Find(absl::StrCat(
      name, ": {", all, "}", usual == nullptr ? "" : absl::StrCat(" = '", usual, "'")));
  if (attr == nullptr) return -1;
  for (size_t i = 0; i < names.size(); ++i) {
    if (attr->s() == names[i]) return static_cast<int>(i);
  }
  status_ = Invalid(name, " must be one of ", all, "; got \"", attr->s(), "\"");
  return -1;
}

}  // namespace bd
