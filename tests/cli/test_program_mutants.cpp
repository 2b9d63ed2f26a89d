// Damaged model files of every format, given to the real program: each is refused, or runs, within a second of
// processor time and within 4 times the size of the decompressed file and 64 MiB, including the program itself.
#include <sys/resource.h>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/small_skops.hpp"
#include "spawn.hpp"
#include "support/memory.hpp"
#include "support/nightly.hpp"

namespace forestvm::cli::test_program_mutants {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

constexpr std::size_t kMutants = 1000;
constexpr std::size_t kMutantsByDay = 20;
constexpr double kMaxSeconds = 1;

/// A model of the repository, and rows; empty names stand for a small .skops archive whose entries are damaged.
struct Good {
  const char* format;
  const char* folder;
  const char* model;
  const char* rows;
};

/// Names the parameter in lists of tests.
void PrintTo(const Good& good, std::ostream* out) { *out << good.format; }

/// The files of a model, or the entries of an archive, by name.
using Parts = std::map<std::string, std::string>;

Parts parts_of(const Good& good) {
  if (*good.folder == '\0') {
    const test::SmallSkops small;
    Parts parts = small.entries;
    parts["schema.json"] = small.schema();
    return parts;
  }
  const fs::path path = fs::path(test_data(good.folder)) / good.model;
  if (!fs::is_directory(path)) return {{"model", support::content_of(path)}};
  Parts parts;
  for (const fs::directory_entry& file : fs::directory_iterator(path))
    parts[file.path().filename().string()] = support::content_of(file.path());
  return parts;
}

std::size_t below(Random& random, std::size_t end) { return end == 0 ? 0 : random() % end; }

/// Replaces a decimal number of a text, if there is one at or behind a drawn place.
void replace_written_number(std::string& text, Random& random) {
  constexpr std::array<const char*, 6> numbers = {"-1", "99999", "2147483647", "1e308", "NaN", "0"};
  const std::size_t begin = text.find_first_of("0123456789", below(random, text.size()));
  if (begin == std::string::npos) return;
  const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-", begin), text.size());
  text.replace(begin, end - begin, numbers[below(random, numbers.size())]);
}

/// Overwrites bytes with a number: four bytes in either order, or as protobuf writes it.
void overwrite_number(std::string& bytes, Random& random) {
  constexpr std::array<std::uint32_t, 3> numbers = {0xffffffff, 99'999, 0x7fffffff};
  const std::uint32_t number = numbers[below(random, numbers.size())];
  const std::size_t form = below(random, 3);
  std::string written;
  for (int i = 0; i < 4; ++i) written += static_cast<char>(number >> 8 * (form == 0 ? i : 3 - i) & 0xff);
  if (form == 2) {
    written.clear();
    for (std::uint32_t rest = number; rest != 0; rest >>= 7)
      written += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  }
  const std::size_t at = below(random, bytes.size());
  bytes.replace(at, std::min(written.size(), bytes.size() - at), written);
}

/// Damages bytes in one of five ways.
void damage(std::string& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size()), length = 1 + below(random, 64);
  switch (below(random, 5)) {
    case 0:
      for (std::size_t left = 1 + below(random, 3); left > 0 && !bytes.empty(); --left)
        bytes[below(random, bytes.size())] ^= static_cast<char>(1 << below(random, 8));
      break;
    case 1:
      bytes.resize(at);
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(at, bytes.substr(at, length));
      break;
    default:
      if (bytes.find('\0') == std::string::npos)
        replace_written_number(bytes, random);
      else
        overwrite_number(bytes, random);
  }
}

class Mutants : public ProgramTest, public testing::WithParamInterface<Good> {
 protected:
  /// Writes a model and returns its path.
  std::string written(const Parts& parts) const {
    if (*GetParam().folder == '\0') return write("model", test::zip_of(parts));
    if (parts.size() == 1) return write("model", parts.begin()->second);
    fs::create_directories(file("model"));
    for (const auto& [name, bytes] : parts) write("model/" + name, bytes);
    return file("model");
  }

  std::string rows() const {
    const Good& good = GetParam();
    return *good.folder == '\0' ? write("rows.csv", "0.25,0.5,0.75\n")
                                : test_data(std::string(good.folder) + '/' + good.rows);
  }

  /// Runs a model and checks the exit code and what the run took.
  void check(const Parts& parts, const std::string& rows) const {
    Streams streams;
    // A program that never ends is killed.
    streams.meanwhile = [](pid_t program) {
      const rlimit seconds{60, 60};
      ::prlimit(program, RLIMIT_CPU, &seconds, nullptr);
    };
    const Outcome outcome = forestvm({"run", written(parts), rows}, streams);
    // A folder may name a file that it lacks, which cannot be read.
    const bool lacks_file = parts.size() > 1 && outcome.code == 3 &&
                            outcome.err.find("cannot read the file: No such file") != std::string::npos;
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 1 || lacks_file) << outcome.code << ": " << outcome.err;
    EXPECT_TRUE(outcome.code == 0 || !outcome.err.empty());
    if (!support::kMemoryIsMeasured) return;
    std::size_t bytes = 0;
    for (const auto& [name, content] : parts) bytes += content.size();
    EXPECT_LE(outcome.peak_mib, 64 + 4 * bytes / (1 << 20)) << outcome.err;
    EXPECT_LE(outcome.cpu_seconds, kMaxSeconds) << outcome.err;
  }
};

TEST_P(Mutants, AreRefusedOrRunWithinBounds) {
  const Parts good = parts_of(GetParam());
  const std::string table = rows();
  const Outcome undamaged = forestvm({"run", written(good), table});
  ASSERT_EQ(undamaged.code, 0) << undamaged.err;
  for (const std::size_t number : support::sampled(kMutants, kMutantsByDay, GetParam().format)) {
    SCOPED_TRACE("mutant " + std::to_string(number));
    std::seed_seq seed(GetParam().format, GetParam().format + std::strlen(GetParam().format));
    Random random(seed);
    random.discard(1000 * number);
    Parts parts = good;
    damage(std::next(parts.begin(), static_cast<std::ptrdiff_t>(below(random, parts.size())))->second,
           random);
    check(parts, table);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Mutants,
    testing::Values(Good{"catboost_cbm", "catboost/1.2.10_counters", "model.cbm", "rows.csv"},
                    Good{"catboost_json", "catboost/1.2.10_counters", "model.json", "rows.csv"},
                    Good{"lightgbm_text", "lightgbm/4.7.0_categories", "model.txt", "rows.npy"},
                    Good{"lightgbm_linear", "lightgbm/4.7.0_linear", "model.txt", "rows.npy"},
                    Good{"lightgbm_json", "lightgbm/4.7.0_categories", "model.json", "rows.npy"},
                    Good{"onnx", "onnx/modes", "model.onnx", "rows.npy"},
                    Good{"onnx_5", "onnx/v5_members", "model.onnx", "rows.npy"},
                    Good{"onnx_computed", "onnx/normalizer_l2", "model.onnx", "rows.npy"},
                    Good{"pmml", "pmml/sklearn_one_hot", "model.pmml", "rows.csv"},
                    Good{"pmml_derived", "pmml/derived_default", "model.pmml", "rows.csv"},
                    Good{"skops", "", "", ""},
                    Good{"skops_archive", "skops/1.9_hist_categories", "model.skops", "rows.npy"},
                    Good{"treelite", "treelite/4.8.1_softmax_wide", "model.treelite", "rows.npy"},
                    Good{"treelite_3", "treelite/3.9.1_categories", "model.treelite", "rows.npy"},
                    Good{"xgboost_json", "xgboost_versions/3.2.0_categories", "model.json", "rows.npy"},
                    Good{"xgboost_ubj", "xgboost_versions/3.1.3_targets", "model.ubj", "rows.npy"},
                    Good{"ydf", "ydf/0.16.1_oblique", "model", "rows.csv"},
                    Good{"ydf_gzip", "ydf/0.16.1_cart_gzip", "model", "rows.csv"}),
    [](const auto& test) { return std::string(test.param.format); });

}  // namespace
}  // namespace forestvm::cli::test_program_mutants
