// See damaged.hpp.
#include "damaged.hpp"

#include <gtest/gtest.h>

#include <forestvm/internal/reference.hpp>

#include "load_text.hpp"

namespace forestvm::test {

std::optional<Error> refusal_of(const std::string& name, const std::string& text) {
  const Result<Model> model = load_text(text);
  EXPECT_FALSE(model.ok()) << name;
  if (model.ok()) return std::nullopt;
  const Error& error = model.error();
  EXPECT_EQ(error.code, ErrorCode::Refused) << name << ": " << error.text();
  EXPECT_FALSE(error.where.empty()) << name << ": " << error.text();
  EXPECT_GE(error.message.size(), 8u) << name;
  EXPECT_LE(error.text().size(), 400u) << name << ": " << error.text();
  for (const char c : error.text()) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << name;
  return error;
}

void survive(const std::string& text) {
  const Result<Model> model = load_text(text);
  if (!model.ok()) {
    EXPECT_FALSE(model.error().where.empty()) << model.error().message;
    EXPECT_EQ(model.error().text().find('\n'), std::string::npos);
    return;
  }
  if (model->num_features > 1000) return;
  std::vector<float> row(model->num_features, 0.5f);
  for (const std::uint32_t feature : model->hashed_features) row[feature] = 1;
  EXPECT_TRUE(reference_predict(*model, row, 1).ok());
}

void survive_bit_flips(const std::vector<std::string>& files) {
  for (const std::string& good : files)
    for (std::size_t at = 0; at < good.size(); ++at)
      for (int bit = 0; bit < 8; ++bit) {
        std::string text = good;
        text[at] = static_cast<char>(text[at] ^ (1 << bit));
        survive(text);
      }
}

void survive_bytes_replaced(const std::vector<std::string>& files, std::initializer_list<char> bytes) {
  for (const std::string& good : files)
    for (std::size_t at = 0; at < good.size(); ++at)
      for (const char byte : bytes) {
        std::string text = good;
        text[at] = byte;
        survive(text);
      }
}

}  // namespace forestvm::test
