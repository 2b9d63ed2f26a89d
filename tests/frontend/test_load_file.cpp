// load_model and files: content decides the format, gzip is unpacked within limits, foreign files are named.
#include <gtest/gtest.h>

#include "small_skops.hpp"
#include "small_xgboost.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::test::test_load_file {
namespace {

class FileTest : public ::testing::Test, protected support::TemporaryFolder {};

TEST_F(FileTest, TheNameDoesNotMatter) {
  const SmallXgboost small;
  for (const std::string& text : {small.json(), small.ubj()}) {
    EXPECT_TRUE(load_model(write("model.onnx", text)).ok());
    EXPECT_TRUE(load_model(write("model.json", gzip(text))).ok());
  }
  EXPECT_TRUE(load_model(write("spaced.txt", " \n\t{ \n" + small.json().substr(1))).ok());
}

TEST_F(FileTest, Unreadable) {
  const std::pair<std::string, const char*> cases[] = {
      {file("absent.json"), "No such file or directory"},
      {"", "No such file or directory"},
      {write("good.json", SmallXgboost{}.json()) + std::string("\0.json", 6), "its name holds a zero byte"},
  };
  for (const auto& [path, reason] : cases) {
    const Result<Model> model = load_model(path);
    ASSERT_FALSE(model.ok()) << path;
    EXPECT_EQ(model.error().code, ErrorCode::Environment);
    EXPECT_EQ(model.error().text(), std::string("cannot read the file: ") + reason);
  }
}

TEST_F(FileTest, ADirectoryWithoutAModel) {
  const auto refusal = [&] { return load_model(path().string()).error(); };
  EXPECT_EQ(refusal().code, ErrorCode::Refused);
  EXPECT_EQ(refusal().text(),
            "directory: has no file data_spec.pb, so it is not a YDF model; other models are single files");
  write("saved_model.pb", "");
  EXPECT_EQ(
      refusal().text(),
      "directory: has no file data_spec.pb: it is a TensorFlow SavedModel, and only those of TF-DF hold forests: "
      "give their folder assets");
  write("a_data_spec.pb", "");
  EXPECT_EQ(refusal().text(), "a_header.pb: cannot read the file: No such file or directory");
  write("b_data_spec.pb", "");
  EXPECT_TRUE(refusal().text().starts_with("directory: holds several models, such as ")) << refusal().text();
}

TEST_F(FileTest, ForeignDirectoriesAreRefusedByName) {
  const std::pair<const char*, const char*> rows[] = {
#define FVM_FOREIGN_DIRECTORY(entry, sentence) {entry, sentence},
#include "frontend/formats.def"
  };
  for (const auto& [entry, sentence] : rows) {
    const std::string inside = write(entry, "");
    const Result<Model> model = load_model(path().string());
    ASSERT_FALSE(model.ok()) << entry;
    EXPECT_EQ(model.error().code, ErrorCode::Refused);
    EXPECT_EQ(model.error().text(), std::string("directory: ") + sentence);
    std::filesystem::remove(inside);
  }
}

/// Files of any length are refused after their first bytes.
TEST_F(FileTest, WhatBeginsLikeNoModelIsRefusedByItsFirstBytes) {
  const std::string sparse = write("sparse.bin", "");
  std::filesystem::resize_file(sparse, std::uintmax_t{1} << 40);
  for (const std::string& path : {std::string("/dev/zero"), sparse}) {
    const Result<Model> model = load_model(path);
    ASSERT_FALSE(model.ok()) << path;
    EXPECT_EQ(model.error().code, ErrorCode::Refused);
    EXPECT_NE(model.error().message.find("not a model file"), std::string::npos) << model.error().text();
  }
}

TEST_F(FileTest, AFileOverTheLimitIsRefusedBeforeItIsRead) {
  const std::string long_one = write("long.txt", "tree\nversion=v4\n");
  std::filesystem::resize_file(long_one, std::uintmax_t{1} << 40);
  const Result<Model> model = load_model(long_one);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().text(), "the file is longer than the limit of 4294967296 bytes");
}

TEST_F(FileTest, ErrorsNameTheFile) {
  SmallXgboost small;
  small.trees[1].left[0] = 9;
  const std::string path = write("bad.json", small.json());
  const Result<Model> model = load_model(path);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().where, "learner.gradient_booster.model.trees[1]: tree 1, node 0");
}

TEST_F(FileTest, EmptyFile) {
  const Result<Model> model = load_model(write("empty.json", ""));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::Refused);
  EXPECT_EQ(model.error().message, "the file is empty");
}

TEST_F(FileTest, LongerThanTheLimit) {
  LoadLimits limits;
  limits.max_bytes = 100;
  const std::string text = SmallXgboost{}.json();
  EXPECT_FALSE(load_model(write("long.json", text), limits).ok());
  EXPECT_FALSE(load_text(text, limits).ok());
  limits.max_bytes = text.size();
  EXPECT_TRUE(load_model(write("long.json", text), limits).ok());
  EXPECT_TRUE(load_text(gzip(text), limits).ok());
  limits.max_bytes = text.size() - 1;
  EXPECT_FALSE(load_text(gzip(text), limits).ok());
}

/// Returns a file that begins as a row of formats.def says.
std::string foreign_file(std::size_t offset, std::string_view bytes) {
  return std::string(offset, '\1').append(bytes) + " and what follows";
}

/// Every row must be reached, whatever the rows before it take.
TEST(Foreign, EachRowIsRefusedByItsName) {
  const struct {
    std::size_t offset;
    std::string_view bytes;
    const char* sentence;
  } rows[] = {
#define FVM_FOREIGN(first_bytes, sentence) \
  {0, std::string_view(first_bytes, sizeof(first_bytes) - 1), sentence},
#define FVM_FOREIGN_AT(offset, bytes, sentence) \
  {offset, std::string_view(bytes, sizeof(bytes) - 1), sentence},
#include "frontend/formats.def"
  };
  for (const auto& row : rows) {
    const Result<Model> model = load_text(foreign_file(row.offset, row.bytes));
    ASSERT_FALSE(model.ok()) << row.sentence;
    if (row.bytes == std::string_view("\x1f\x8b"))
      continue;  // one layer of it is unpacked: see DamageIsRefused
    EXPECT_EQ(model.error().text(), std::string("byte 0: ") + row.sentence);
  }
}

TEST(Foreign, EachArchiveIsRefusedByItsName) {
  const std::pair<const char*, const char*> rows[] = {
#define FVM_FOREIGN_ARCHIVE(entry, sentence) {entry, sentence},
#include "frontend/formats.def"
  };
  for (const auto& [entry, sentence] : rows) {
    const Result<Model> model = load_text(zip_of({{"first.txt", "text"}, {entry, "{}"}}));
    ASSERT_FALSE(model.ok()) << entry;
    EXPECT_EQ(model.error().text(), std::string("byte 0: ") + sentence);
  }
}

/// Core ML's files and TensorFlow's begin as those of ONNX do: with a version, and a field of bytes.
TEST(Foreign, MessagesThatBeginLikeOnnxAreNamed) {
  // The input "a" of type double, and the predicted feature.
  const std::string description(
      "\x0a\x07\x0a\x01"
      "a\x1a\x02\x12\x00\x52\x01p",
      12);
  // Operators and a tag.
  const std::string graph("\x0a\x0b\x12\x02\x0a\x00\x22\x05serve", 13);
  const std::pair<std::string, const char*> cases[] = {{description, "a Core ML model: "},
                                                       {graph, "a graph of TensorFlow (saved_model.pb): "}};
  for (const auto& [content, sentence] : cases) {
    for (const char* const rest : {"", "\x92\x19\x02\x0a\x00"}) {  // field 402, a classifier of trees
      const std::string file =
          "\x08\x01\x12" + std::string(1, static_cast<char>(content.size())) + content + rest;
      const Result<Model> model = load_text(file);
      ASSERT_FALSE(model.ok());
      EXPECT_TRUE(model.error().text().starts_with(std::string("byte 0: ") + sentence))
          << model.error().text();
    }
  }
}

TEST(Foreign, IsNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"tree\r\nversion=v4\r\n", "LightGBM"},
      {"binf\x01", "old XGBoost"},
      {std::string("\x80\x04\x95", 3), "pickle"},
      {std::string("\x08\x08\x12\x04skl2", 8), "ONNX"},
      {"PK\x03\x04..", "zip"},
      {"not a model\n\x1b[31m", "starts with"},
      {"[[[[", "starts with"},
      {std::string("X\n\0\0\0\3", 6), "RDS"},
      {gzip(std::string("X\n\0\0\0\3", 6)), "RDS"},
      {"booster[0]:\n0:[f0<0.522524536] yes=1,no=2,missing=2\n", "text dump of XGBoost"},
      {"0:[age<0.5] yes=1,no=2\n\t1:leaf=1\n", "a tree of XGBoost's text dump"},
      {R"(["0:[f0<0.522524536] yes=1,no=2,missing=2\n\t1:leaf=0.4\n"])", "a list of XGBoost's text dumps"},
      {R"(["0:leaf=0.25\n", "0:leaf=0.5\n"])", "a list of XGBoost's text dumps"},
      {"  { \"nodeid\": 0, \"depth\": 0, \"split\": \"f0\"", "a tree of XGBoost's JSON dump"},
      {"{\"nodeid\": 0, \"leaf\": 0.5}", "a tree of XGBoost's JSON dump"},
      {"[\n  { \"nodeid\": 0, \"depth\": 0", "a JSON dump of XGBoost"},
      {R"(["  { \"nodeid\": 0, \"depth\": 0, \"split\": \"f0\"")", "a JSON dump of XGBoost"},
      {"[{\"nodeid\": 0, \"leaf\": 0.5}]", "a JSON dump of XGBoost"},
      {"digraph {\n    graph [rankdir=TB]\n", "Graphviz"},
      {R"(["digraph {\n    graph [ rankdir=TB ]\n")", "Graphviz"},
      {std::string("\x97\0\0\0\0\0\0\0{\"__metadata__\":", 24), "safetensors"},
      {"/*\n  Licensed under the Apache License, Version 2.0\n    http://www.apache.org/licenses/LICENSE-2.0.html\n\n"
       "  AUTOGENERATED BY H2O at 2026-01-01T00:00:00.000Z\n  3.46.0.1\n",
       "H2O POJO"},
      {std::string("\x36\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"", 26), "safetensors"},
      {"(dp0\nVmodel\np1\nccopy_reg\n", "pickle"},
      {R"({"class":"org.apache.spark.ml.PipelineModel")", "Spark"},
      {R"({ "class" : "org.apache.spark.ml.PipelineModel")", "Spark"},
  };
  for (const auto& [text, word] : cases) {
    const Result<Model> model = load_text(text);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, ErrorCode::Refused);
    EXPECT_NE(model.error().message.find(word), std::string::npos) << model.error().text();
    EXPECT_EQ(model.error().text().find('\n'), std::string::npos);
    EXPECT_EQ(model.error().text().find('\x1b'), std::string::npos);
  }
}

TEST(Gzip, SeveralMembers) {
  const std::string text = SmallXgboost{}.json();
  EXPECT_TRUE(load_text(gzip(text.substr(0, 50)) + gzip("") + gzip(text.substr(50))).ok());
}

TEST(Gzip, EveryTruncationIsRefused) {
  const std::string packed = gzip(SmallXgboost{}.ubj());
  for (std::size_t length = 0; length < packed.size(); ++length) {
    const Result<Model> model = load_text(packed.substr(0, length));
    ASSERT_FALSE(model.ok()) << length;
    EXPECT_EQ(model.error().code, ErrorCode::Refused);
    EXPECT_FALSE(model.error().where.empty());
  }
}

TEST(Gzip, DamageIsRefused) {
  const std::string packed = gzip(SmallXgboost{}.ubj());
  for (const std::string& more : {std::string("x"), std::string(512, '\0')}) {
    const Result<Model> model = load_text(packed + more);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().text(), "byte " + std::to_string(packed.size()) +
                                        " of the gzip file: other bytes follow the end of the gzip data");
  }
  EXPECT_FALSE(load_text(gzip(packed)).ok());
  std::string wrong_sum = packed;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  EXPECT_FALSE(load_text(wrong_sum).ok());
}

TEST(Gzip, WhatDoesNotOpenAsAModelIsNotUnpacked) {
  const Result<Model> model = load_text(gzip(std::string(20'000'000, '\0')));
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("not a model file"), std::string::npos) << model.error().text();
}

TEST(Gzip, BombIsRefused) {
  // 20 MB of blanks in 20 kB, inside a document that would otherwise be read.
  const std::string text = SmallXgboost{}.json();
  const std::string bomb = gzip("{" + std::string(20'000'000, ' ') + text.substr(1));
  ASSERT_LT(bomb.size(), 40'000u);
  const Result<Model> model = load_text(bomb);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("limit"), std::string::npos) << model.error().text();
  LoadLimits generous;
  generous.max_expansion = 2000;
  EXPECT_TRUE(load_text(bomb, generous).ok());
}

}  // namespace
}  // namespace forestvm::test::test_load_file
