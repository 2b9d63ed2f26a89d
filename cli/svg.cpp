// See svg.hpp.
#include "cli/svg.hpp"

#include <algorithm>
#include <cmath>

#include <forestvm/internal/formatted.hpp>

#include "cli/html.hpp"
#include "cli/printed.hpp"

namespace forestvm::cli {
namespace {

/// Returns the number of bytes of the UTF-8 character at the start of a text; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t count = first >= 0xf5 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (count == 0 || count > text.size()) return 0;
  for (std::size_t i = 1; i < count; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : count;
}

}  // namespace

std::string svg_drawing(double height, std::string_view title, std::string_view description,
                        std::string_view content) {
  std::string svg =
      printed("<svg class=\"chart\" role=\"img\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
              kDrawingWidth, height, kDrawingWidth, height);
  svg += formatted("<title>{}</title>\n", svg_whole(title));
  if (!description.empty()) svg += formatted("<desc>{}</desc>\n", svg_whole(description));
  svg += content;
  return svg + "</svg>\n";
}

std::string svg_file(std::string_view drawing) {
  const std::size_t end = drawing.find('>') + 1;
  std::string file = "<svg xmlns=\"http://www.w3.org/2000/svg\"";
  file += drawing.substr(4, end - 4);
  file += formatted("\n<style>{}</style>", chart_style());
  file += drawing.substr(end);
  return file;
}

std::string svg_label(std::string_view text, std::size_t most) {
  std::vector<std::string_view> characters;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = character_bytes(text.substr(i));
    characters.push_back(bytes == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(i, bytes));
    i += std::max<std::size_t>(bytes, 1);
  }
  // Characters of three bytes and more, such as those of Chinese, are about as wide as two others.
  const auto width = [&](std::size_t i) -> std::size_t { return characters[i].size() > 2 ? 2 : 1; };
  std::size_t all = 0;
  for (std::size_t i = 0; i < characters.size(); ++i) all += width(i);
  std::string out;
  if (all <= most) {
    for (const std::string_view character : characters) out += character;
    return html_text(out);
  }
  for (std::size_t i = 0, used = 1; i < characters.size() && used + width(i) <= most; ++i) {
    out += characters[i];
    used += width(i);
  }
  return html_text(out + "…");
}

std::string svg_whole(std::string_view text) { return svg_label(text, 2 * text.size()); }

std::string svg_text(double x, double y, std::string_view anchor, std::string_view more,
                     std::string_view escaped) {
  std::string text = formatted("{}{}\"", printed("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"", x, y), anchor);
  if (!more.empty()) text += " " + std::string(more);
  return formatted("{}>{}</text>\n", text, escaped);
}

LinearAxis::LinearAxis(double low, double high, double from, double to, unsigned count)
    : low_(low), high_(high), from_(from), to_(to) {
  if (!(high_ > low_)) {
    const double size = std::max(std::abs(low_), 1e-6);
    low_ -= size / 2;
    high_ += size / 2;
  }
  const double rough = (high_ - low_) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double times = rough / power;
  step_ = power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
  const double first = std::ceil(low_ / step_);
  for (unsigned i = 0; i <= 2 * count;
       ++i) {  // The number of turns is bounded, because a step may be too small to change a huge number.
    const double tick = (first + i) * step_ + 0.0;
    if (tick >= low_ && tick <= high_) ticks_.push_back(tick);
  }
}

double LinearAxis::at(double number) const {
  return from_ + (to_ - from_) * (std::clamp(number, low_, high_) - low_) / (high_ - low_);
}

std::string LinearAxis::text(double tick) const {
  const double largest = std::max(std::abs(low_), std::abs(high_));
  if (largest >= 1e6 || largest < 1e-4) return printed("%.3g", tick);
  const double decimals = std::max(0.0, -std::floor(std::log10(step_) + 1e-9));
  return printed("%.*f", static_cast<int>(decimals), tick);
}

std::string LinearAxis::below(double top, double bottom) const {
  std::string svg;
  for (const double tick : ticks_) {
    svg += printed("<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>", at(tick), top, bottom);
    svg += svg_text(at(tick), bottom + 14, "middle", "class=\"faint\"", text(tick));
  }
  return svg;
}

std::string LinearAxis::beside(double left, double right) const {
  std::string svg;
  for (const double tick : ticks_) {
    svg += printed("<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", left, at(tick), right);
    svg += svg_text(left - 6, at(tick) + 4, "end", "class=\"faint\"", text(tick));
  }
  return svg;
}

}  // namespace forestvm::cli
