// Loads a trainer's model, compiles it and predicts rows of random numbers, then one row alone:
//   predict MODEL [THREADS]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include <forestvm/forestvm.hpp>

namespace {

/// Returns the value of a result, or throws an exception with its error.
template <class T>
T value_of(forestvm::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

void predict(const char* path, unsigned threads) {
  const forestvm::Model model = value_of(forestvm::load_model(path));
  const forestvm::Schedule schedule = forestvm::automatic_schedule(model);
  const forestvm::Compiled compiled = value_of(forestvm::compile(model, schedule));
  const auto predictor = value_of(forestvm::host_backend(compiled.program, {.threads = threads}));
  std::printf("%zu trees, %u features; runs on %s\n", model.trees.size(), model.num_features,
              predictor->describe().c_str());

  const std::size_t count = 1000, features = model.num_features;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 100);
  std::vector<float> rows(count * features);
  for (float& number : rows) number = uniform(random);

  const auto kind = forestvm::OutputKind::Value;
  const std::size_t width = forestvm::output_width(compiled.program, kind);
  std::vector<float> values(count * width), alone(width);
  const std::unique_ptr<forestvm::Context> context = predictor->make_context();  // one per calling thread
  const forestvm::RowBlock all{rows.data(), count, features};
  const auto done = predictor->predict(*context, all, kind, values.data());
  if (!done) throw std::runtime_error(done.error().text());
  const forestvm::RowBlock first{rows.data(), 1, features};
  const auto done_alone = predictor->predict(*context, first, kind, alone.data());
  if (!done_alone) throw std::runtime_error(done_alone.error().text());
  for (std::size_t i = 0; i < width; ++i) {
    std::printf("%g\n", static_cast<double>(values[i]));
    if (values[i] != alone[i]) throw std::runtime_error("a row alone gets another answer than in a batch");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: predict MODEL [THREADS]\n", stderr);
    return 2;
  }
  try {
    predict(argv[1], argc < 3 ? 1 : static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
