// See small_skops.hpp.
#include "small_skops.hpp"

#include <zlib.h>

#include <cstring>

namespace forestvm::test {
namespace {

std::string little(std::uint64_t number, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += i < 8 ? static_cast<char>(number >> 8 * i & 0xff) : '\0';
  return out;
}

std::string node(const std::string& type, const char* loader, const std::string& members) {
  const std::size_t dot = type.rfind('.');
  return R"({"__class__": ")" + type.substr(dot + 1) + R"(", "__module__": ")" + type.substr(0, dot) +
         R"(", "__loader__": ")" + loader + "\"" + members + "}";
}

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

/// Returns a text as JSON writes it inside quotes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += (c == '"' || c == '\\' ? std::string("\\") : "") + c;
  return out;
}

struct TreeNode {
  std::int64_t left, right, feature;
  double threshold, impurity;
  std::int64_t samples;
  double weight;
  std::int64_t missing_left;
};

}  // namespace

const char* const kSkopsNodeType =
    "[('left_child', '<i8'), ('right_child', '<i8'), ('feature', '<i8'), ('threshold', '<f8'), ('impurity', '<f8'), "
    "('n_node_samples', '<i8'), ('weighted_n_node_samples', '<f8'), ('missing_go_to_left', '|u1'), ('', '|V7')]";

std::string zip_of(const std::map<std::string, std::string>& entries) {
  std::string out, directory;
  for (const auto& [name, content] : entries) {
    const auto checksum =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string sizes = little(checksum, 4) + little(content.size(), 4) + little(content.size(), 4);
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(0, 8) + sizes +
                 little(name.size(), 2) + little(0, 12) + little(out.size(), 4) + name;
    out += "PK\x03\x04" + little(20, 2) + little(0, 8) + sizes + little(name.size(), 2) + little(0, 2) +
           name + content;
  }
  const std::string count = little(entries.size(), 2);
  const std::size_t begin = out.size();
  return out + directory + "PK\x05\x06" + little(0, 4) + count + count + little(directory.size(), 4) +
         little(begin, 4) + little(0, 2);
}

std::string npy(const std::string& type, const std::string& shape, const std::string& items) {
  const std::string header = "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + little(header.size(), 2) + header + items;
}

std::string json_value(const std::string& json) {
  return node("builtins.str", "JsonNode",
              R"(, "content": ")" + escaped(json) + R"(", "is_json": true, "__id__": 1)");
}
std::string json_list(const std::vector<std::string>& items) {
  return node("builtins.list", "ListNode", R"(, "content": [)" + joined(items) + "]");
}
std::string json_array(const std::string& entry) {
  return node("numpy.ndarray", "NdArrayNode", R"(, "type": "numpy", "file": ")" + entry + "\"");
}
std::string json_dict(const std::map<std::string, std::string>& items) {
  std::vector<std::string> members;
  for (const auto& [key, value] : items) members.push_back("\"" + key + "\": " + value);
  return node("builtins.dict", "DictNode",
              ", \"content\": {" + joined(members) + R"(}, "key_types": )" +
                  json_list({node("builtins.str", "TypeNode", "")}));
}
std::string json_object(const std::string& type, const std::map<std::string, std::string>& attributes) {
  return node(type, type.ends_with("._tree.Tree") ? "TreeNode" : "ObjectNode",
              ", \"content\": " + json_dict(attributes));
}
std::string schema_of(const std::string& object) {
  return object.substr(0, object.size() - 1) + R"(, "protocol": 2, "_skops_version": "0.16.0"})";
}

SmallSkops::SmallSkops() {
  const std::vector<TreeNode> nodes = {{1, 4, 2, 0.5, 0, 20, 20, 1},
                                       {2, 3, 0, 1e-3, 0, 12, 12, 0},
                                       {-1, -1, -2, -2, 0, 4, 4, 0},
                                       {-1, -1, -2, -2, 0, 8, 8, 0},
                                       {-1, -1, -2, -2, 0, 8, 8, 0}};
  std::string items(sizeof(TreeNode) * nodes.size(), '\0');
  std::memcpy(items.data(), nodes.data(), items.size());
  entries["nodes.npy"] = npy(kSkopsNodeType, "(5,)", items);
  entries["values.npy"] =
      npy("'<f8'", "(5, 1, 2)", bytes_of_numbers<double>({0.5, 0.5, 0.25, 0.75, 1, 0, 0, 1, 0.875, 0.125}));
  entries["classes.npy"] =
      npy("'<U3'", "(2,)", bytes_of_numbers<std::uint32_t>({'n', 'o', 0, 'y', 'e', 's'}));
  attributes["n_features_in_"] = json_value("3");
  attributes["n_outputs_"] = json_value("1");
  attributes["classes_"] = json_array("classes.npy");
  attributes["estimators_"] = json_list({tree(), tree()});
}

std::string SmallSkops::tree() {
  return json_object(
      "sklearn.tree._classes.DecisionTreeClassifier",
      {{"classes_", json_array("classes.npy")},
       {"tree_", json_object("sklearn.tree._tree.Tree",
                             {{"nodes", json_array("nodes.npy")}, {"values", json_array("values.npy")}})}});
}

std::string SmallSkops::schema() const {
  std::map<std::string, std::string> all = attributes;
  all["_sklearn_version"] = json_value(version);
  return schema_of(json_object(type, all));
}

std::string SmallSkops::file() const {
  std::map<std::string, std::string> all = entries;
  all["schema.json"] = schema();
  return zip_of(all);
}

}  // namespace forestvm::test
