// See small_catboost.hpp.
#include "small_catboost.hpp"

#include <algorithm>

namespace forestvm::test {
namespace {

template <class Number>
std::string bytes(Number value) {
  return FlatTableText::bytes_of_number(value);
}

/// Sets the reference at `at` to what is written next.
void refer(std::size_t at, std::string& out) {
  out.replace(at, 4, bytes(static_cast<std::uint32_t>(out.size() - at)));
}

/// Two numbers side by side, as FlatBuffers has them in structures.
template <class First, class Second>
struct Twin {
  First first;
  Second second;
};

}  // namespace

FlatTableText& FlatTableText::add(Field field) {
  fields_.push_back(std::move(field));
  return *this;
}

FlatTableText& FlatTableText::texts(unsigned field, const std::vector<std::string>& values) {
  return add({field, Kind::Texts, 0, {}, values, {}});
}

FlatTableText& FlatTableText::table(unsigned field, FlatTableText value) {
  return add({field, Kind::Table, 0, {}, {}, {std::move(value)}});
}

FlatTableText& FlatTableText::tables(unsigned field, std::vector<FlatTableText> values) {
  return add({field, Kind::Tables, 0, {}, {}, std::move(values)});
}

/// Appends the table's vtable, the table, and what its fields refer to.
void FlatTableText::write(std::string& out) const {
  // A reference to a table points behind its vtable.
  const auto write_table = [&out](const FlatTableText& table, std::size_t reference) {
    std::string inner;
    table.write(inner);
    const auto vtable_size = static_cast<unsigned char>(inner[0]);
    out.replace(reference, 4, bytes(static_cast<std::uint32_t>(out.size() + vtable_size - reference)));
    out += inner;
  };
  unsigned slots = 0;
  for (const Field& field : fields_) slots = std::max(slots, field.number + 1);
  const std::size_t vtable = out.size(), vtable_size = 4 + 2 * std::size_t{slots};
  out += bytes(static_cast<std::uint16_t>(vtable_size)) + std::string(vtable_size - 2, '\0');
  const std::size_t table = out.size();
  out += bytes(static_cast<std::int32_t>(table - vtable));
  std::vector<std::size_t> offsets;
  for (const Field& field : fields_) {
    offsets.push_back(out.size());
    out.replace(vtable + 4 + 2 * std::size_t{field.number}, 2,
                bytes(static_cast<std::uint16_t>(out.size() - table)));
    out += field.kind == Kind::Inline ? field.bytes : std::string(4, '\0');
  }
  out.replace(vtable + 2, 2, bytes(static_cast<std::uint16_t>(out.size() - table)));
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    if (field.kind == Kind::Inline) continue;
    if (field.kind == Kind::Table) {
      write_table(field.tables[0], offsets[i]);
      continue;
    }
    refer(offsets[i], out);
    const std::size_t count = field.count + field.texts.size() + field.tables.size();
    out += bytes(static_cast<std::uint32_t>(count)) + field.bytes;
    if (field.kind == Kind::List) continue;
    const std::size_t elements = out.size();
    out.append(4 * count, '\0');
    for (std::size_t k = 0; k < field.tables.size(); ++k) write_table(field.tables[k], elements + 4 * k);
    for (std::size_t k = 0; k < field.texts.size(); ++k) {
      refer(elements + 4 * k, out);
      out += sized(field.texts[k]);
    }
  }
}

std::string FlatTableText::message() const {
  std::string inner;
  write(inner);
  std::uint16_t size = 0;
  inner.copy(reinterpret_cast<char*>(&size), 2);
  return bytes(static_cast<std::uint32_t>(4 + size)) + inner;
}

std::string sized(const std::string& text) { return bytes(static_cast<std::uint32_t>(text.size())) + text; }

namespace {

FlatTableText counter_base(std::int8_t type) {
  FlatTableText combination;
  combination.numbers<std::int32_t>(0, {0});
  FlatTableText base;
  base.table(0, std::move(combination)).number(1, type);
  return base;
}

}  // namespace

std::string SmallCatboost::core() const {
  FlatTableText trees;
  trees.number(0, dimension).numbers(1, splits).numbers(2, sizes).numbers(3, starts).numbers(8, leaf_values);
  if (!leaf_weights.empty()) trees.numbers(9, leaf_weights);
  std::vector<FlatTableText> floats(2);
  floats[0].number(0, std::uint8_t{has_nans}).number(1, 0).number(2, flat_indices[0]).numbers(3, borders);
  floats[0].text(4, "age").number(5, nan_treatment);
  floats[1].number(1, 1).number(2, flat_indices[1]).numbers(3, std::vector<float>{-1});
  std::vector<FlatTableText> categories(1);
  categories[0].number(0, 0).number(1, flat_indices[2]).text(2, "city");
  trees.tables(4, std::move(categories)).tables(5, std::move(floats));
  if (!codes.empty()) {
    std::vector<FlatTableText> one_hots(1);
    one_hots[0].number(0, 0).numbers(1, codes);
    trees.tables(6, std::move(one_hots));
  }
  if (counter) {
    FlatTableText ctr;
    ctr.table(0, counter_base(counter_type)).number(1, target_border).number(2, 0.5f);
    std::vector<FlatTableText> features(1);
    features[0].table(0, std::move(ctr)).numbers(1, std::vector<float>{0.5f});
    trees.tables(7, std::move(features));
  }
  if (!steps.empty()) {
    std::vector<Twin<std::uint16_t, std::uint16_t>> pairs;
    for (const auto& [left, right] : steps) pairs.push_back({left, right});
    trees.numbers(10, pairs).numbers(11, leaves);
  }
  if (refused_features != 0) trees.tables(refused_features, std::vector<FlatTableText>(1));
  trees.number(14, scale).numbers(16, bias);

  std::vector<FlatTableText> info(2);
  info[0].text(0, "params").text(1, "{\"loss_function\":{\"type\":\"" + loss + "\",\"params\":{}}}");
  info[1].text(0, "catboost_version_info").text(1, "Branch: tags/v1.2.10\n");
  if (!class_params.empty()) info.emplace_back().text(0, "class_params").text(1, class_params);
  if (!threshold.empty()) info.emplace_back().text(0, "binclass_probability_threshold").text(1, threshold);
  FlatTableText root;
  root.text(0, format_version).table(1, std::move(trees)).tables(2, std::move(info));
  std::vector<std::string> ids = part_ids;
  if (counter && !leave_out_table) ids.push_back("static_provider_v1");
  if (!ids.empty()) root.texts(3, ids);
  return root.message();
}

std::string SmallCatboost::cbm() const {
  std::string out = "CBM1" + sized(core());
  if (!counter || leave_out_table) return out;
  std::string index;
  for (const auto& [key, row] : slots) index += bytes(key) + bytes(row);
  std::string blob;
  for (const std::int32_t count : counts) blob += bytes(count);
  FlatTableText table;
  table.table(0, counter_base(counter_type))
      .text(1, index)
      .text(2, blob)
      .number(3, denominator)
      .number(4, classes);
  return out + bytes(std::uint32_t{1}) + sized(table.message());
}

std::string small_catboost_json() {
  return R"({"ctr_data":{"table of city":{"counter_denominator":0,"hash_map":["18446744073709551615",0,0,"7",1,3],)"
         R"("hash_stride":3}},"features_info":{"categorical_features":[{"feature_id":"city","feature_index":0,)"
         R"("flat_feature_index":2,"values":[5,-6]}],"ctrs":[{"borders":[0.5],"ctr_type":"Borders","elements":[)"
         R"({"cat_feature_index":0,"combination_element":"cat_feature_value"}],"identifier":"table of city",)"
         R"("prior_denomerator":1,"prior_numerator":0.5,"scale":1,"shift":0,"target_border_idx":0}],"float_features":[)"
         R"({"borders":[0.5,1.5],"feature_id":"age","feature_index":0,"flat_feature_index":0,"has_nans":true,)"
         R"("nan_value_treatment":"AsTrue"},{"borders":null,"feature_id":"","feature_index":1,"flat_feature_index":1,)"
         R"("has_nans":false,"nan_value_treatment":"AsIs"}]},"model_info":{"catboost_version_info":"tags/v1.2.10 ",)"
         R"("class_params":{"class_label_type":"String","class_names":["no","yes"],"class_to_label":[0,1],)"
         R"("classes_count":0},"params":{"loss_function":{"params":{},"type":"Logloss"}}},"oblivious_trees":[)"
         R"({"leaf_values":[1,2,4,8],"leaf_weights":[1,1,1,1],"splits":[{"split_index":1,"split_type":"FloatFeature"},)"
         R"({"split_index":3}]},{"leaf_values":[16],"splits":[]},{"leaf_values":[32,64],"splits":[{"split_index":4}]}],)"
         R"("scale_and_bias":[1,[0.25]]})";
}

std::string branching_catboost_json() {
  return R"({"features_info":{"float_features":[{"borders":[0.5,1.5],"feature_index":0,"flat_feature_index":0}]},)"
         R"("scale_and_bias":[2,[0.5,0.25]],"trees":[{"left":{"value":[1,10],"weight":3},"right":{"left":{"value":[2,20]},)"
         R"("right":{"value":[3,30]},"split":{"split_index":1}},"split":{"split_index":0}}]})";
}

}  // namespace forestvm::test
