// See npy.hpp.
#include "cli/io/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "byte orders below are named for such a host");

constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
/// Most values of an array, so that their bytes can be counted in 64 bits.
constexpr std::uint64_t kMaxArrayValues = std::numeric_limits<std::uint64_t>::max() / 16;

struct Dtype {
  std::string_view name;  // NumPy's name without the byte order
  RowType type;
};

constexpr std::array kDtypes = {
    Dtype{"b1", RowType::Bool},    Dtype{"i1", RowType::Int8},    Dtype{"i2", RowType::Int16},
    Dtype{"i4", RowType::Int32},   Dtype{"i8", RowType::Int64},   Dtype{"u1", RowType::UInt8},
    Dtype{"u2", RowType::UInt16},  Dtype{"u4", RowType::UInt32},  Dtype{"u8", RowType::UInt64},
    Dtype{"f2", RowType::Float16}, Dtype{"f4", RowType::Float32}, Dtype{"f8", RowType::Float64},
};

struct ArrayForm {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t value_size = 0;
  RowType type = RowType::Float32;
  bool swapped = false;  // true if the bytes of a value are in the other order than this machine's
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
    const std::size_t size = bytes_of(row.type);
    if (row.name != kind || (order == '|' && size > 1)) continue;
    form.value_size = size;
    form.type = row.type;
    form.swapped = order == '>';
    return {};
  }
  return refused(
      "NPY header",
      "dtype {} is not supported; expected bool, int8 to int64, uint8 to uint64 or float16 to float64",
      single_quoted(name));
}

Result<ArrayForm> array_form(const NpyHeader& header, NpyShape accepted) {
  ArrayForm form;
  if (header.is_structured())
    return refused("NPY header", "a structured dtype has no single column type; save one plain array");
  FVM_TRY(set_type(header.fields[0].type, form));
  std::vector<std::uint64_t> shape = header.shape;
  if (accepted == NpyShape::VectorOrMatrix && shape.size() == 1) shape.resize(2, 1);
  if (shape.size() != 2)
    return refused(
        "NPY header", "shape {} has {}{}, expected {}", shape_text(shape), shape.size(),
        shape.size() == 1 ? " dimension" : " dimensions",
        accepted == NpyShape::Matrix ? "2: (rows, features)" : "1 or 2: (rows,) or (rows, columns)");
  if (shape[1] == 0) return refused("NPY header", "shape {} has no columns", shape_text(shape));
  if (shape[0] > kMaxArrayValues / shape[1])
    return refused("NPY header", "shape {} overflows the address space", shape_text(shape));
  form.rows = static_cast<std::size_t>(shape[0]);
  form.columns = static_cast<std::size_t>(shape[1]);
  form.fortran_order = header.fortran_order;
  return form;
}

Error wrong_size(const ArrayForm& form, const std::string& found) {
  return refused("NPY data", "the header's {} x {} values need {} bytes, the file has {}", form.rows,
                 form.columns, form.bytes(), found);
}

/// Reads values as Number: float, or double.
template <class Number>
class NpyReader final : public TableReader {
 public:
  NpyReader(Source& source, const ArrayForm& array, RowForm form)
      : TableReader(kRowType<Number>), source_(source), array_(array), form_(std::move(form)) {
    columns_ = array.columns;
    rows_ = array.rows;
  }

  Result<void> read(std::size_t most, Rows& rows) override {
    begin_block<Number>(rows);
    auto& values = rows.numbers<Number>();
    rows.count = std::min(most, array_.rows - rows_done_);
    if (array_.fortran_order) {
      if (rows_done_ == 0) FVM_TRY(read_values(array_.values(), whole_));
      values.reserve(rows.count * array_.columns);
      for (std::size_t row = rows_done_; row < rows_done_ + rows.count; ++row)
        for (std::size_t column = 0; column < array_.columns; ++column)
          values.push_back(whole_[column * array_.rows + row]);
    } else {
      FVM_TRY(read_values(std::uint64_t{rows.count} * array_.columns, values));
    }
    rows_done_ += rows.count;
    return {};
  }

  /// Checks what is known before the first value is read.
  Result<void> check_size() const {
    const auto left = source_.bytes_left();
    if (left && *left != array_.bytes()) return wrong_size(array_, std::to_string(*left));
    return {};
  }

 private:
  /// Appends `total` values in the file's order. After the array's last value the file must end.
  Result<void> read_values(std::uint64_t total, std::vector<Number>& values) {
    // Memory grows only as bytes arrive, because a damaged count may be huge.
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
      const std::span<Number> read = std::span(values).subspan(had);
      if (array_.swapped) swap_bytes(count);
      if constexpr (std::is_same_v<Number, float>)
        to_float32(array_.type, chunk_.data(), count, read.data());
      else
        to_float64(array_.type, chunk_.data(), count, read.data());
      if (form_.wide) FVM_TRY(refuse_rounded(read));
      if (form_.missing)
        std::replace(read.begin(), read.end(), form_.missing->as<Number>(),
                     std::numeric_limits<Number>::quiet_NaN());
      done += count;
      values_done_ += count;
    }
    if (values_done_ < array_.values()) return {};
    FVM_ASSIGN(const std::size_t more, source_.read(chunk_.data(), 1));
    return more != 0 ? wrong_size(array_, "more") : Result<void>();
  }

  /// Brings `count` values of the chunk into this machine's byte order.
  void swap_bytes(std::size_t count) {
    char* value = chunk_.data();
    for (std::size_t i = 0; i < count; ++i, value += array_.value_size)
      std::reverse(value, value + array_.value_size);
  }

  /// Refuses the first of the chunk's values that had to be rounded, unless it is missing.
  Result<void> refuse_rounded(std::span<const Number> read) const {
    const auto value = [&](std::size_t i) { return chunk_.data() + i * array_.value_size; };
    for (std::size_t i = 0;; ++i) {
      i += first_inexact(array_.type, value(i), read.size() - i);
      if (i == read.size()) return {};
      if (form_.missing && read[i] == form_.missing->as<Number>()) continue;
      const std::uint64_t at = values_done_ + i;
      const std::uint64_t row = array_.fortran_order ? at % array_.rows : at / array_.columns;
      const std::uint64_t column = array_.fortran_order ? at / array_.rows : at % array_.columns;
      return not_exact(formatted("value [{}, {}]", row, column), inexact_text(array_.type, value(i)),
                       "give the rows as a float64 .npy array");
    }
  }

  Source& source_;
  ArrayForm array_;
  RowForm form_;
  std::size_t rows_done_ = 0;
  std::uint64_t values_done_ = 0;
  std::string chunk_;
  std::vector<Number> whole_;  // an array in Fortran order, column by column
};

template <class Number>
Result<std::unique_ptr<TableReader>> checked(Source& source, const ArrayForm& array, const RowForm& form) {
  auto reader = std::make_unique<NpyReader<Number>>(source, array, form);
  FVM_TRY(reader->check_size());
  return std::unique_ptr<TableReader>(std::move(reader));
}

}  // namespace

Result<NpyHeader> read_npy_header(Source& source) {
  FVM_ASSIGN(const bool is_npy, source.starts_with(kNpyMagic));
  if (!is_npy) return refused("is not an NPY array");
  FVM_ASSIGN(std::string_view start, source.peek(12));
  const auto truncated = [](std::size_t size) {
    return refused("NPY header", "truncated: the file ends after {} bytes", size);
  };
  if (start.size() < 10) return truncated(start.size());
  const auto byte = [&start](std::size_t i) { return std::size_t{static_cast<unsigned char>(start[i])}; };
  const std::size_t major = byte(6);
  if (major < 1 || major > 3 || byte(7) != 0)
    return refused("NPY header", "version {}.{} is not supported; expected 1.0, 2.0 or 3.0", major, byte(7));
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (start.size() < prefix) return truncated(start.size());
  std::size_t length = byte(8) | byte(9) << 8U;
  if (major > 1) length |= byte(10) << 16U | byte(11) << 24U;
  if (length > kMaxHeaderBytes)
    return refused("NPY header", "is {} bytes long, more than {}", length, kMaxHeaderBytes);
  FVM_ASSIGN(start, source.peek(prefix + length));
  if (start.size() < prefix + length)
    return refused("NPY header", "truncated: {} of {} bytes", start.size() - prefix, length);
  auto header = parse_npy_header(start.substr(prefix, length));
  source.skip(prefix + length);
  return header;
}

Result<std::unique_ptr<TableReader>> npy_reader(Source& source, NpyShape shape, const RowForm& form) {
  FVM_ASSIGN(const NpyHeader header, read_npy_header(source));
  FVM_ASSIGN(const ArrayForm array, array_form(header, shape));
  if (shape == NpyShape::Matrix && array.columns != form.width) return wrong_width(array.columns, form.width);
  if (form.wide && !is_float32(array.type)) return checked<double>(source, array, form);
  return checked<float>(source, array, form);
}

std::string npy_header(std::string_view dtype, const std::vector<std::size_t>& shape) {
  // NumPy pads its header to a multiple of 64 bytes, with room for a first dimension of 21 digits. This function always
  // makes headers of 128 bytes: 10 before the text, and the text.
  constexpr std::size_t text_size = 118;
  std::string text = formatted("{'descr': '{}', 'fortran_order': False, 'shape': {}, }", dtype,
                               shape_text({shape.begin(), shape.end()}));
  FVM_CHECK(text.size() < text_size);
  text.resize(text_size - 1, ' ');
  text += '\n';
  return std::string(kNpyMagic) + std::string{'\x01', '\x00', static_cast<char>(text_size), '\x00'} + text;
}

}  // namespace forestvm::cli
