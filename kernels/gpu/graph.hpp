// A graph of a GPU's operations, which its runtime gives to a stream in one call. A graph is made node by node and not
// by capturing a stream, because other calls can break a capture, and because a launch's node must be known to change
// its arguments later.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend/runtime.hpp"
#include "kernels/gpu/kernel_table.hpp"
#include "kernels/gpu/on_gpu.hpp"

namespace forestvm::kernels {

/// Returns the kernel that runs the phase. Linking has checked that there is one.
inline const void* kernel_of(const LinkedPhase& phase) {
  if (phase.of_kinds) return kinds_kernel();
  const auto kernels = compiled_kernels();
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const CompiledKernel& kernel) {
    return !phase.layout || kernel.layout == *phase.layout;
  });
  FVM_CHECK(found != kernels.end());
  return found->function;
}

/// Returns the part of an error message that says which launch failed.
inline std::string launching(const LinkedPhase& phase) {
  return "launching blocks of " + std::to_string(phase.threads()) + " threads and " +
         std::to_string(phase.shared_bytes) + " bytes of shared memory";
}

template <class Api>
class GpuGraph final : public Graph {
 public:
  explicit GpuGraph(int device) : device_(device) {}
  ~GpuGraph() override {
    const BesideCaptures<Api> here(device_);
    if (instantiated_ != nullptr) static_cast<void>(Api::destroy_instantiated(instantiated_));
    if (graph_ != nullptr) static_cast<void>(Api::destroy_graph(graph_));
  }
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  static Result<std::unique_ptr<Graph>> capture(int device,
                                                const std::function<Result<void>(Operations&)>& give) {
    auto graph = std::make_unique<GpuGraph>(device);
    const BesideCaptures<Api> here(device);
    FVM_TRY(here.call([&] { return Api::create_graph(&graph->graph_); }, "creating a graph"));
    Nodes nodes(*graph);
    FVM_TRY(give(nodes));
    FVM_TRY(here.call([&] { return Api::instantiate(&graph->instantiated_, graph->graph_); },
                      "instantiating a graph"));
    return std::unique_ptr<Graph>(std::move(graph));
  }

  Result<void> set_launch(std::size_t number, const Launch& launch) override {
    LaunchNode& node = *launches_[number];
    node.argument = launch;
    const BesideCaptures<Api> here(device_);
    return here.call(
        [&] {
          return Api::set_launch(instantiated_, node.node, node.kernel, node.extent.data(),
                                 node.arguments.data(), node.shared_bytes);
        },
        "changing a launch of a graph");
  }

  Result<void> replay(typename Api::Stream stream) const {
    const OnGpu<Api> here(device_);
    return here.call([&] { return Api::replay(instantiated_, stream); }, "launching a graph");
  }

 private:
  /// A launch of the graph. Its argument stays at one address as long as the graph lives: HIP's first releases
  /// with graphs keep the pointer, and read there when the graph is launched.
  struct LaunchNode {
    LaunchNode(const LinkedPhase& phase, const Launch& launch)
        : argument(launch),
          kernel(kernel_of(phase)),
          extent(phase.extent),
          shared_bytes(phase.shared_bytes) {}

    Launch argument;
    std::array<void*, 1> arguments = {&argument};
    const void* kernel;
    std::array<std::uint32_t, kDimensions> extent;
    std::uint32_t shared_bytes;
    typename Api::Node node{};
  };

  /// Adds a node for each operation that it is given, behind the node that was added last.
  class Nodes final : public Operations {
   public:
    explicit Nodes(GpuGraph& graph) : graph_(&graph) {}

    Result<void> upload(std::byte* to, const void* from, std::size_t bytes) override {
      return add("adding a copy of " + std::to_string(bytes) + " bytes to the device to a graph",
                 [&](typename Api::Node* node, std::span<const typename Api::Node> before) {
                   return Api::add_upload(node, graph_->graph_, before, to, from, bytes);
                 });
    }

    Result<void> download(void* to, const std::byte* from, std::size_t bytes) override {
      return add("adding a copy of " + std::to_string(bytes) + " bytes from the device to a graph",
                 [&](typename Api::Node* node, std::span<const typename Api::Node> before) {
                   return Api::add_download(node, graph_->graph_, before, to, from, bytes);
                 });
    }

    Result<void> launch(const LinkedPhase& phase, const Launch& launch) override {
      graph_->launches_.push_back(std::make_unique<LaunchNode>(phase, launch));
      LaunchNode& added = *graph_->launches_.back();
      return add("in a graph, " + launching(phase), [&](typename Api::Node* node,
                                                        std::span<const typename Api::Node> before) {
        const auto status = Api::add_launch(node, graph_->graph_, before, added.kernel, added.extent.data(),
                                            added.arguments.data(), added.shared_bytes);
        added.node = *node;
        return status;
      });
    }

   private:
    template <class Add>
    Result<void> add(const std::string& doing, Add add) {
      const BesideCaptures<Api> here(graph_->device_);
      typename Api::Node node{};
      const std::span<const typename Api::Node> before(&last_, last_ == nullptr ? 0 : 1);
      FVM_TRY(here.call([&] { return add(&node, before); }, doing));
      last_ = node;
      return {};
    }

    GpuGraph* graph_;
    typename Api::Node last_{};
  };

  int device_;
  typename Api::Graph graph_{};
  typename Api::InstantiatedGraph instantiated_{};
  std::vector<std::unique_ptr<LaunchNode>> launches_;  ///< Launches in the order in which they were given.
};

}  // namespace forestvm::kernels
