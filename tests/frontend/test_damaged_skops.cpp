// Damaged .skops files and estimators that are not supported: each is refused with its place and one sentence; nothing
// crashes, hangs or takes much memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "damaged.hpp"
#include "load_text.hpp"
#include "small_skops.hpp"

namespace forestvm::test::test_damaged_skops {
namespace {

/// Returns the small file after a change.
std::string changed(const std::function<void(SmallSkops&)>& change) {
  SmallSkops small;
  change(small);
  return small.file();
}

/// Returns the small file with another text in one of its entries, or in its schema.
std::string with_text(const std::string& entry, const std::string& from, const std::string& to) {
  SmallSkops small;
  std::map<std::string, std::string> all = small.entries;
  all["schema.json"] = small.schema();
  all[entry] = replaced(all[entry], from, to);
  return zip_of(all);
}

/// Returns the small file with another number in an array. `offset` counts bytes from the first item.
template <class Number>
std::string with_number(const std::string& entry, std::size_t offset, Number number) {
  return changed([&](SmallSkops& small) {
    std::string& file = small.entries[entry];
    std::memcpy(file.data() + file.find('\n') + 1 + offset, &number, sizeof number);
  });
}

struct Damage {
  const char* name;
  std::string file, sentence;
};

TEST(SmallSkopsFile, IsRead) {
  const Model model = loaded(SmallSkops{}.file());
  EXPECT_EQ(model.format, "skops");
  EXPECT_EQ(model.trainer, "scikit-learn");
  EXPECT_EQ(model.version, "1.9.1");
  EXPECT_EQ(model.objective, "RandomForestClassifier");
  EXPECT_EQ(model.class_labels, (std::vector<std::string>{"no", "yes"}));
  ASSERT_EQ(model.trees.size(), 2u);
  const Node& split = model.trees[0].nodes[1];
  EXPECT_EQ(split.feature, 0u);
  EXPECT_EQ(split.threshold,
            static_cast<double>(std::nextafter(1e-3f, 0.0f)));  // the float32 next to 1e-3 is above it
  EXPECT_TRUE(model.trees[0].nodes[0].missing_left);
  EXPECT_FALSE(split.missing_left);
}

TEST(DamagedSkops, Arrays) {
  const std::string first = "schema.json: estimators_[0].tree_";
  const Damage cases[] = {
      {"a child out of range", with_number<std::int64_t>("nodes.npy", 8, 5),
       first + ", node 0: child 5 is not behind it, or does not exist: the tree has 5 nodes"},
      {"a cycle", with_number<std::int64_t>("nodes.npy", 64, 0),
       first + ", node 1: child 0 is not behind it, or does not exist: the tree has 5 nodes"},
      {"a child of 64 bits", with_number<std::int64_t>("nodes.npy", 0, std::int64_t{1} << 32),
       first + ", node 0: child 4294967296 is not behind it, or does not exist: the tree has 5 nodes"},
      {"a leaf with one child", with_number<std::int64_t>("nodes.npy", 64, -1),
       first + ", node 1: has a right child and no left one"},
      {"a child twice", with_number<std::int64_t>("nodes.npy", 64, 3),
       "schema.json: estimators_[0]: tree 0, node 1: child 3 is reached twice: a cycle or a shared subtree"},
      {"a feature too large", with_number<std::int64_t>("nodes.npy", 16, 3),
       first + ", node 0: feature 3 does not exist: the tree has 3"},
      {"a negative feature", with_number<std::int64_t>("nodes.npy", 16, -2),
       first + ", node 0: feature -2 does not exist: the tree has 3"},
      {"a threshold that is not a number",
       with_number("nodes.npy", 24, std::numeric_limits<double>::quiet_NaN()),
       "schema.json: estimators_[0]: tree 0, node 0: the threshold is not finite, or not exact in the model's type"},
      {"a value that is not finite",
       with_number("values.npy", 4 * 8, std::numeric_limits<double>::infinity()), ""},
      {"counts where fractions belong", with_number("values.npy", 0, 12.0), ""},
      {"other shapes", with_text("values.npy", "(5, 1, 2)", "(5, 2, 1)"), ""},
      {"fewer values", with_text("values.npy", "(5, 1, 2)", "(4, 1, 2)"),
       first + ".values (values.npy): the array declares 8 items of 8 bytes, but 80 bytes follow"},
      {"a shape beyond 64 bits", changed([](SmallSkops& small) {
         small.entries["values.npy"] = npy("'<f8'", "(4294967296, 4294967296, 2)", "");
       }),
       first + ".values (values.npy): a NumPy array that cannot be read: its shape is too large"},
      {"big-endian", with_text("values.npy", "<f8", ">f8"), ""},
      {"Python objects", with_text("values.npy", "<f8", "|O8"), ""},
      {"no type", with_text("values.npy", "'descr'", "'dtype'"), ""},
      {"Fortran order", with_text("values.npy", "False", "True "),
       first + ".values (values.npy): a NumPy array that cannot be read: it is in Fortran order"},
      {"a field is missing", with_text("nodes.npy", "left_child", "left_chill"),
       first + ".nodes: the items have no field \"left_child\""},
      {"integers are floats", with_text("nodes.npy", "('feature', '<i8')", "('feature', '<f8')"),
       first + ".nodes: expected integers in the field \"feature\", found NumPy's kind 'f'"},
      {"an entry is missing", with_text("schema.json", "nodes.npy", "modes.npy"),
       "entry \"modes.npy\" of the zip archive: is missing"},
  };
  for (const Damage& row : cases) {
    const auto error = refusal_of(row.name, row.file);
    if (error && !row.sentence.empty()) {
      EXPECT_EQ(error->text(), row.sentence) << row.name;
    }
  }
}

TEST(DamagedSkops, Schema) {
  const auto attribute = [](const std::string& name, const std::string& object) {
    return changed([&](SmallSkops& small) { small.attributes[name] = object; });
  };
  const Damage cases[] = {
      {"an old release", changed([](SmallSkops& small) { small.version = "\"1.0.2\""; }),
       "schema.json: _sklearn_version: written by scikit-learn \"1.0.2\": releases 1.1 to 1.9 are known; load and save it with one of them"},
      {"a later release", changed([](SmallSkops& small) { small.version = "\"1.10.0\""; }), ""},
      {"a damaged release", changed([](SmallSkops& small) { small.version = "\"new\""; }), ""},
      {"no release", changed([](SmallSkops& small) { small.version = "null"; }), ""},
      {"no features", attribute("n_features_in_", json_value("0")),
       "schema.json: n_features_in_: 0 is not within 1 and 16777216"},
      {"features without end", attribute("n_features_in_", json_value("99999999999")), ""},
      {"a text for a number", attribute("n_features_in_", json_value("\"3\"")),
       "schema.json: n_features_in_: expected an integer, found \"3\""},
      {"no JSON inside", attribute("n_features_in_", json_value("3x")),
       "schema.json: n_features_in_: not a value that Python writes: \"3x\""},
      {"names for other features", attribute("feature_names_in_", json_list({json_value("\"a\"")})),
       "schema.json: feature_names_in_: 1 names for 3 features"},
      {"no trees", attribute("estimators_", json_list({})),
       "schema.json: estimators_: an ensemble of no trees"},
      {"trees that are no list", attribute("estimators_", json_value("7")),
       "schema.json: estimators_: expected a list, found builtins.str"},
      {"not fitted", changed([](SmallSkops& small) { small.attributes.erase("estimators_"); }),
       "schema.json: RandomForestClassifier has no estimators_: it was not fitted"},
      {"another member", attribute("estimators_", json_list({json_object("sklearn.svm._classes.SVC", {})})),
       "schema.json: estimators_[0]: an ensemble of sklearn.svm._classes.SVC: only ensembles of decision trees are read"},
      {"three classes", changed([](SmallSkops& small) {
         small.entries["classes.npy"] = npy("'<i8'", "(1,)", std::string(8, '\0'));
       }),
       "schema.json: estimators_[0]: a tree of 1 outputs and 2 classes instead of 1 and 1"},
      {"a later protocol", with_text("schema.json", "\"protocol\": 2", "\"protocol\": 3"),
       "schema.json: protocol 3 of skops: 0 to 2 are known"},
      {"no class",
       with_text("schema.json", "{\"__class__\": \"RandomForestClassifier\"",
                 "{\"class\": \"RandomForestClassifier\""),
       "schema.json: not a file that skops wrote: an object has no __class__"},
      {"a number for an object", attribute("n_outputs_", "1"),
       "schema.json: n_outputs_: expected an object, found a number"},
      {"a list of numbers", attribute("estimators_", json_list({"1", "2"})),
       "schema.json: estimators_[0]: expected an object, found a number"},
  };
  for (const Damage& row : cases) {
    const auto error = refusal_of(row.name, row.file);
    if (error && !row.sentence.empty()) {
      EXPECT_EQ(error->text(), row.sentence) << row.name;
    }
  }
}

TEST(DamagedSkops, Archive) {
  const std::string good = SmallSkops{}.file();
  const std::size_t directory = good.find("PK\x01\x02");
  const auto with_bytes = [&](std::size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  const Damage cases[] = {
      {"another archive", zip_of({{"readme.txt", "hello"}}),
       "byte 0: a zip archive without schema.json, so no .skops file: unpack it first"},
      {"encrypted", with_bytes(directory + 8, "\x01"),
       "entry \"classes.npy\" of the zip archive: is encrypted"},
      {"another compression", with_bytes(directory + 10, "\x0e"),
       "entry \"classes.npy\" of the zip archive: has the compression method 14: save it stored or deflated (zipfile.ZIP_DEFLATED)"},
      {"another checksum", with_bytes(directory + 16, "...."),
       "entry \"classes.npy\" of the zip archive: its checksum is wrong: the file is damaged"},
      {"elsewhere", with_bytes(directory + 42, "\xff\xff\xff\x7f"),
       "entry \"classes.npy\" of the zip archive: is not where the table of contents says"},
      {"too large", with_bytes(directory + 20, "\xff\xff\xff\x7f\xff\xff\xff\x7f"), ""},
      {"not deflated", with_bytes(directory + 10, "\x08"), ""},
      {"another name", with_bytes(directory + 46, "Classes"), ""},
  };
  for (const Damage& row : cases) {
    const auto error = refusal_of(row.name, row.file);
    if (error && !row.sentence.empty()) {
      EXPECT_EQ(error->text(), row.sentence) << row.name;
    }
  }
}

/// Small files that ask for much memory.
TEST(DamagedSkops, Bombs) {
  // Trees that share their arrays are many times the file in memory.
  const auto shared = refusal_of(
      "a shared entry", changed([](SmallSkops& small) {
        small.entries["nodes.npy"] = npy(kSkopsNodeType, "(5000,)", std::string(5000 * 64, '\xff'));
        small.entries["values.npy"] =
            npy("'<f8'", "(5000, 1, 2)", bytes_of_numbers(std::vector<double>(10'000, 0.5)));
        small.attributes["estimators_"] = json_list(std::vector<std::string>(100, SmallSkops::tree()));
      }));
  ASSERT_TRUE(shared);
  EXPECT_NE(shared->message.find("too many objects share it"), std::string::npos) << shared->text();
  // Leaves of 60,000 classes, of which each tree knows two.
  const auto wide = refusal_of(
      "wide leaves", changed([](SmallSkops& small) {
        small.type = "sklearn.ensemble._bagging.BaggingClassifier";
        small.entries["many.npy"] = npy("'<i4'", "(60000,)", std::string(240'000, '\0'));
        small.entries["classes.npy"] = npy("'<i8'", "(2,)", std::string(16, '\0'));
        small.entries["features.npy"] = npy("'<i8'", "(3,)", std::string(24, '\0'));
        small.attributes["classes_"] = json_array("many.npy");
        small.attributes["n_estimators"] = json_value("100");
        small.attributes["estimators_"] = json_list(std::vector<std::string>(100, SmallSkops::tree()));
        small.attributes["estimators_features_"] =
            json_list(std::vector<std::string>(100, json_array("features.npy")));
      }));
  ASSERT_TRUE(wide);
  EXPECT_NE(wide->message.find("much more memory than the file"), std::string::npos) << wide->text();
}

TEST(RefusedSkops, Estimators) {
  const auto object = [](const std::string& type, std::map<std::string, std::string> attributes) {
    attributes["_sklearn_version"] = json_value("\"1.9.1\"");
    attributes["n_features_in_"] = json_value("3");
    return zip_of({{"schema.json", schema_of(json_object(type, attributes))}});
  };
  const auto steps = [](const std::string& first) {
    return json_list({json_list({json_value("\"scale\""), first}),
                      json_list({json_value("\"trees\""), SmallSkops::tree()})});
  };
  const std::string scaler = json_object("sklearn.preprocessing._data.StandardScaler", {});
  const std::string boosting = "sklearn.ensemble._gb.GradientBoostingRegressor";
  const Damage cases[] = {
      {"no trees", object("sklearn.linear_model._base.LinearRegression", {}),
       "schema.json: sklearn.linear_model._base.LinearRegression is not a supported estimator of trees: see docs/formats.md"},
      {"a name of another package", object("mine.RandomForestClassifier", {}), ""},
      {"a scaler", object("sklearn.pipeline.Pipeline", {{"steps", steps(scaler)}}),
       "schema.json: steps[0][1]: the step \"scale\" of the Pipeline, sklearn.preprocessing._data.StandardScaler, changes the rows, which is not supported: save the last step alone and transform the rows before"},
      {"nothing at the end",
       object("sklearn.pipeline.Pipeline",
              {{"steps", json_list({json_list({json_value("\"last\""), json_value("\"passthrough\"")})})}}),
       "schema.json: steps[0][1]: the last step \"last\" predicts nothing"},
      {"the user's own start",
       object(boosting, {{"loss", json_value("\"squared_error\"")},
                         {"init", json_object("sklearn.svm._classes.SVR", {})}}),
       "schema.json: init: init=SVR: scores that start from another estimator's are not supported"},
      {"another loss", object(boosting, {{"loss", json_value("\"tweedie\"")}}),
       "schema.json: loss: unknown loss \"tweedie\""},
  };
  for (const Damage& row : cases) {
    const auto error = refusal_of(row.name, row.file);
    if (error && !row.sentence.empty()) {
      EXPECT_EQ(error->text(), row.sentence) << row.name;
    }
  }
}

/// The median of an AdaBoostRegressor's trees needs a weight and one value of each.
TEST(RefusedSkops, AdaBoostRegressors) {
  const auto regressor = [](std::vector<double> weights, std::size_t values) {
    return changed([&](SmallSkops& small) {
      small.type = "sklearn.ensemble._weight_boosting.AdaBoostRegressor";
      small.attributes["estimator_weights_"] = json_array("weights.npy");
      small.entries["weights.npy"] =
          npy("'<f8'", "(" + std::to_string(weights.size()) + ",)", bytes_of_numbers(weights));
      small.entries["values.npy"] = npy("'<f8'", "(5, 1, " + std::to_string(values) + ")",
                                        bytes_of_numbers(std::vector<double>(5 * values, 0.5)));
    });
  };
  const Damage cases[] = {
      {"a weight is missing", regressor({1}, 1), "schema.json: estimator_weights_: 1 weights for 2 trees"},
      {"a weight without end", regressor({1, std::numeric_limits<double>::infinity()}, 1),
       "model: a base margin is not finite"},
      {"trees of classes", regressor({1, 1}, 2),
       "schema.json: estimators_[0]: a tree of 1 outputs and 2 values each instead of 1 and 1"},
  };
  for (const Damage& row : cases) {
    const auto error = refusal_of(row.name, row.file);
    if (error) {
      EXPECT_EQ(error->text(), row.sentence) << row.name;
    }
  }
}

TEST(RefusedSkops, Pickles) {
  for (const std::string& opening : {std::string("\x80\x04\x95", 3), std::string("\x80\x05", 2),
                                     std::string("x\x9c\xed"), std::string("x\x01")}) {
    const auto error = refusal_of(opening, opening + std::string(20, '.'));
    ASSERT_TRUE(error);
    EXPECT_NE(error->message.find("skops.io.dump"), std::string::npos) << error->text();
    const auto packed = refusal_of(opening, gzip(opening + std::string(20, '.')));
    ASSERT_TRUE(packed);
    EXPECT_EQ(packed->message, error->message);
  }
}

TEST(SweepSkops, EveryTruncationIsRefused) {
  const std::string good = SmallSkops{}.file();
  for (std::size_t length = 0; length < good.size(); ++length)
    refusal_of(std::to_string(length), good.substr(0, length));
}

TEST(SweepSkops, EveryBitFlipIsRefusedOrSafe) { survive_bit_flips({SmallSkops{}.file()}); }

/// Every entry is changed inside a whole archive, so that no checksum hides the damage.
TEST(SweepSkops, EveryChangeOfAnEntryIsRefusedOrSafe) {
  SmallSkops small;
  std::map<std::string, std::string> all = small.entries;
  all["schema.json"] = small.schema();
  for (const auto& [name, content] : all)
    for (std::size_t at = 0; at < content.size(); ++at)
      for (const char byte : {'\0', '\xff', '9', '"'}) {
        auto damaged = all;
        damaged[name][at] = byte;
        survive(zip_of(damaged));
      }
}

TEST(SweepSkops, EveryEntryCutShortIsRefused) {
  SmallSkops small;
  std::map<std::string, std::string> all = small.entries;
  all["schema.json"] = small.schema();
  for (const auto& [name, content] : all)
    for (std::size_t length = 0; length < content.size(); length += 7) {
      auto damaged = all;
      damaged[name].resize(length);
      refusal_of(name + ", " + std::to_string(length), zip_of(damaged));
    }
}

TEST(SweepSkops, NumbersReplaced) {
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{99'999}, std::int64_t{0x7fff'ffff},
                                    std::numeric_limits<std::int64_t>::max()})
    for (const char* entry : {"nodes.npy", "values.npy"})
      for (std::size_t at = 0; at < 10 * 8; at += 8) survive(with_number(entry, at, number));
}

}  // namespace
}  // namespace forestvm::test::test_damaged_skops
