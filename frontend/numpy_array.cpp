// See numpy_array.hpp.
#include "frontend/numpy_array.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/npy_header.hpp>
#include <forestvm/internal/printable.hpp>

namespace forestvm::frontend {
namespace {

constexpr std::uint32_t kMaxItemSize = 1u << 20;

/// Appends a field to the array's items.
Result<void> add_field(const NpyHeader::Field& given, NumpyArray& array) {
  const std::string& type = given.type;
  const Error bad =
      refused(formatted("its items have the type {}, which cannot be read", in_quotes(type, 20)));
  if (type.size() < 3 || type[0] == '>') return bad;
  NumpyField field{given.name, type[1], 0, array.item_size};
  const auto [end, code] = std::from_chars(type.data() + 2, type.data() + type.size(), field.size);
  if (code != std::errc() || end != type.data() + type.size()) return bad;
  if (field.size == 0 || field.size > kMaxItemSize / 4) return bad;
  const bool word = field.size == 1 || field.size == 2 || field.size == 4 || field.size == 8;
  switch (field.kind) {
    case 'f':
      if (field.size != 4 && field.size != 8) return bad;
      break;
    case 'i':
    case 'u':
      if (!word) return bad;
      break;
    case 'b':
      if (field.size != 1) return bad;
      break;
    case 'U':
      field.size *= 4;
      break;
    case 'V':
      break;
    default:
      return bad;
  }
  array.item_size += field.size;
  if (array.item_size > kMaxItemSize) return bad;
  array.fields.push_back(std::move(field));
  return {};
}

/// Sets the fields, the shape and the number of items that a header gives. Errors name no place.
Result<void> take_header(std::string_view text, NumpyArray& array) {
  auto header = parse_npy_header(text);
  if (!header.ok()) return refused(header.error().text());
  for (const NpyHeader::Field& field : header->fields) FVM_TRY(add_field(field, array));
  array.shape = std::move(header->shape);
  array.count = 1;
  for (const std::uint64_t extent : array.shape)
    if (__builtin_mul_overflow(array.count, extent, &array.count) || array.shape.size() > 8)
      return refused("its shape is too large");
  const auto long_axes =
      std::count_if(array.shape.begin(), array.shape.end(), [](std::uint64_t n) { return n > 1; });
  if (header->fortran_order && long_axes > 1) return refused("it is in Fortran order");
  return {};
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    put(0xf0 | (code >> 18 & 7));
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

}  // namespace

template <class Number>
Number NumpyColumn::load(std::size_t i) const {
  Number value;
  std::memcpy(&value, first_ + i * stride_, sizeof value);
  return value;
}

std::int64_t NumpyColumn::integer(std::size_t i) const {
  const bool plain = kind_ != 'i';
  switch (size_) {
    case 1:
      return plain ? load<std::uint8_t>(i) : load<std::int8_t>(i);
    case 2:
      return plain ? load<std::uint16_t>(i) : load<std::int16_t>(i);
    case 4:
      return plain ? std::int64_t{load<std::uint32_t>(i)} : load<std::int32_t>(i);
    default:
      return plain ? static_cast<std::int64_t>(std::min<std::uint64_t>(
                         load<std::uint64_t>(i), std::numeric_limits<std::int64_t>::max()))
                   : load<std::int64_t>(i);
  }
}

double NumpyColumn::real(std::size_t i) const {
  if (kind_ != 'f') return static_cast<double>(integer(i));
  return size_ == 4 ? static_cast<double>(load<float>(i)) : load<double>(i);
}

std::string NumpyColumn::text(std::size_t i) const {
  switch (kind_) {
    case 'f':
      return python_text(real(i));
    case 'b':
      return integer(i) != 0 ? "True" : "False";
    case 'U':
      break;
    default:
      return std::to_string(integer(i));
  }
  std::string out;
  for (std::uint32_t at = 0; at < size_; at += 4) {
    std::uint32_t code = 0;
    std::memcpy(&code, first_ + i * stride_ + at, sizeof code);
    if (code == 0) break;
    append_utf8(code, out);
  }
  return out;
}

bool NumpyArray::has(std::string_view field) const {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const NumpyField& known) { return known.name == field; });
}

Result<NumpyColumn> NumpyArray::column(std::string_view field, Wanted wanted) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const NumpyField& known) {
    return known.name == field && known.kind != 'V';
  });
  if (found == fields.end())
    return refused(field.empty() ? "expected an array of numbers or texts"
                                 : "the items have no field " + in_quotes(field));
  const char kind = found->kind;
  if ((wanted == Wanted::Integers && (kind == 'f' || kind == 'U')) ||
      (wanted == Wanted::Numbers && kind == 'U'))
    return refused(formatted("{}{}, found NumPy's kind '{}'",
                             wanted == Wanted::Integers ? "expected integers" : "expected numbers",
                             field.empty() ? "" : " in the field " + in_quotes(field), kind));
  return NumpyColumn(items.data() + found->offset, item_size, count, kind, found->size);
}

Result<NumpyArray> read_npy(std::vector<std::byte> file) {
  constexpr std::string_view magic = "\x93NUMPY";
  constexpr std::size_t preamble = 12;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(magic) || text.size() < preamble) return refused("not a NumPy array");
  const auto version = std::to_integer<unsigned>(file[6]);
  if (version < 1 || version > 3) return refused(formatted("the .npy format {} is not known", version));
  const std::size_t begin = version == 1 ? 10 : 12;
  std::uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, version == 1 ? 2 : 4);
  if (text.size() - begin < length) return refused("the array's header is cut short");
  NumpyArray array;
  if (const auto taken = take_header(text.substr(begin, length), array); !taken.ok())
    return refused("a NumPy array that cannot be read: " + taken.error().message);
  std::size_t size = 0;
  const std::size_t there = text.size() - begin - length;
  if (__builtin_mul_overflow(array.count, std::size_t{array.item_size}, &size) || size != there)
    return refused(formatted("the array declares {} items of {} bytes, but {} bytes follow", array.count,
                             array.item_size, there));
  array.file = std::move(file);
  array.items = std::span(array.file).subspan(begin + length);
  return array;
}

std::string python_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer{};
  const double size = std::abs(x);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, code] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, format);
  std::string text(buffer.data(), end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace forestvm::frontend
