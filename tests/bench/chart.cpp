#include "chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace lictor::bench {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 80, kRight = 30, kTop = 60, kBottom = 110;
// Told apart without colours, too: Okabe and Ito's palette, and a mark of its own for each.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#000000"};

std::string text(double x, double y, const char* anchor, const std::string& content, int size = 13,
                 const char* more = "") {
  std::array<char, 160> head{};
  std::snprintf(head.data(), head.size(),
                R"(<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" %s>)", x, y, anchor,
                size, more);
  std::string escaped;
  for (const char c : content) {
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  }
  return head.data() + escaped + "</text>\n";
}

std::string stroke(double x1, double y1, double x2, double y2, const char* colour) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(),
                R"(<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>)", x1, y1, x2, y2,
                colour);
  return line.data() + std::string{"\n"};
}

// 12345 as "12,345".
std::string grouped(double value) {
  std::string digits = std::to_string(std::llround(value));
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string mark(std::size_t i, double x, double y) {
  constexpr std::array kShapes{
      R"x(<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>)x",
      R"x(<path transform="translate(%.1f %.1f)" d="M-5-5h10v10h-10z" fill="%s"/>)x",
      R"x(<path transform="translate(%.1f %.1f)" d="M0-7l6 11h-12z" fill="%s"/>)x",
      R"x(<path transform="translate(%.1f %.1f)" d="M0-7l6 7l-6 7l-6-7z" fill="%s"/>)x"};
  std::array<char, 160> shape{};
  std::snprintf(shape.data(), shape.size(), kShapes[i], x, y, kColours[i]);
  return shape.data() + std::string{"\n"};
}

// Where points lie in the picture.
class Scale {
 public:
  explicit Scale(const std::vector<Chart::Line>& lines) {
    for (const auto& line : lines) {
      for (const auto& [x, y] : line.points) {
        low_ = std::min(low_, std::log10(x));
        high_ = std::max(high_, std::log10(x));
        top_ = std::max(top_, y);
      }
    }
    if (high_ <= low_) high_ = low_ + 1;
    const double rough = top_ * 1.1 / 5;  // about five steps, of 1, 2 or 5
    const double power = std::pow(10, std::floor(std::log10(rough)));
    step_ = power * (rough / power <= 2 ? 2 : rough / power <= 5 ? 5 : 10);
    top_ = step_ * std::ceil(top_ * 1.05 / step_);
  }
  [[nodiscard]] double x(double value) const {
    return kLeft + 40 +
           (std::log10(value) - low_) / (high_ - low_) * (kWidth - kLeft - kRight - 80);
  }
  [[nodiscard]] double y(double value) const {
    return kHeight - kBottom - value / top_ * (kHeight - kTop - kBottom);
  }
  [[nodiscard]] double step() const { return step_; }
  [[nodiscard]] double top() const { return top_; }

 private:
  double low_ = 300, high_ = -300, top_ = 1, step_ = 1;
};

std::string axes(const Chart& chart, const Scale& scale) {
  std::string out;
  for (double value = 0; value <= scale.top() + scale.step() / 2; value += scale.step()) {
    const double y = scale.y(value);
    out += stroke(kLeft, y, kWidth - kRight, y, value == 0 ? "#000" : "#ddd");
    out += text(kLeft - 8, y + 4, "end", grouped(value));
  }
  for (const auto& [x, y] : chart.lines.front().points) {
    out += stroke(scale.x(x), scale.y(0), scale.x(x), scale.y(0) + 6, "#000");
    out += text(scale.x(x), scale.y(0) + 22, "middle", grouped(x));
  }
  out += stroke(kLeft, kTop, kLeft, scale.y(0), "#000");
  out += text((kLeft + kWidth - kRight) / 2, scale.y(0) + 46, "middle", chart.x_label, 14);
  out += text(0, 0, "middle", chart.y_label, 14, R"x(transform="translate(18 195) rotate(-90)")x");
  return out + text(kWidth / 2, 30, "middle", chart.title, 17, R"(font-weight="bold")");
}

}  // namespace

std::string Chart::svg() const {
  std::array<char, 200> head{};
  std::snprintf(head.data(), head.size(),
                R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" )"
                R"(height="%.0f" font-family="sans-serif">)",
                kWidth, kHeight, kWidth, kHeight);
  std::string out = head.data();
  out += "\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  if (lines.empty()) return out + "</svg>\n";
  const Scale scale{lines};
  out += axes(*this, scale);
  const std::size_t count = std::min(lines.size(), kColours.size());
  double legend = kLeft / 2;
  for (std::size_t i = 0; i < count; ++i) {
    std::string path;
    for (const auto& [x, y] : lines[i].points) {
      path += std::to_string(scale.x(x)) + "," + std::to_string(scale.y(y)) + " ";
    }
    out += "<polyline points=\"" + path + "\" fill=\"none\" stroke-width=\"2\" stroke=\"" +
           kColours[i] + "\"/>\n";
    for (std::size_t at = 0; at < lines[i].points.size(); ++at) {
      const auto& [x, y] = lines[i].points[at];
      out += mark(i, scale.x(x), scale.y(y));
      // Its figure stands above it, or below where another line is in the way.
      const bool below = std::any_of(lines.begin(), lines.end(), [&](const Line& other) {
        if (at >= other.points.size()) return false;
        const double above = scale.y(y) - scale.y(other.points[at].second);
        return above > 0 && above < 40;
      });
      out += text(scale.x(x), scale.y(y) + (below ? 21 : -11), "middle", grouped(y), 12);
    }
    out += mark(i, legend + 6, kHeight - 24);
    out += text(legend + 18, kHeight - 19, "start", lines[i].name);
    legend += 34 + 6.5 * static_cast<double>(lines[i].name.size());
  }
  return out + "</svg>\n";
}

}  // namespace lictor::bench
