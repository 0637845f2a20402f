#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lictor::bench {

/// A picture of lines over a logarithmic horizontal axis, both axes labelled; the vertical one
/// begins at zero.
struct Chart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  ///< in rising order of the first
  };

  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Line> lines{};

  [[nodiscard]] std::string svg() const;
};

}  // namespace lictor::bench
