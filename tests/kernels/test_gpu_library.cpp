// The libraries of GPU vendors: which one is loaded, the message if there is none, and that the libraries of
// this build find their devices or say why not.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>

#include "kernels/gpu/open_library.hpp"
#include "support/small_models.hpp"
#include "support/temporary_folder.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_gpu_library {
namespace {

namespace fs = std::filesystem;

class GpuLibrary : public testing::Test, protected support::TemporaryFolder {
 protected:
  GpuLibrary() = default;
  ~GpuLibrary() override { unsetenv("FORESTVM_PLUGINS"); }
  GpuLibrary(const GpuLibrary&) = delete;
  GpuLibrary& operator=(const GpuLibrary&) = delete;

  static void look_in(const std::string& folder) { setenv("FORESTVM_PLUGINS", folder.c_str(), 1); }

  Program program(const std::string& schedule) const {
    return test::compiled(model_, schedule, Contract::Reproducible);
  }

  std::vector<float> raw(const Result<std::unique_ptr<Predictor>>& predictor) const {
    EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
    std::vector<float> out(40);
    if (!predictor.ok()) return out;
    const auto context = (*predictor)->make_context();
    const auto done =
        (*predictor)->predict(*context, RowBlock{rows_.data(), 20, 4}, OutputKind::Raw, out.data());
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
    return out;
  }

  /// Returns the error of a call that must fail because this machine lacks something.
  template <class T>
  static std::string missing(const Result<T>& result) {
    if (result.ok()) return "nothing";
    EXPECT_EQ(result.error().code, ErrorCode::Environment);
    return result.error().text();
  }

  const Model model_ = support::model_of(support::six_trees(), 2);
  const std::string mapped_ =
      "tile(batch, b0, b1, 8); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)";
  const std::vector<float> rows_ = std::vector<float>(80, 0.75f);
};

TEST_F(GpuLibrary, IsLoadedFromTheFolderThatIsNamed) {
  look_in(FORESTVM_EMULATED_LIBRARY);
  const auto devices = gpu_devices(GpuVendor::Cuda);
  ASSERT_TRUE(devices.ok()) << devices.error().text();
  EXPECT_EQ(*devices, std::vector<std::string>{"an emulated device"});
  EXPECT_EQ(raw(gpu_backend(program(mapped_))), raw(host_backend(program(""))));
  EXPECT_EQ(missing(gpu_backend(program(mapped_), {GpuVendor::Cuda, 1})), "no emulated device 1");
  const auto host = gpu_backend(program(""));
  ASSERT_FALSE(host.ok());
  EXPECT_NE(host.error().text().find("it runs on the host, not on a CUDA device"), std::string::npos);
}

TEST_F(GpuLibrary, SaysWhichIsAbsent) {
  const std::string named = "; the environment variable FORESTVM_PLUGINS names its folder";
  look_in(path().string());
  EXPECT_EQ(missing(gpu_devices(GpuVendor::Cuda)),
            "no CUDA backend: there is no " + file("libforestvm_cuda.so") + named);
  EXPECT_EQ(missing(gpu_backend(program(mapped_), {GpuVendor::Hip, 0})),
            "no HIP backend: there is no " + file("libforestvm_hip.so") + named);
}

TEST_F(GpuLibrary, RefusesWhatIsNone) {
  look_in(path().string());
  write("libforestvm_cuda.so", "no library");
  EXPECT_NE(missing(gpu_devices(GpuVendor::Cuda)).find("libforestvm_cuda.so: "), std::string::npos);
  fs::create_symlink(FORESTVM_OTHER_LIBRARY, file("libforestvm_hip.so"));
  EXPECT_EQ(missing(gpu_devices(GpuVendor::Hip)),
            "no HIP backend: " + file("libforestvm_hip.so") +
                " is of another version of forestvm; install both from one build");
}

TEST_F(GpuLibrary, RefusesOneOfAnotherBuild) {
  look_in(FORESTVM_EMULATED_LIBRARY);
  const std::string error = missing(gpu_devices(GpuVendor::Hip));
  EXPECT_NE(error.find("libforestvm_hip.so is of another build of forestvm: 0.0.0-other, launches of "),
            std::string::npos)
      << error;
}

/// The libraries that are opened stand in for versions of HIP's runtime.
TEST(OpenLibrary, TakesTheFirstThatIsThere) {
  const std::string folder = FORESTVM_HIP_RUNTIMES, newer = folder + "/both/libamdhip64.so.7",
                    older = folder + "/both/libamdhip64.so.6", loaded = folder + "/old/libamdhip64.so.5";
  const auto version = [](const Result<void*>& library) {
    if (!library.ok()) return library.error().text();
    auto* const text = reinterpret_cast<const char* (*)()>(dlsym(*library, "hipGetErrorString"));
    return std::string(text == nullptr ? "none" : text());
  };
  using Names = std::array<const char*, 3>;
  EXPECT_EQ(version(kernels::open_library(Names{"/no/such.so", older.c_str(), newer.c_str()})),
            "this is runtime 6");
  ASSERT_NE(dlopen(loaded.c_str(), RTLD_NOW), nullptr) << dlerror();
  EXPECT_EQ(version(kernels::open_library(Names{"/no/such.so", newer.c_str(), loaded.c_str()})),
            "this is runtime 5");
  const std::string absent = version(kernels::open_library(std::array{"/no/such.so", "/nor/this.so"}));
  EXPECT_NE(absent.find("/no/such.so: cannot open"), std::string::npos) << absent;
  EXPECT_NE(absent.find("; /nor/this.so: cannot open"), std::string::npos) << absent;
}

/// The libraries of this build either have a device that predicts as the host does, or report why there is
/// none.
TEST_F(GpuLibrary, OfThisBuildFindsDevicesOrSaysWhyNot) {
  const std::vector<std::pair<GpuVendor, std::string>> built = {FORESTVM_BUILT_LIBRARIES};
  for (const auto& [vendor, name] : built) {
    look_in(FORESTVM_LIBRARIES);
    const auto devices = gpu_devices(vendor);
    if (!devices.ok()) {
      EXPECT_TRUE(missing(devices).starts_with("no " + name + " device")) << missing(devices);
      EXPECT_EQ(missing(gpu_backend(program(mapped_), {vendor, 0})), missing(devices));
      continue;
    }
    EXPECT_FALSE(devices->empty());
    EXPECT_EQ(raw(gpu_backend(program(mapped_), {vendor, 0})), raw(host_backend(program(""))));
    EXPECT_NE(missing(gpu_backend(program(mapped_), {vendor, 1000})).find("device 1000: there "),
              std::string::npos);
  }
}

}  // namespace
}  // namespace forestvm::test::test_gpu_library
