// Compiles the schedules that the search measures, for case b5 of bench/gpu/run: points MODEL BATCH OUT 39|all.
// Writes a program file for each point to the folder OUT and prints a line for each, separated by tabs: its name,
// the seconds that compiling took, and the file, or - and the reason of the refusal. 39: the 36 points that
// algorithm 1 measures first, and each of them with shared reduction, of which it measures three; all: the whole
// template.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>

#include "scheduler/choose/algorithm_1.hpp"

namespace {

using namespace forestvm;
using scheduler::GpuTemplatePoint;

std::vector<GpuTemplatePoint> points_of(const std::string& which, std::size_t batch, std::size_t features) {
  std::vector<GpuTemplatePoint> points;
  if (which == "39") {
    points = scheduler::algorithm_1_points(batch, features);
    const std::size_t first = points.size();
    for (std::size_t i = 0; i < first; ++i) {
      points.push_back(points[i]);
      points.back().shared_reduce = true;
    }
    return points;
  }
  for (std::size_t i = 0; i < scheduler::kGpuTemplatePoints; ++i)
    points.push_back(scheduler::gpu_template_point(i));
  return points;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Prints a line: the point, the seconds, and the program's path or the refusal.
void compile_point(const Model& model, const GpuTemplatePoint& point, const std::string& folder) {
  const auto begin = std::chrono::steady_clock::now();
  CompileOptions options;
  options.contract = Contract::Fast;
  const auto program = compile(model, gpu_template_schedule(model, point), options);
  const double seconds = seconds_since(begin);
  const std::string path = folder + "/" + print(point) + ".fvm";
  const Result<void> saved = program.ok() ? program->program.save(path) : program.error();
  if (saved.ok())
    std::printf("%s\t%.9f\t%s\n", print(point).c_str(), seconds, path.c_str());
  else
    std::printf("%s\t-\t%s\n", print(point).c_str(), saved.error().text().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "points MODEL BATCH OUT 39|all\n");
    return 2;
  }
  const auto model = load_model(argv[1]);
  if (!model.ok()) {
    std::fprintf(stderr, "points: %s: %s\n", argv[1], model.error().text().c_str());
    return 1;
  }
  const auto batch = static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10));
  std::filesystem::create_directories(argv[3]);
  for (const GpuTemplatePoint& point : points_of(argv[4], batch, model->num_features))
    compile_point(*model, point, argv[3]);
  return 0;
}
