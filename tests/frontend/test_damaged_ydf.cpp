// Damaged YDF models: each is refused with its place, or loads and predicts; nothing crashes or hangs.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include <forestvm/internal/reference.hpp>

#include "ydf_copy.hpp"

namespace forestvm::test::test_damaged_ydf {
namespace {

void survive(const YdfCopy& copy) {
  const Result<Model> model = copy.load();
  if (!model.ok()) {
    EXPECT_FALSE(model.error().where.empty()) << model.error().message;
    EXPECT_EQ(model.error().text().find('\n'), std::string::npos);
    return;
  }
  const std::vector<float> row(model->num_features, 0.5f);
  EXPECT_TRUE(reference_predict(*model, row, 1).ok());
}

struct Damaged {
  const char* model;
  std::vector<const char*> files;
};

const std::vector<Damaged> kModels = {
    {"isolation", {kYdfHeader, kYdfColumns, "isolation_forest_header.pb", kYdfNodes}},
    {"binary", {kYdfColumns, kYdfBoosted}},
    {"forest_votes", {"random_forest_header.pb"}},
    {"cart_gzip", {kYdfNodes}},
};

TEST(DamagedYdf, EveryTruncation) {
  for (const Damaged& damaged : kModels)
    for (const char* file : damaged.files) {
      const YdfCopy copy(damaged.model);
      const std::string good = copy.bytes(file);
      for (std::size_t length = 0; length < good.size(); length += length < 300 ? 1 : 7) {
        copy.write(file, good.substr(0, length));
        survive(copy);
      }
    }
}

TEST(DamagedYdf, BytesReplaced) {
  for (const Damaged& damaged : kModels)
    for (const char* file : damaged.files) {
      const YdfCopy copy(damaged.model);
      const std::string good = copy.bytes(file);
      for (std::size_t at = 0; at < good.size(); ++at)
        for (const char byte : {'\x7f', '\xff'}) {
          std::string bytes = good;
          bytes[at] = byte;
          copy.write(file, bytes);
          survive(copy);
        }
    }
}

/// Conditions of every kind: numbers, lists, bitmaps, missing values, oblique sums.
TEST(DamagedYdf, Nodes) {
  for (const char* name : {"binary", "binary_missing", "oblique", "discretized", "forest_shares"}) {
    const YdfCopy copy(name);
    const std::string good = copy.bytes(kYdfNodes);
    for (std::size_t at = 0; at < good.size() && at < 900; at += 3) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      copy.write(kYdfNodes, bytes);
      survive(copy);
    }
  }
}

}  // namespace
}  // namespace forestvm::test::test_damaged_ydf
