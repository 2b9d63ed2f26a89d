// forestvm run and encode read, work and write batch by batch: ten million rows take the memory of one batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <forestvm/internal/inflate.hpp>

#include "cli/io/csv.hpp"
#include "cli/io/npy.hpp"
#include "spawn.hpp"
#include "support/memory.hpp"
#include "support/nightly.hpp"
#include "vm/small_program.hpp"

namespace forestvm::cli::test_streaming {
namespace {

constexpr std::size_t kBlock = 10'000, kBlocks = support::kMemoryIsMeasured ? 1000 : 20, kFeatures = 3;
constexpr std::size_t kMaxMib = 64;  ///< most memory in MiB, the program itself included

/// A test with input that repeats one block of rows.
class Streaming : public ProgramTest {
 protected:
  void SetUp() override {
    const Program program =
        test::compiled(test::small_forest({.features = kFeatures, .outputs = 1}), "encode(u8)");
    ASSERT_TRUE(program.save(file("model.fvm")).ok());
    rows_ = test::small_rows(kBlock, kFeatures);
    const auto predictor = host_backend(program);
    const auto context = (*predictor)->make_context();
    expected_.resize(kBlock);
    ASSERT_TRUE(
        (*predictor)
            ->predict(*context, RowBlock{rows_.data(), kBlock, kFeatures}, OutputKind::Raw, expected_.data())
            .ok());
  }

  std::string write_repeated(const std::string& name, const std::string& header, const std::string& block) {
    std::ofstream out(file(name), std::ios::binary);
    out << header;
    for (std::size_t i = 0; i < blocks_; ++i) out << block;
    return file(name);
  }

  void expect_constant_memory(const std::vector<std::string>& words) {
    const Outcome outcome = forestvm(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (support::kMemoryIsMeasured) {
      EXPECT_LE(outcome.peak_mib, kMaxMib);
    }
  }

  void expect_repeated(const std::string& name, const std::string& header, const std::string& block) {
    std::ifstream in(file(name), std::ios::binary);
    std::string found(header.size(), '\0');
    in.read(found.data(), static_cast<std::streamsize>(found.size()));
    EXPECT_EQ(found, header);
    found.resize(block.size());
    for (std::size_t i = 0; i < blocks_; ++i) {
      ASSERT_TRUE(in.read(found.data(), static_cast<std::streamsize>(found.size())));
      ASSERT_TRUE(found == block) << "block " << i;
    }
    EXPECT_EQ(in.get(), std::ifstream::traits_type::eof());
  }

  static std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  static std::string text_of(const std::vector<float>& values, std::size_t columns) {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
      append_number(text, values[i]);
      text += (i + 1) % columns == 0 ? '\n' : ',';
    }
    return text;
  }

  std::size_t blocks_ = kBlocks;  ///< blocks of an input
  std::vector<float> rows_, expected_;
};

TEST_F(Streaming, TenMillionRowsFromNpyToNpy) {
  const std::string rows =
      write_repeated("rows.npy", npy_header("<f4", {kBlock * blocks_, kFeatures}), bytes_of(rows_));
  expect_constant_memory({"run", file("model.fvm"), rows, "--output", "raw", "-o", file("out.npy")});
  expect_repeated("out.npy", npy_header("<f4", {kBlock * blocks_}), bytes_of(expected_));
}

TEST_F(Streaming, TenMillionRowsFromCsvToNpy) {
  const std::string rows = write_repeated("rows.csv", "f2,f0,f1\n", text_of(rows_, kFeatures));
  for (std::size_t i = 0; i < kBlock; ++i)  // the order of the header
    std::rotate(rows_.begin() + static_cast<std::ptrdiff_t>(i * kFeatures),
                rows_.begin() + static_cast<std::ptrdiff_t>(i * kFeatures + 1),
                rows_.begin() + static_cast<std::ptrdiff_t>((i + 1) * kFeatures));
  const auto predictor = host_backend(Program::load(file("model.fvm")).value());
  ASSERT_TRUE((*predictor)
                  ->predict(*(*predictor)->make_context(), RowBlock{rows_.data(), kBlock, kFeatures},
                            OutputKind::Raw, expected_.data())
                  .ok());
  expect_constant_memory({"run", file("model.fvm"), rows, "--output", "raw", "-o", file("out.npy")});
  expect_repeated("out.npy", npy_header("<f4", {kBlock * blocks_}), bytes_of(expected_));
}

/// Returns a gzip member that holds the text as it is, in blocks that are not packed.
std::string gzip_member(const std::string& text) {
  const auto number = [](std::size_t value, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(&value), size);
  };
  constexpr std::size_t kMost = 0xffff;
  std::string out = std::string("\x1f\x8b\x08", 3) + std::string(7, '\0');
  for (std::size_t at = 0; at < text.size(); at += kMost) {
    const std::size_t size = std::min(kMost, text.size() - at);
    out += number(at + size == text.size() ? 1 : 0, 1) + number(size, 2) + number(~size, 2) +
           text.substr(at, size);
  }
  return out + number(crc32_of(0, std::as_bytes(std::span(text))), 4) + number(text.size(), 4);
}

/// The names are f0, f1, f2 in each format. By day there are three million rows, whose texts have more bytes than the
/// most memory.
TEST_F(Streaming, ManyRowsFromOtherTexts) {
  if (!support::nightly()) blocks_ = std::min<std::size_t>(blocks_, 300);
  std::string lines, sparse;
  for (std::size_t row = 0; row < kBlock; ++row) {
    lines += '[';
    sparse += '1';
    for (std::size_t i = 0; i < kFeatures; ++i) {
      const float value = rows_[row * kFeatures + i];
      sparse += ' ' + std::to_string(i) + ':';
      append_number(sparse, value);
      if (std::isfinite(value))
        append_number(lines, value);
      else
        lines += std::isnan(value) ? "null" : value > 0 ? "Infinity" : "-Infinity";
      lines += i + 1 == kFeatures ? "]\n" : ",";
    }
    sparse += '\n';
  }
  for (const std::string& block : {gzip_member(text_of(rows_, kFeatures)), lines, sparse}) {
    const std::string rows = write_repeated("rows", "", block);
    expect_constant_memory({"run", file("model.fvm"), rows, "--output", "raw", "-o", file("out.npy")});
    expect_repeated("out.npy", npy_header("<f4", {kBlock * blocks_}), bytes_of(expected_));
  }
}

TEST_F(Streaming, TenMillionRowsEncodedAndPredicted) {
  const std::string rows =
      write_repeated("rows.npy", npy_header("<f4", {kBlock * blocks_, kFeatures}), bytes_of(rows_));
  expect_constant_memory({"encode", file("model.fvm"), rows, "-o", file("rows.fvr")});
  expect_constant_memory(
      {"run", file("model.fvm"), file("rows.fvr"), "--output", "raw", "-o", file("out.npy")});
  expect_repeated("out.npy", npy_header("<f4", {kBlock * blocks_}), bytes_of(expected_));
}

/// A report keeps a batch and a sample of the rows. Contributions take longer than predictions, so the rows are fewer.
TEST_F(Streaming, AReportOfManyRows) {
  const std::string model = test_data("diabetes/model.json");
  constexpr std::size_t kRows = kBlock * kBlocks / 10, kWidth = 10;
  std::ofstream out(file("rows.npy"), std::ios::binary);
  out << npy_header("<f4", {kRows, kWidth});
  for (std::size_t i = 0; i < kRows / kBlock; ++i)
    for (std::size_t part = 0; part < kWidth / 2; ++part)
      out.write(reinterpret_cast<const char*>(rows_.data()), kBlock * 2 * sizeof(float));
  out.close();
  expect_constant_memory({"explain", model, file("rows.npy"), "-o", file("report.html")});
}

/// The predictions take far more memory than the rows.
TEST_F(Streaming, ManyOutputsAndManyTrees) {
  constexpr std::size_t kWide = support::kMemoryIsMeasured ? 3000 : 30, kRows = 20'000;
  for (const auto& [output, outputs, type, bytes] : {std::tuple{"raw", kWide, "<f4", 4u},
                                                     {"class", std::size_t{1}, "<i8", 8u},
                                                     {"leaf", kWide, "<i4", 4u}}) {
    SCOPED_TRACE(output);
    test::ForestShape shape{.trees = static_cast<std::uint32_t>(kWide), .features = kFeatures, .outputs = 1};
    if (outputs == kWide && std::string(output) == "raw") shape.outputs = shape.trees;
    const Program program = test::compiled(test::small_forest(shape), "encode(u8)");
    ASSERT_TRUE(program.save(file("wide.fvm")).ok());
    std::ofstream(file("wide.npy"), std::ios::binary)
        << npy_header("<f4", {kRows, kFeatures}) << bytes_of(test::small_rows(kRows, kFeatures));
    expect_constant_memory({"encode", file("wide.fvm"), file("wide.npy"), "-o", file("wide.fvr")});
    for (const char* rows : {"wide.npy", "wide.fvr"}) {
      expect_constant_memory(
          {"run", file("wide.fvm"), file(rows), "--output", output, "-o", file("out.npy")});
      EXPECT_EQ(std::filesystem::file_size(file("out.npy")), 128 + kRows * outputs * bytes);
    }
  }
}

}  // namespace
}  // namespace forestvm::cli::test_streaming
