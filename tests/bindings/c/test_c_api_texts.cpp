// The C ABI: the texts of a program, and programs in borrowed memory.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/forestvm.h>
#include <forestvm/internal/city_hash.hpp>

#include "opened_program.hpp"
#include "vm/derived_model.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api_texts {
namespace {

/// Returns the text that `call(text, size)` gives.
template <class Call>
std::string text_of(const Call& call) {
  const char* text = nullptr;
  std::size_t size = 77;
  EXPECT_EQ(call(&text, &size), FVM_OK) << fvm_last_error();
  return {text, size};
}

/// Returns a forest whose feature 1 has named categories.
Model named_forest(std::optional<double> unseen) {
  Model model = small_forest({.features = 3});
  model.feature_names[2] = std::string("null\0inside", 11);
  model.trainer = "a trainer";
  model.version = "1.2";
  model.categories = {{1, {"red", "", "blue"}, unseen}};
  return model;
}

TEST(CApiTexts, AreThoseOfTheProgram) {
  const Program program = compiled(named_forest(2.0), "encode(u8)");
  const Opened opened(program);
  const auto text = [&](fvm_text which) {
    return text_of([&](const char** to, std::size_t* size) {
      return fvm_program_text(opened.program(), which, to, size);
    });
  };
  EXPECT_EQ(text(FVM_TEXT_FORMAT), "by hand");
  EXPECT_EQ(text(FVM_TEXT_TRAINER), "a trainer");
  EXPECT_EQ(text(FVM_TEXT_VERSION), "1.2");
  EXPECT_EQ(text(FVM_TEXT_OBJECTIVE), "multi:softprob");
  EXPECT_EQ(text(FVM_TEXT_SCHEDULE), program.text(StringId::Schedule));
  const std::string fingerprint = text(FVM_TEXT_FINGERPRINT);
  EXPECT_EQ(fingerprint.size(), 16u);
  EXPECT_EQ(std::strtoull(fingerprint.c_str(), nullptr, 16), program.meta().fingerprint);

  std::uint32_t features = 0, labels = 0, count = 0;
  EXPECT_EQ(fvm_program_name_counts(opened.program(), &features, &labels), FVM_OK);
  EXPECT_EQ(features, 3u);
  EXPECT_EQ(labels, 3u);
  EXPECT_EQ(fvm_program_name_counts(opened.program(), nullptr, nullptr), FVM_OK);
  const auto feature = [&](std::uint32_t number) {
    return text_of([&](const char** to, std::size_t* size) {
      return fvm_program_feature_name(opened.program(), number, to, size);
    });
  };
  EXPECT_EQ(feature(0), "f0");
  EXPECT_EQ(feature(2), std::string("null\0inside", 11));
  EXPECT_EQ(text_of([&](const char** to, std::size_t* size) {
              return fvm_program_class_label(opened.program(), 2, to, size);
            }),
            "class 2");

  double unseen = 0;
  EXPECT_EQ(fvm_program_categories(opened.program(), 1, &count, &unseen), FVM_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(unseen, 2.0);
  EXPECT_EQ(fvm_program_categories(opened.program(), 0, &count, &unseen), FVM_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(unseen, -1.0);
  const std::array<std::string, 3> names = {"red", "", "blue"};
  for (std::uint32_t code = 0; code < names.size(); ++code) {
    const auto call = [&](const char** to, std::size_t* size) {
      return fvm_program_category_name(opened.program(), 1, code, to, size);
    };
    EXPECT_EQ(text_of(call), names[code]);
  }
}

TEST(CApiTexts, OfAModelWithoutNamesAreNone) {
  Model model = small_forest();
  model.feature_names.clear();
  model.class_labels.clear();
  const Opened opened(compiled(model, ""));
  std::uint32_t features = 7, labels = 7;
  EXPECT_EQ(fvm_program_name_counts(opened.program(), &features, &labels), FVM_OK);
  EXPECT_EQ(features, 0u);
  EXPECT_EQ(labels, 0u);
  const char* text = nullptr;
  std::size_t size = 0;
  expect_usage(fvm_program_feature_name(opened.program(), 0, &text, &size),
               "number 0, and there are 0 names of features");
  expect_usage(fvm_program_class_label(opened.program(), 0, &text, &size),
               "number 0, and there are 0 class labels");
}

TEST(CApiTexts, ThatDoNotExistAreErrors) {
  const Opened opened(compiled(named_forest(2.0), ""));
  const char* text = nullptr;
  std::size_t size = 0;
  double number = 0;
  std::uint32_t count = 0;
  fvm_program* const program = opened.program();
  expect_usage(fvm_program_text(program, 6, &text, &size), "there is no text 6");
  expect_usage(fvm_program_text(program, -1, &text, &size), "there is no text -1");
  expect_usage(fvm_program_text(program, FVM_TEXT_FORMAT, nullptr, &size), "a pointer to the result is null");
  expect_usage(fvm_program_text(program, FVM_TEXT_FORMAT, &text, nullptr), "a pointer to the result is null");
  expect_usage(fvm_program_text(nullptr, FVM_TEXT_FORMAT, &text, &size), "the program is null");
  expect_usage(fvm_program_feature_name(program, 3, &text, &size),
               "number 3, and there are 3 names of features");
  expect_usage(fvm_program_class_label(program, 3, &text, &size), "number 3, and there are 3 class labels");
  expect_usage(fvm_program_category_name(program, 1, 3, &text, &size),
               "number 3, and there are 3 names of categories of feature 1");
  expect_usage(fvm_program_category_name(program, 0, 0, &text, &size),
               "number 0, and there are 0 names of categories of feature 0");
  expect_usage(fvm_program_category_name(program, 3, 0, &text, &size), "number 3, and there are 3 features");
  expect_usage(fvm_program_categories(program, 3, &count, &number), "number 3, and there are 3 features");
  expect_usage(fvm_program_categories(program, 1, nullptr, &number), "a pointer to a result is null");
  expect_usage(fvm_program_category_code(program, 0, "red", 3, &number),
               "feature 0 has no names of categories, and is not compared as text");
  expect_usage(fvm_program_category_code(program, 1, nullptr, 3, &number), "the name or the code is null");
}

TEST(CApiTexts, AreFoundAsCategories) {
  const auto code = [](const Opened& opened, std::string_view name) {
    double number = -7;
    EXPECT_EQ(fvm_program_category_code(opened.program(), 1, name.data(), name.size(), &number), FVM_OK)
        << fvm_last_error();
    return number;
  };
  const Opened other(compiled(named_forest(2.0), ""));
  EXPECT_EQ(code(other, "red"), 0.0);
  EXPECT_EQ(code(other, ""), 1.0);
  EXPECT_EQ(code(other, "blue"), 2.0);
  EXPECT_EQ(code(other, "green"), 2.0);
  const Opened missing(compiled(named_forest(std::nan("")), ""));
  EXPECT_TRUE(std::isnan(code(missing, "green")));
  const Opened refusing(compiled(named_forest(std::nullopt), ""));
  double number = 0, unseen = 0;
  std::uint32_t count = 0;
  expect_failure(
      fvm_program_category_code(refusing.program(), 1, "green", 5, &number), FVM_REFUSED,
      "\"green\" is not one of the model's 3 categories: its trainer refuses others, or takes them for one of these");
  EXPECT_EQ(fvm_program_categories(refusing.program(), 1, &count, &unseen), FVM_OK);
  EXPECT_EQ(unseen, -1.0);
  const Opened hashing(compiled(derived_model(1), ""));
  EXPECT_EQ(code(hashing, "green"), static_cast<double>(category_code("green")));
}

/// A program's image in memory of its own, which a callback gives back.
struct Lent {
  explicit Lent(const Program& program, std::size_t misalignment = 0)
      : memory(static_cast<std::byte*>(std::aligned_alloc(64, (program.image().size() + 191) / 64 * 64))),
        image(memory + misalignment),
        size(program.image().size()) {
    std::memcpy(image, program.image().data(), size);
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() { std::free(memory); }

  static void release(void* lent) {
    auto& mine = *static_cast<Lent*>(lent);
    ++mine.releases;
    std::free(std::exchange(mine.memory, nullptr));
  }
  fvm_status open(fvm_program** program, const fvm_open_options* options = nullptr) {
    return fvm_program_open_borrowed(image, size, release, this, options, program);
  }

  std::byte* memory;
  std::byte* image;
  std::size_t size;
  int releases = 0;
};

TEST(CApiBorrowed, GivesTheMemoryBackOnceItsLastUserIsGone) {
  const Program program = rich_program();
  const auto predictor = host_backend(program);
  const std::vector<float> rows = small_rows(9, 3);
  const Answers expected = answers(**predictor, RowBlock{rows.data(), 9, 3});
  for (const bool program_first : {true, false}) {
    Lent lent(program);
    fvm_program* opened = nullptr;
    ASSERT_EQ(lent.open(&opened), FVM_OK) << fvm_last_error();
    OpenProgram closing(opened);
    OpenContext first = context_of(closing), second = context_of(closing);
    EXPECT_TRUE(c_answers(closing, first.get(), c_rows(RowBlock{rows.data(), 9, 3})) == expected);
    if (program_first) closing.reset();
    first.reset();
    EXPECT_EQ(lent.releases, 0);
    std::vector<float> out(9 * 3);
    EXPECT_EQ(predict(second.get(), c_rows(RowBlock{rows.data(), 9, 3}), FVM_OUTPUT_RAW, out), FVM_OK);
    second.reset();
    EXPECT_EQ(lent.releases, program_first ? 1 : 0);
    closing.reset();
    EXPECT_EQ(lent.releases, 1);
  }
}

TEST(CApiBorrowed, GivesTheMemoryBackIfOpeningFails) {
  const Program program = rich_program();
  fvm_program* opened = nullptr;
  Lent damaged(program);
  damaged.image[damaged.size - 1] ^= std::byte{1};
  expect_failure(damaged.open(&opened), FVM_REFUSED, "checksum");
  EXPECT_EQ(damaged.releases, 1);
  EXPECT_EQ(opened, nullptr);
  Lent apart(program, 8);
  expect_usage(apart.open(&opened), "the image begins 8 bytes after a multiple of 64");
  EXPECT_EQ(apart.releases, 1);
  Lent nowhere(program);
  expect_usage(nowhere.open(nullptr), "the pointer to the program is null");
  EXPECT_EQ(nowhere.releases, 1);
  Lent optioned(program);
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  options.size = 1;
  expect_usage(optioned.open(&opened, &options), "options.size is 1");
  EXPECT_EQ(optioned.releases, 1);
  Lent absent(program);
  expect_usage(fvm_program_open_borrowed(nullptr, 0, Lent::release, &absent, nullptr, &opened),
               "the image is null");
  EXPECT_EQ(absent.releases, 1);
}

TEST(CApiBorrowed, MayHaveNothingToRelease) {
  const Program program = rich_program();  // its image is aligned
  fvm_program* opened = nullptr;
  const auto image = program.image();
  ASSERT_EQ(fvm_program_open_borrowed(image.data(), image.size(), nullptr, nullptr, nullptr, &opened), FVM_OK)
      << fvm_last_error();
  EXPECT_EQ(fvm_program_close(opened), FVM_OK);
  for (std::size_t size = 0; size < 300; size += 7)
    EXPECT_EQ(fvm_program_open_borrowed(image.data(), size, nullptr, nullptr, nullptr, &opened), FVM_REFUSED);
}

}  // namespace
}  // namespace forestvm::test::test_c_api_texts
