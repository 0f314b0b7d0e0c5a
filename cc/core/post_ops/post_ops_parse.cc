// PostOpChain::Parse.
//
//   chain    = [ entry { ";" entry } ]
//   entry    = "eltwise(" name { "," ("alpha" | "beta" | "scale") "=" number } ")"
//            | "sum(" [ operand ] [ "," ] [ "scale" "=" number ] ")"
//            | "binary(" name "," shape "," operand ")"
//   operand  = "#" digits [ "@" digits ]
//   number   = [ "-" ] decimal, finite in float
//
// Spaces around any of these are skipped.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/str_cat.h"
#include "cc/core/post_ops/post_op_names.h"
#include "cc/core/post_ops/post_ops.h"

namespace bd {
namespace {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> Split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = s.find(separator)) != s.npos; s.remove_prefix(end + 1)) {
    parts.push_back(Trim(s.substr(0, end)));
  }
  parts.push_back(Trim(s));
  return parts;
}

std::string Quote(std::string_view s) { return StrCat("\"", s, "\""); }

template <typename T>
bool ParseWhole(std::string_view s, T* value) {
  const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), *value);
  return code == std::errc() && end == s.data() + s.size();
}

// The parsers of the parts return what is wrong, or an empty string.

std::string ParseNumber(std::string_view key, std::string_view text, float* value) {
  if (ParseWhole(text, value) && std::isfinite(*value)) return "";
  return StrCat(key, " = ", Quote(text), " is no finite float; write one as 0.25 or 1e-3");
}

std::string ParseOperand(std::string_view text, OperandRef* ref) {
  const size_t at = text.find('@');
  const std::string_view input = text.substr(0, at);
  const bool good = input.size() > 1 && input[0] == '#' && input[1] != '-' &&
                    ParseWhole(input.substr(1), &ref->input) &&
                    (at == text.npos || (text.substr(at + 1, 1) != "-" &&
                                         ParseWhole(text.substr(at + 1), &ref->offset)));
  if (good) return "";
  return Quote(text) + " is no operand; write the args input as #0, or as #0@128 from element 128";
}

// A number that an entry takes.
struct Target {
  std::string_view key;
  float* value;
  bool required;
  bool is_set = false;
};

// Arguments `key=number` from args[first] on, each key at most once.
std::string ParseNumbers(const std::vector<std::string_view>& args, size_t first,
                         std::string_view owner, std::vector<Target> targets) {
  for (size_t i = first; i < args.size(); ++i) {
    const size_t equals = args[i].find('=');
    const std::string_view key = Trim(args[i].substr(0, equals));
    const auto target = std::find_if(targets.begin(), targets.end(),
                                     [=](const Target& t) { return t.key == key && !t.is_set; });
    if (target == targets.end() || equals == args[i].npos) {
      std::string taken;
      for (const Target& t : targets) {
        taken += StrCat((taken.empty() ? "" : ", "), t.key, "=...");
      }
      return StrCat(owner, " does not take ", Quote(args[i]), "; it takes each of ", taken,
                    " once");
    }
    const std::string error = ParseNumber(key, Trim(args[i].substr(equals + 1)), target->value);
    if (!error.empty()) return error;
    target->is_set = true;
  }
  for (const Target& t : targets) {
    if (t.required && !t.is_set) return StrCat(owner, " needs ", t.key, "=...");
  }
  return "";
}

std::string ParseEltwise(const std::vector<std::string_view>& args, PostOp* op) {
  if (!FindEltwise(args[0], &op->eltwise)) {
    return "unknown algorithm " + Quote(args[0]) + "; known are " + EltwiseNames();
  }
  *op = EltwisePostOp(op->eltwise);
  const EltwiseWords& words = WordsOf(op->eltwise);
  std::vector<Target> targets;
  const auto add = [&](std::string_view key, const PostOpParameter& parameter, float* value) {
    if (parameter.use == PostOpParameter::kNone) return;
    targets.push_back({key, value, parameter.use == PostOpParameter::kRequired});
  };
  add("alpha", words.alpha, &op->alpha);
  add("beta", words.beta, &op->beta);
  targets.push_back({"scale", &op->scale, false});
  return ParseNumbers(args, 1, words.name, targets);
}

std::string ParseSum(const std::vector<std::string_view>& args, PostOp* op) {
  op->kind = PostOpKind::kSum;
  if (args.size() == 1 && args[0].empty()) return "";
  const bool has_operand = args[0].substr(0, 1) == "#";
  if (has_operand) {
    if (std::string error = ParseOperand(args[0], &op->operand); !error.empty()) return error;
  }
  return ParseNumbers(args, has_operand, "sum", {{"scale", &op->scale, false}});
}

std::string ParseBinary(const std::vector<std::string_view>& args, PostOp* op) {
  op->kind = PostOpKind::kBinary;
  if (!FindBinary(args[0], &op->binary)) {
    return "unknown algorithm " + Quote(args[0]) + "; known are " + BinaryNames();
  }
  if (args.size() != 3) return "binary takes three arguments, as in binary(add,channel,#0)";
  if (!FindShape(args[1], &op->shape)) {
    return "unknown operand shape " + Quote(args[1]) + "; known are " + ShapeNames();
  }
  return ParseOperand(args[2], &op->operand);
}

std::string ParseEntry(std::string_view text, PostOp* op) {
  const size_t open = text.find('('), close = text.find(')');
  if (open == text.npos || close == text.npos || close < open) {
    return "an entry is eltwise(...), sum(...) or binary(...)";
  }
  if (close + 1 != text.size()) {
    return "text after the entry: " + Quote(text.substr(close + 1)) + "; join entries with ;";
  }
  const std::string_view kind = Trim(text.substr(0, open));
  const std::vector<std::string_view> args = Split(text.substr(open + 1, close - open - 1), ',');
  if (kind == "eltwise") return ParseEltwise(args, op);
  if (kind == "sum") return ParseSum(args, op);
  if (kind == "binary") return ParseBinary(args, op);
  return "unknown kind " + Quote(kind) + "; known are eltwise, sum, binary";
}

}  // namespace

bool PostOpChain::Parse(const std::string& text, PostOpChain* chain, std::string* error) {
  PostOpChain parsed;
  if (!Trim(text).empty()) {
    for (std::string_view entry : Split(text, ';')) {
      PostOp op;
      std::string wrong = ParseEntry(entry, &op);
      if (wrong.empty()) wrong = parsed.Complaint(op);
      if (!wrong.empty()) {
        *error = StrCat("entry ", parsed.len(), " ", Quote(entry), ": ", wrong);
        return false;
      }
      parsed.entries_.push_back(op);
    }
  }
  *chain = std::move(parsed);
  return true;
}

}  // namespace bd
