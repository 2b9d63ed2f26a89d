// Hosts that load the runtime library, predict with several threads and unload it, again and again. This test
// links neither the library nor its dependencies: dlclose unloads both unless they prevent it.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "cli/spawn.hpp"

namespace forestvm::test::test_unload {
namespace {

constexpr std::uint32_t kRows = 500, kFeatures = 30;

/// The library at a path, loaded until the destructor runs.
class Library {
 public:
  explicit Library(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { EXPECT_EQ(::dlclose(handle_), 0); }

  template <class Function>
  Function* get(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_;
};

#define FVM_FROM(library, function) (library).get<decltype(::function)>(#function)

std::vector<float> predictions(const Library& library, const std::string& path) {
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  options.threads = 3;
  fvm_program* program = nullptr;
  fvm_context* context = nullptr;
  const std::vector<float> rows(std::size_t{kRows} * kFeatures, 1.5f);
  std::vector<float> scores(kRows);
  EXPECT_EQ(FVM_FROM(library, fvm_program_open)(path.c_str(), &options, &program), FVM_OK);
  EXPECT_EQ(FVM_FROM(library, fvm_context_create)(program, &context), FVM_OK);
  EXPECT_EQ(FVM_FROM(library, fvm_predict_f32)(context, rows.data(), kRows, kFeatures, FVM_OUTPUT_RAW,
                                               scores.data(), scores.size()),
            FVM_OK);
  EXPECT_EQ(FVM_FROM(library, fvm_context_destroy)(context), FVM_OK);
  EXPECT_EQ(FVM_FROM(library, fvm_program_close)(program), FVM_OK);
  return scores;
}

class Unload : public cli::ProgramTest, public testing::WithParamInterface<const char*> {};

/// The shared runtime, and a host's plugin that contains the static one.
INSTANTIATE_TEST_SUITE_P(Libraries, Unload, testing::Values(FORESTVM_RUNTIME, FORESTVM_EMBEDDING),
                         [](const auto& test) { return test.index == 0 ? "Shared" : "Static"; });

TEST_P(Unload, AfterParallelPredictions) {
  const std::string program = file("model.fvm");
  const std::string schedule = write("parallel.schedule", "tile(batch, b0, b1, 32)\nparallel(b0)\n");
  const auto compiled = forestvm(
      {"compile", cli::test_data("breast_cancer/model.json"), "-o", program, "--schedule", schedule});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  std::vector<float> first;
  for (int round = 0; round < 300; ++round) {
    const Library library(GetParam());
    const std::vector<float> scores = predictions(library, program);
    if (round == 0) first = scores;
    ASSERT_EQ(scores, first) << "round " << round;
  }
}

TEST_P(Unload, WithoutAnyPrediction) {
  for (int round = 0; round < 300; ++round) {
    const Library library(GetParam());
    ASSERT_STREQ(FVM_FROM(library, fvm_last_error)(), "");
  }
}

}  // namespace
}  // namespace forestvm::test::test_unload
