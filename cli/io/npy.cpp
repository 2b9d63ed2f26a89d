// See npy.hpp.
#include "cli/io/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "cli/io/npy_header.hpp"
#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "byte orders below are named for such a host");

constexpr std::size_t kLongestHeader = std::size_t{1} << 20;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint64_t kMostValues =
    std::numeric_limits<std::uint64_t>::max() / 16;  // in bytes: no overflow

/// IEEE 754 binary16, exact.
float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 31U;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U));
}

struct Half {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t byte;
};

float to_float(Half value) { return half_to_float(value.bits); }
float to_float(Bool value) { return value.byte != 0 ? 1.0F : 0.0F; }
template <class T>
float to_float(T value) {
  return static_cast<float>(value);  // to nearest; beyond the range ±inf, as NumPy's astype
}

bool is_exact(Half, float) { return true; }
bool is_exact(Bool, float) { return true; }
template <class T>
bool is_exact(T value, float read) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value) || static_cast<double>(value) == static_cast<double>(read);
  } else {
    // The largest integers are rounded to the power of two above all of them, which is none of them.
    return read < std::ldexp(1.0F, std::numeric_limits<T>::digits) && static_cast<T>(read) == value;
  }
}

template <class T, bool Swapped>
T value_at(const char* from) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), from, sizeof(T));
  if constexpr (Swapped) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

/// Turns `count` file values at `from` into floats; false if one of them had to be rounded.
template <class T, bool Swapped>
bool convert(const char* from, std::size_t count, float* to) {
  bool exact = true;
  for (std::size_t i = 0; i < count; ++i) {
    const T value = value_at<T, Swapped>(from + i * sizeof(T));
    to[i] = to_float(value);
    exact = exact && is_exact(value, to[i]);
  }
  return exact;
}

/// A file value as text, if it has to be rounded.
template <class T, bool Swapped>
std::optional<std::string> rounded(const char* from) {
  const T value = value_at<T, Swapped>(from);
  if (is_exact(value, to_float(value))) return std::nullopt;
  if constexpr (std::is_arithmetic_v<T>) {
    std::array<char, 32> text;
    return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
  } else {
    return std::nullopt;
  }
}

/// How values of a type, in one byte order, are read.
struct Conversion {
  bool (*convert)(const char* from, std::size_t count, float* to) = nullptr;
  std::optional<std::string> (*rounded)(const char* from) = nullptr;
};

struct Dtype {
  std::string_view name;  // without the byte order
  std::size_t size;
  Conversion little;
  Conversion big;
};

template <class T>
constexpr Dtype dtype(std::string_view name) {
  return {name, sizeof(T), {convert<T, false>, rounded<T, false>}, {convert<T, true>, rounded<T, true>}};
}

constexpr std::array kDtypes = {
    dtype<Bool>("b1"),          dtype<std::int8_t>("i1"),   dtype<std::int16_t>("i2"),
    dtype<std::int32_t>("i4"),  dtype<std::int64_t>("i8"),  dtype<std::uint8_t>("u1"),
    dtype<std::uint16_t>("u2"), dtype<std::uint32_t>("u4"), dtype<std::uint64_t>("u8"),
    dtype<Half>("f2"),          dtype<float>("f4"),         dtype<double>("f8"),
};

struct ArrayForm {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t value_size = 0;
  Conversion conversion;
  bool fortran_order = false;

  std::uint64_t values() const { return std::uint64_t{rows} * columns; }
  std::uint64_t bytes() const { return values() * value_size; }
};

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + (shape.size() == 1 ? ",)" : ")");
}

Result<void> set_type(const std::string& name, ArrayForm& form) {
  const char order = name.empty() ? '\0' : name.front();
  const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
  const std::string_view kind = std::string_view(name).substr(has_order ? 1 : 0);
  for (const Dtype& row : kDtypes) {
    if (row.name != kind || (order == '|' && row.size > 1)) continue;
    form.value_size = row.size;
    form.conversion = order == '>' ? row.big : row.little;
    return {};
  }
  return refused("NPY header", "dtype " + in_quotes(name) +
                                   " is not supported; expected bool, int8 to int64, uint8 to uint64 or "
                                   "float16 to float64");
}

Result<ArrayForm> array_form(const NpyHeader& header, NpyShape accepted) {
  ArrayForm form;
  FVM_TRY(set_type(header.dtype, form));
  std::vector<std::uint64_t> shape = header.shape;
  if (accepted == NpyShape::VectorOrMatrix && shape.size() == 1) shape.push_back(1);
  if (shape.size() != 2)
    return refused("NPY header", "shape " + shape_text(shape) + " has " + std::to_string(shape.size()) +
                                     " dimensions, expected 2: (rows, features)");
  if (shape[1] == 0) return refused("NPY header", "shape " + shape_text(shape) + " has no columns");
  if (shape[0] > kMostValues / shape[1])
    return refused("NPY header", "shape " + shape_text(shape) + " overflows the address space");
  form.rows = static_cast<std::size_t>(shape[0]);
  form.columns = static_cast<std::size_t>(shape[1]);
  form.fortran_order = header.fortran_order;
  return form;
}

/// Takes magic, version, length and text.
Result<NpyHeader> read_header(Source& source) {
  FVM_ASSIGN(std::string_view start, source.peek(12));
  const auto truncated = [](std::size_t size) {
    return refused("NPY header", "truncated: the file ends after " + std::to_string(size) + " bytes");
  };
  if (start.size() < 10) return truncated(start.size());
  const auto byte = [&start](std::size_t i) { return std::size_t{static_cast<unsigned char>(start[i])}; };
  const std::size_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0)
    return refused("NPY header", "version " + std::to_string(major) + "." + std::to_string(byte(7)) +
                                     " is not supported; expected 1.0, 2.0 or 3.0");
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (start.size() < prefix) return truncated(start.size());
  std::size_t length = byte(8) | byte(9) << 8U;
  if (major > 1) length |= byte(10) << 16U | byte(11) << 24U;
  if (length > kLongestHeader)
    return refused("NPY header", "is " + std::to_string(length) + " bytes long, more than " +
                                     std::to_string(kLongestHeader));
  FVM_ASSIGN(start, source.peek(prefix + length));
  if (start.size() < prefix + length)
    return refused("NPY header", "truncated: " + std::to_string(start.size() - prefix) + " of " +
                                     std::to_string(length) + " bytes");
  auto header = parse_npy_header(start.substr(prefix, length));
  source.skip(prefix + length);
  return header;
}

Error wrong_size(const ArrayForm& form, const std::string& found) {
  return refused("NPY data", "the header's " + std::to_string(form.rows) + " x " +
                                 std::to_string(form.columns) + " values need " +
                                 std::to_string(form.bytes()) + " bytes, the file has " + found);
}

class NpyReader final : public TableReader {
 public:
  NpyReader(Source& source, const ArrayForm& array, RowForm form)
      : source_(source), array_(array), form_(std::move(form)) {
    columns_ = array.columns;
    rows_ = array.rows;
  }

  Result<std::size_t> read(std::size_t most, std::vector<float>& values) override {
    const std::size_t rows = std::min(most, array_.rows - rows_done_);
    if (array_.fortran_order) {
      if (rows_done_ == 0) FVM_TRY(read_values(array_.values(), whole_));
      values.reserve(values.size() + rows * array_.columns);
      for (std::size_t row = rows_done_; row < rows_done_ + rows; ++row)
        for (std::size_t column = 0; column < array_.columns; ++column)
          values.push_back(whole_[column * array_.rows + row]);
    } else {
      FVM_TRY(read_values(std::uint64_t{rows} * array_.columns, values));
    }
    rows_done_ += rows;
    return rows;
  }

  /// What is known before the first value is read.
  Result<void> check_size() const {
    const auto left = source_.bytes_left();
    if (left && *left != array_.bytes()) return wrong_size(array_, std::to_string(*left));
    return {};
  }

 private:
  /// Appends so many values in the file's order; after the array's last, the file must end.
  Result<void> read_values(std::uint64_t total, std::vector<float>& values) {
    // A count that bytes need not follow must not be believed.
    if (source_.bytes_left()) values.reserve(values.size() + static_cast<std::size_t>(total));
    chunk_.resize(kChunkBytes);
    for (std::uint64_t done = 0; done < total;) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(total - done, kChunkBytes / array_.value_size));
      FVM_ASSIGN(const std::size_t got, source_.read(chunk_.data(), count * array_.value_size));
      if (got < count * array_.value_size)
        return wrong_size(array_, std::to_string(values_done_ * array_.value_size + got));
      const std::size_t had = values.size();
      values.resize(had + count);
      const std::span<float> read = std::span(values).subspan(had);
      if (!array_.conversion.convert(chunk_.data(), count, read.data()) && form_.exact)
        FVM_TRY(refuse_rounded(read));
      if (form_.missing) std::replace(read.begin(), read.end(), *form_.missing, kMissing);
      done += count;
      values_done_ += count;
    }
    if (values_done_ < array_.values()) return {};
    FVM_ASSIGN(const std::size_t more, source_.read(chunk_.data(), 1));
    return more != 0 ? wrong_size(array_, "more") : Result<void>();
  }

  /// The first of the chunk's values that had to be rounded and is not missing all the same.
  Result<void> refuse_rounded(std::span<const float> read) const {
    for (std::size_t i = 0; i < read.size(); ++i) {
      const auto number = array_.conversion.rounded(chunk_.data() + i * array_.value_size);
      if (!number || read[i] == form_.missing) continue;
      const std::uint64_t at = values_done_ + i;
      const std::uint64_t row = array_.fortran_order ? at % array_.rows : at / array_.columns;
      const std::uint64_t column = array_.fortran_order ? at / array_.rows : at % array_.columns;
      return not_exact("value [" + std::to_string(row) + ", " + std::to_string(column) + "]", *number);
    }
    return {};
  }

  Source& source_;
  ArrayForm array_;
  RowForm form_;
  std::size_t rows_done_ = 0;
  std::uint64_t values_done_ = 0;
  std::string chunk_;
  std::vector<float> whole_;  // of an array in Fortran order, column by column
};

}  // namespace

Result<std::unique_ptr<TableReader>> npy_reader(Source& source, NpyShape shape, const RowForm& form) {
  FVM_ASSIGN(const NpyHeader header, read_header(source));
  FVM_ASSIGN(const ArrayForm array, array_form(header, shape));
  if (shape == NpyShape::Matrix && array.columns != form.width) return wrong_width(array.columns, form.width);
  auto reader = std::make_unique<NpyReader>(source, array, form);
  FVM_TRY(reader->check_size());
  return std::unique_ptr<TableReader>(std::move(reader));
}

std::string npy_header(std::string_view dtype, const std::vector<std::size_t>& shape) {
  // numpy fills its header up to a multiple of 64 bytes, with room for a first dimension of 21 digits: for
  // these arrays that is always 128 bytes, 10 of them before the text.
  constexpr std::size_t text_size = 118;
  std::string text = "{'descr': '" + std::string(dtype) +
                     "', 'fortran_order': False, 'shape': " + shape_text({shape.begin(), shape.end()}) +
                     ", }";
  FVM_CHECK(text.size() < text_size);
  text.resize(text_size - 1, ' ');
  text += '\n';
  return std::string(kNpyMagic) + std::string{'\x01', '\x00', static_cast<char>(text_size), '\x00'} + text;
}

}  // namespace forestvm::cli
