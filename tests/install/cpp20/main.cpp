// Loads a model, compiles it and predicts: consumer MODEL.json ROWS.npy EXPECTED_RAW.npy
// Both files hold float32. Succeeds if the raw scores of all rows have the expected bits.
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <forestvm/forestvm.hpp>

namespace {

/// Reads an .npy file of format 1.0: magic and version (8 bytes), size of the header (2), header, numbers.
std::vector<float> read_npy(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (bytes.size() < 10) throw std::runtime_error(std::string("no .npy file: ") + path);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t begin = 10u + byte(8) + 256u * byte(9);
  std::vector<float> numbers((bytes.size() - begin) / sizeof(float));
  std::memcpy(numbers.data(), bytes.data() + begin, numbers.size() * sizeof(float));
  return numbers;
}

template <class T>
T must(forestvm::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

bool run(const char* model_path, const char* rows_path, const char* expected_path) {
  const forestvm::Model model = must(forestvm::load_model(model_path));
  const auto compiled = must(forestvm::compile(model, forestvm::automatic_schedule(model)));
  const auto predictor = must(forestvm::host_backend(compiled.program, {.threads = 2}));
  const auto context = predictor->make_context();
  const std::vector<float> rows = read_npy(rows_path), expected = read_npy(expected_path);
  std::vector<float> scores(expected.size());
  const std::size_t count = rows.size() / model.num_features;
  const forestvm::RowBlock block{rows.data(), count, model.num_features};
  const auto done = predictor->predict(*context, block, forestvm::OutputKind::Raw, scores.data());
  if (!done) throw std::runtime_error(done.error().text());
  const bool equal = std::memcmp(scores.data(), expected.data(), scores.size() * sizeof(float)) == 0;
  std::printf("%s: the scores of %zu rows are %s\n", predictor->describe().c_str(), count,
              equal ? "as expected" : "DIFFERENT");
  return equal && count != 0 && scores.size() == count * model.num_outputs;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc == 4 && run(argv[1], argv[2], argv[3]) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
