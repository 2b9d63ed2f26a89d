// Parses the part of Python's literal syntax that NumPy writes, by recursive descent.
#include <charconv>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/npy_header.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm {
namespace {

constexpr std::string_view kSpace = " \t\n";

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<NpyHeader> parse() {
    FVM_TRY(expect('{'));
    while (!accept('}')) {
      FVM_TRY(item());
      if (accept(',')) continue;
      FVM_TRY(expect('}'));
      break;
    }
    skip_space();
    if (at_ != text_.size()) return wrong("text after the closing brace");
    for (const auto& [seen, name] : {std::pair{seen_descr_, "descr"}, std::pair{seen_order_, "fortran_order"},
                                     std::pair{seen_shape_, "shape"}}) {
      if (!seen) return refused("NPY header", "has no key '{}'", name);
    }
    return std::move(header_);
  }

 private:
  Error wrong(const std::string& what) const {
    return refused(formatted("NPY header, character {}", at_ + 1), what);
  }
  void skip_space() {
    while (at_ < text_.size() && kSpace.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Result<void> expect(char c) {
    if (accept(c)) return {};
    return wrong(formatted("expected '{}', found {}", c, rest()));
  }
  std::string rest() const { return at_ == text_.size() ? "the end" : in_quotes(text_.substr(at_), 20); }

  Result<void> item() {
    FVM_ASSIGN(const std::string key, string());
    FVM_TRY(expect(':'));
    bool* const seen = key == "descr"           ? &seen_descr_
                       : key == "fortran_order" ? &seen_order_
                       : key == "shape"         ? &seen_shape_
                                                : nullptr;
    if (seen == nullptr) return wrong("unknown key " + in_quotes(key));
    if (std::exchange(*seen, true)) return wrong(formatted("key {} twice", in_quotes(key)));
    if (seen == &seen_descr_) return dtype();
    return seen == &seen_order_ ? order() : shape();
  }

  Result<std::string> string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return wrong("expected a string, found " + rest());
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return wrong("a string never ends");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    if (value.find('\\') != std::string::npos) return wrong("a backslash in a string");
    return value;
  }

  Result<void> dtype() {
    if (!accept('[')) {
      FVM_ASSIGN(std::string type, string());
      header_.fields.push_back({"", std::move(type)});
      return {};
    }
    while (!accept(']')) {
      FVM_TRY(expect('('));
      FVM_ASSIGN(std::string name, string());
      FVM_TRY(expect(','));
      FVM_ASSIGN(std::string type, string());
      FVM_TRY(expect(')'));
      header_.fields.push_back({std::move(name), std::move(type)});
      if (header_.fields.size() > 64) return wrong("more than 64 fields");
      if (accept(',')) continue;
      FVM_TRY(expect(']'));
      break;
    }
    return {};
  }

  Result<void> order() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      header_.fortran_order = value;
      return {};
    }
    return wrong("expected True or False, found " + rest());
  }

  Result<void> shape() {
    FVM_TRY(expect('('));
    while (!accept(')')) {
      skip_space();
      const char* const begin = text_.data() + at_;
      std::uint64_t size = 0;
      const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (code == std::errc::result_out_of_range) return wrong("a dimension beyond 64 bits: " + rest());
      if (code != std::errc()) return wrong("expected a dimension, found " + rest());
      at_ += static_cast<std::size_t>(end - begin);
      accept('L');  // Python 2 wrote an L after long integers
      header_.shape.push_back(size);
      if (header_.shape.size() > 32) return wrong("more than 32 dimensions");
      if (accept(',')) continue;
      FVM_TRY(expect(')'));
      break;
    }
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool seen_descr_ = false;
  bool seen_order_ = false;
  bool seen_shape_ = false;
};

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text) { return HeaderParser(text).parse(); }

}  // namespace forestvm
