#include "benchmarks/cc/shapes.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace bd::layers {
namespace {

// Returns what is wrong with the row, or an empty string.
std::string Parse(const std::string& line, Shape* s) {
  std::istringstream in(line);
  in >> s->name;
  for (int64_t* column :
       {&s->n, &s->ic, &s->ih, &s->iw, &s->oc, &s->kh, &s->kw, &s->sh, &s->sw, &s->pad_top,
        &s->pad_left, &s->pad_bottom, &s->pad_right, &s->groups, &s->count}) {
    in >> *column;
  }
  std::string rest;
  if (!in || in >> rest) return "expected a name and 15 numbers";
  if (std::min({s->n, s->ic, s->ih, s->iw, s->oc, s->kh, s->kw, s->sh, s->sw, s->groups,
                s->count}) < 1) {
    return "sizes, strides, groups and count are positive";
  }
  if (std::min({s->pad_top, s->pad_left, s->pad_bottom, s->pad_right}) < 0) {
    return "padding is not negative";
  }
  if (s->ic % s->groups != 0 || s->oc % s->groups != 0) return "groups divides ic and oc";
  if (s->ih + s->pad_top + s->pad_bottom < s->kh || s->iw + s->pad_left + s->pad_right < s->kw) {
    return "the kernel fits into the padded source";
  }
  return "";
}

}  // namespace

std::string Shape::ToString() const {
  std::ostringstream out;
  if (n > 1) out << n << "x";
  out << ic << "x" << ih << "x" << iw << " > " << oc << "x" << oh() << "x" << ow() << " " << kh
      << "x" << kw;
  if (sh > 1 || sw > 1) out << "/" << sh;
  if (sh != sw) out << "," << sw;
  if (groups > 1) out << " g" << groups;
  return out.str();
}

std::vector<Shape> ReadShapes(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::vector<Shape> shapes;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    Shape shape;
    if (const std::string error = Parse(line, &shape); !error.empty()) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error);
    }
    shapes.push_back(shape);
  }
  if (shapes.empty()) throw std::runtime_error(path + ": has no shapes");
  return shapes;
}

}  // namespace bd::layers
