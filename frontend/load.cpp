// load_model: reads and unpacks the bytes, finds the format by content among the rows of formats.def, calls
// its reader, and checks the model. A directory is a model of YDF.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/printable.hpp>
#include <forestvm/load.hpp>

#include <algorithm>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <vector>

#include "frontend/catboost_model.hpp"
#include "frontend/check_model.hpp"
#include "frontend/file_bytes.hpp"
#include "frontend/foreign_formats.hpp"
#include "frontend/lightgbm_dump.hpp"
#include "frontend/lightgbm_model.hpp"
#include "frontend/onnx_model.hpp"
#include "frontend/parsed_model.hpp"
#include "frontend/pmml_model.hpp"
#include "frontend/skops_file.hpp"
#include "frontend/treelite_model.hpp"
#include "frontend/xgboost_model.hpp"
#include "frontend/ydf_model.hpp"

namespace forestvm {
namespace {

using Bytes = std::span<const std::byte>;

struct Format {
  const char* name;
  bool (*sniff)(Bytes);
  Result<frontend::ParsedModel> (*read)(Bytes, const LoadLimits&);
};

constexpr Format kFormats[] = {
#define FVM_FORMAT(name, sniff, reader, description) {name, frontend::sniff, frontend::reader},
#include "frontend/formats.def"
};

Error unknown_format(Bytes bytes) {
  if (bytes.empty()) return refused("byte 0", "the file is empty");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const char* const sentence = frontend::foreign_file(bytes)) return refused("byte 0", sentence);
  std::string known;
  for (const Format& format : kFormats) known.append(known.empty() ? "" : ", ").append(format.name);
  return refused("byte 0", "not a model file of a known format ({}): it starts with {}", known,
                 in_quotes(text, 16));
}

const Format* find_format(Bytes bytes) {
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const Format& row) { return row.sniff(bytes); });
  return found == std::end(kFormats) ? nullptr : found;
}

Result<Model> checked(Result<frontend::ParsedModel> parsed) {
  if (!parsed.ok()) return parsed.error();
  FVM_TRY(frontend::check_model(parsed->model, parsed->tree_location));
  return std::move(parsed->model);
}

Result<Model> read_and_check(Bytes bytes, const LoadLimits& limits) {
  const Format* format = find_format(bytes);
  if (format == nullptr) return unknown_format(bytes);
  return checked(format->read(bytes, limits));
}

Result<Model> load_bytes(Bytes bytes, const LoadLimits& limits) {
  if (bytes.size() > limits.max_bytes)
    return refused("byte 0", "longer than the limit of {} bytes", limits.max_bytes);
  FVM_TRY(check_model_opening(bytes));
  if (!frontend::is_gzip(bytes)) return read_and_check(bytes, limits);
  FVM_ASSIGN(const std::vector<std::byte> unpacked,
             frontend::unpack_gzip(bytes, limits.max_bytes, limits.max_expansion));
  return read_and_check(unpacked, limits);
}

bool is_directory(const std::string& path) {
  std::error_code unknown;
  return path.find('\0') == std::string::npos && std::filesystem::is_directory(path, unknown);
}

}  // namespace

Result<void> check_model_opening(Bytes opening) {
  if (frontend::is_gzip(opening)) {
    const std::vector<std::byte> first = frontend::peek_gzip(opening, kModelOpening);
    // If nothing was unpacked, the file is damaged, which unpack_gzip reports.
    return first.empty() || find_format(first) != nullptr ? Result<void>() : unknown_format(first);
  }
  return find_format(opening.first(std::min(opening.size(), kModelOpening))) != nullptr
             ? Result<void>()
             : unknown_format(opening);
}

Result<Model> load_model(std::span<const std::byte> bytes, const LoadLimits& limits) {
  try {
    return load_bytes(bytes, limits);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::Environment, "out of memory while reading the model");
  }
}

Result<Model> load_model(const std::string& path, const LoadLimits& limits) {
  try {
    if (is_directory(path)) return checked(frontend::read_ydf_directory(path, limits));
    FVM_ASSIGN(const std::vector<std::byte> bytes,
               frontend::read_file_bytes(path, limits.max_bytes, check_model_opening));
    return load_bytes(bytes, limits);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::Environment, "out of memory while reading the model");
  }
}

}  // namespace forestvm
