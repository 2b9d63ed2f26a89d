#include "support/sklearn_folders.hpp"

#include <algorithm>
#include <exception>

#include "support/model_folders.hpp"
#include "support/npy.hpp"

namespace forestvm::support {
namespace {

namespace fs = std::filesystem;

/// Returns a file's numbers, or none if it is not there.
template <class Number>
std::vector<Number> numbers_of(const fs::path& file) {
  return fs::exists(file) ? read_npy<Number>(file.string()).data : std::vector<Number>();
}

/// Returns numbers of leaves. scikit-learn gives those of GradientBoosting as float64.
std::vector<std::int64_t> leaves_of(const fs::path& file) {
  try {
    return numbers_of<std::int64_t>(file);
  } catch (const std::runtime_error&) {
    const std::vector<double> wide = numbers_of<double>(file);
    return {wide.begin(), wide.end()};
  }
}

SklearnFolder read_folder(const fs::path& folder) {
  SklearnFolder out;
  out.name = folder.filename().string();
  out.model = folder / "model.skops";
  auto rows = read_npy<double>((folder / "rows.npy").string());
  out.count = rows.rows();
  out.features = rows.columns();
  out.rows = std::move(rows.data);
  out.value = numbers_of<double>(folder / "expected.npy");
  out.raw = numbers_of<double>(folder / "expected_raw.npy");
  out.leaves = leaves_of(folder / "expected_leaf.npy");
  return out;
}

void append(const fs::path& parent, const std::string& prefix, std::vector<SklearnFolder>& out) {
  if (!fs::exists(parent)) return;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent))
    if (entry.path().filename().string().starts_with(prefix) && fs::exists(entry.path() / "model.skops"))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) out.push_back(read_folder(folder));
}

}  // namespace

std::vector<SklearnFolder> sklearn_folders() {
  std::vector<SklearnFolder> out;
  append(fs::path(FORESTVM_TEST_DATA) / "skops", "", out);
  for (SklearnFolder& folder : out)
    folder.labels = numbers_of<std::int64_t>(folder.model.parent_path() / "expected_class.npy");
  const std::size_t own = out.size();
  append(zoo() / "formats", "skops_", out);
  for (std::size_t i = own; i < out.size(); ++i) {
    SklearnFolder& folder = out[i];
    // The zoo's labels are texts or lists in these.
    if (folder.name == "skops_rf_clf_nan" || folder.name == "skops_rf_clf_multi_output") continue;
    folder.labels = numbers_of<std::int64_t>(folder.model.parent_path() / "expected_class.npy");
    if (folder.name != "skops_iforest") continue;
    folder.value.swap(folder.raw);  // the decision, which the model gives; the other are score_samples
    folder.raw.clear();
    for (std::int64_t& label : folder.labels) label = label == -1 ? 1 : 0;
  }
  return out;
}

}  // namespace forestvm::support
