// Writes the small models as JSON and as UBJSON, in XGBoost's own layout (keys sorted, typed arrays).
#include "small_xgboost.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <stdexcept>

namespace forestvm::test {
namespace {

class JsonWriter {
 public:
  void begin_object() { start('{'); }
  void end_object() { finish('}'); }
  void begin_array(std::size_t) { start('['); }
  void end_array() { finish(']'); }
  void key(const std::string& name) {
    comma();
    out += '"' + name + "\":";
    fresh_ = true;
  }
  void text(const std::string& value) {
    comma();
    out += '"' + value + '"';
  }
  void integers(const std::vector<int>& values) {
    begin_array(values.size());
    for (const int value : values) {
      comma();
      out += std::to_string(value);
    }
    end_array();
  }
  void flags(const std::vector<int>& values, bool words) {
    if (!words) return integers(values);
    begin_array(values.size());
    for (const int value : values) {
      comma();
      out += value != 0 ? "true" : "false";
    }
    end_array();
  }
  void reals(const std::vector<float>& values) {
    begin_array(values.size());
    for (const float value : values) {
      comma();
      std::array<char, 32> digits;
      const auto end =
          std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific)
              .ptr;
      out.append(digits.data(), end);
    }
    end_array();
  }

  std::string out;

 private:
  void comma() {
    if (!fresh_) out += ',';
    fresh_ = false;
  }
  void start(char bracket) {
    comma();
    out += bracket;
    fresh_ = true;
  }
  void finish(char bracket) {
    out += bracket;
    fresh_ = false;
  }
  bool fresh_ = true;
};

class UbjWriter {
 public:
  void begin_object() { out += '{'; }
  void end_object() { out += '}'; }
  void begin_array(std::size_t count) {
    out += "[#L";
    big_endian(count);
  }
  void end_array() {}
  void key(const std::string& name) {
    out += 'L';
    big_endian(std::uint64_t{name.size()});
    out += name;
  }
  void text(const std::string& value) {
    out += 'S';
    key(value);
  }
  void integers(const std::vector<int>& values) {
    typed('l', values.size());
    for (const int value : values) big_endian(static_cast<std::uint32_t>(value));
  }
  void flags(const std::vector<int>& values, bool) {
    typed('U', values.size());
    for (const int value : values) out += static_cast<char>(value);
  }
  void reals(const std::vector<float>& values) {
    typed('d', values.size());
    for (const float value : values) big_endian(std::bit_cast<std::uint32_t>(value));
  }

  std::string out;

 private:
  void typed(char type, std::size_t count) {
    out += "[$";
    out += type;
    out += "#L";
    big_endian(std::uint64_t{count});
  }
  template <class Unsigned>
  void big_endian(Unsigned value) {
    for (std::size_t i = sizeof value; i-- > 0;) out += static_cast<char>((value >> (8 * i)) & 0xff);
  }
};

template <class Writer>
void write_tree(Writer& to, const SmallXgboost& model, const SmallTree& tree, std::size_t number) {
  to.begin_object();
  to.key("base_weights");
  to.reals(tree.base_weights.empty() ? std::vector<float>(tree.left.size(), 0.1f) : tree.base_weights);
  to.key("categories"), to.integers(tree.categories);
  to.key("categories_nodes"), to.integers(tree.categories_nodes);
  to.key("categories_segments"), to.integers(tree.categories_segments);
  to.key("categories_sizes"), to.integers(tree.categories_sizes);
  to.key("default_left"), to.flags(tree.default_left, model.flags_as_words);
  to.key("id"), to.text(std::to_string(number));
  if (!tree.leaf_weights.empty()) to.key("leaf_weights"), to.reals(tree.leaf_weights);
  to.key("left_children"), to.integers(tree.left);
  to.key("right_children"), to.integers(tree.right);
  to.key("split_conditions"), to.reals(tree.condition);
  to.key("split_indices"), to.integers(tree.feature);
  if (model.split_types) to.key("split_type"), to.flags(tree.split_type, false);
  to.key("sum_hessian"), to.reals(std::vector<float>(tree.left.size(), 4.0f));
  to.key("tree_param");
  to.begin_object();
  to.key("num_deleted"), to.text("0");
  to.key("num_nodes"), to.text(std::to_string(tree.left.size()));
  to.key("size_leaf_vector"), to.text(tree.size_leaf_vector);
  to.end_object();
  to.end_object();
}

template <class Writer>
void write_categories(Writer& to, const SmallXgboost& model) {
  to.begin_object();
  to.key("enc");
  to.begin_array(model.categories.size());
  for (const SmallCategories& feature : model.categories) {
    to.begin_object();
    if (!feature.offsets.empty()) to.key("offsets"), to.integers(feature.offsets);
    to.key("values"), to.integers(feature.values);
    to.end_object();
  }
  to.end_array();
  to.end_object();
}

template <class Writer>
void write_forest(Writer& to, const SmallXgboost& model) {
  to.begin_object();
  to.key("cats"), write_categories(to, model);
  to.key("gbtree_model_param");
  to.begin_object();
  to.key("num_parallel_tree"), to.text(model.num_parallel_tree);
  to.key("num_trees"), to.text(std::to_string(model.trees.size()));
  to.end_object();
  if (model.iteration_indptr) to.key("iteration_indptr"), to.integers(*model.iteration_indptr);
  to.key("tree_info"), to.integers(model.tree_info);
  to.key("trees");
  to.begin_array(model.trees.size());
  for (std::size_t i = 0; i < model.trees.size(); ++i) write_tree(to, model, model.trees[i], i);
  to.end_array();
  to.end_object();
}

template <class Writer>
void write_booster(Writer& to, const SmallXgboost& model) {
  to.begin_object();
  if (model.booster == "dart") {
    to.key("gbtree");
    to.begin_object();
    to.key("model"), write_forest(to, model);
    to.key("name"), to.text("gbtree");
    to.end_object();
    to.key("name"), to.text(model.booster);
    to.key("weight_drop"), to.reals(model.weight_drop);
  } else {
    to.key("model"), write_forest(to, model);
    to.key("name"), to.text(model.booster);
  }
  to.end_object();
}

template <class Writer>
std::string write(const SmallXgboost& model) {
  Writer to;
  to.begin_object();
  to.key("learner");
  to.begin_object();
  to.key("attributes");
  to.begin_object();
  if (!model.best_iteration.empty()) to.key("best_iteration"), to.text(model.best_iteration);
  to.end_object();
  to.key("feature_names");
  to.begin_array(model.feature_names.size());
  for (const std::string& name : model.feature_names) to.text(name);
  to.end_array();
  to.key("gradient_booster"), write_booster(to, model);
  to.key("learner_model_param");
  to.begin_object();
  to.key("base_score"), to.text(model.base_score);
  to.key("num_class"), to.text(model.num_class);
  to.key("num_feature"), to.text(model.num_feature);
  if (model.num_target) to.key("num_target"), to.text(*model.num_target);
  to.end_object();
  to.key("objective");
  to.begin_object();
  to.key("name"), to.text(model.objective);
  to.end_object();
  to.end_object();
  to.key("version"), to.integers(model.version);
  to.end_object();
  return to.out;
}

}  // namespace

std::string SmallXgboost::json() const { return write<JsonWriter>(*this); }
std::string SmallXgboost::ubj() const { return write<UbjWriter>(*this); }

}  // namespace forestvm::test
