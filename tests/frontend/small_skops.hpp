// Small .skops files made in a test: a zip archive of a schema and arrays, every part of which can be changed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace forestvm::test {

/// Returns a zip archive of stored entries.
std::string zip_of(const std::map<std::string, std::string>& entries);

/// Returns an .npy file: `type` and `shape` as NumPy writes them, e.g. "'<f8'" and "(3,)".
std::string npy(const std::string& type, const std::string& shape, const std::string& items);

/// Type of a decision tree's nodes, which have 64 bytes.
extern const char* const kSkopsNodeType;

template <class Number>
std::string bytes_of_numbers(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// Objects of schema.json.
std::string json_value(const std::string& json);  ///< None, a number or a text, given as JSON.
std::string json_list(const std::vector<std::string>& items);
std::string json_array(const std::string& entry);  ///< A NumPy array in the archive.
std::string json_dict(const std::map<std::string, std::string>& items);
std::string json_object(const std::string& type, const std::map<std::string, std::string>& attributes);
/// Makes `object` the whole schema.
std::string schema_of(const std::string& object);

/// A RandomForestClassifier of two equal trees over three features: feature 2 at 0.5, then feature 0 at 1e-3 in its
/// left child; two classes, "no" and "yes".
struct SmallSkops {
  std::string type = "sklearn.ensemble._forest.RandomForestClassifier";
  std::string version = "\"1.9.1\"";
  std::map<std::string, std::string> attributes;  ///< Attributes of the ensemble, as objects of the schema.
  std::map<std::string, std::string> entries;     ///< Arrays, by the names of their files.

  SmallSkops();
  static std::string tree();  ///< One tree of the ensemble.
  std::string schema() const;
  std::string file() const;
};

}  // namespace forestvm::test
