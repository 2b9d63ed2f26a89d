// The loop tree: index variables as loops, each containing the loops directly inside it. Directives rewrite
// it; it starts as `for batch: for tree:`. Ranges are never stored, they follow from the lineage: a loop
// steps through an iteration of its source (or, without one, through all rows or all trees). Source:
// SilvanForge, section 3.1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/internal/axis.hpp>
#include <forestvm/result.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

using LoopId = std::size_t;
inline constexpr LoopId kNoLoop = SIZE_MAX;
/// More elements than any batch or forest has.
inline constexpr std::uint64_t kAll = UINT32_MAX;

/// A value that a directive gave to a loop or the program, with the directive's number for error messages.
template <class Value>
struct Requested {
  Value value{};
  std::size_t directive = 0;
};

/// The form of the reduction after a parallel loop over trees.
struct ReductionRequest {
  ReductionForm form = ReductionForm::Plain;
  std::uint32_t width = 1;
  bool atomic = false;  ///< true: there are no copies, and iterations add to the same sums atomically
};

/// The grouping of trees' nodes into tiles.
struct Tiling {
  std::uint32_t size = 1;       ///< most nodes of a tile
  bool by_probability = false;  ///< true: tiles grow along the likeliest walks; false: level by level

  auto operator<=>(const Tiling&) const = default;
};

/// The directives for the whole program.
struct ProgramRequests {
  std::optional<Requested<std::string>> order;       ///< argument of orderTrees
  std::optional<Requested<std::string>> accumulate;  ///< argument of accumulate
  std::optional<Requested<std::string>> encode;      ///< argument of encode
};

struct Loop {
  std::string name;
  Axis axis = Axis::Rows;
  LoopId parent = kNoLoop;       ///< the loop around it
  std::vector<LoopId> children;  ///< the loops directly inside it, in order; none: it contains the walk
  LoopId source = kNoLoop;       ///< the loop whose iteration it steps through; kNoLoop: the whole axis
  std::uint64_t from = 0;        ///< number of the source's elements that it skips
  std::uint64_t to = kAll;       ///< element of the source before which it ends, at most the source's end
  std::uint64_t step = 1;        ///< number of elements per iteration

  std::optional<Requested<bool>> parallel;
  std::optional<Requested<bool>> unroll;
  std::optional<Requested<bool>> interleave;
  std::optional<Requested<std::uint32_t>> unroll_walk;  ///< number of steps that are unrolled; 0: all
  std::optional<Requested<std::uint32_t>> peel_walk;    ///< number of steps that are peeled
  std::optional<Requested<std::string>> layout;         ///< word of the layout of the trees inside
  std::optional<Requested<Tiling>> tiling;              ///< the tiling of the trees inside
  std::optional<Requested<bool>> specialize;
  std::optional<Requested<LaunchDimension>> dimension;
  std::optional<Requested<std::uint32_t>> cache;  ///< number of iterations ahead; 0: the default
  std::optional<Requested<ReductionRequest>> reduction;

  /// The number of the directive that runs the iterations in parallel, if there is one.
  std::optional<std::size_t> parallel_by() const {
    if (parallel) return parallel->directive;
    if (dimension) return dimension->directive;
    return std::nullopt;
  }
};

class LoopTree {
 public:
  explicit LoopTree(std::uint32_t num_trees);

  ProgramRequests program;

  Loop& operator[](LoopId id) { return loops_[id]; }
  const Loop& operator[](LoopId id) const { return loops_[id]; }
  std::size_t size() const { return loops_.size(); }

  /// Returns the outermost loops, in order.
  const std::vector<LoopId>& roots() const { return roots_; }
  std::uint32_t num_trees() const { return num_trees_; }

  /// Returns the loops that a name means: all copies of `v`, or for `w.v` the copies inside w. The error says
  /// which loops replaced one that no longer exists.
  Result<std::vector<LoopId>> find(const std::string& name) const;

  /// Returns the loops that a name means, as find does; a loop that was tiled or split means the loops that
  /// it became.
  Result<std::vector<LoopId>> find_family(const std::string& name) const;

  /// Refuses a name that a loop has or had.
  Result<void> check_new_name(const std::string& name) const;

  /// Strip-mines v: it becomes `outer`, with `inner` directly inside it.
  void tile(LoopId v, const std::string& outer, const std::string& inner, std::uint64_t size);

  /// Cuts v in two at an iteration; what it contains is copied into both.
  void split(LoopId v, const std::string& first, const std::string& second, std::uint64_t at);

  /// Puts the loops of a chain (each the only child of the one before) into another order.
  void permute(const std::vector<LoopId>& chain, const std::vector<LoopId>& order);

  /// Records that the loops `into` replaced `name`, for find and find_family.
  void retire(const std::string& name, const std::string& by, std::vector<std::string> into);

  bool inside(LoopId loop, LoopId around) const;

  /// Returns an upper bound of the elements in a loop's range.
  std::uint64_t extent(LoopId loop) const;
  /// Returns an upper bound of a loop's iterations.
  std::uint64_t iterations(LoopId loop) const;
  /// Returns the number of loops from the outermost to a loop, itself included.
  std::size_t depth(LoopId loop) const;
  /// Returns the positions of trees that a loop over trees can reach: [first, second).
  std::pair<std::uint32_t, std::uint32_t> tree_bounds(LoopId loop) const;

 private:
  struct Retired {
    std::string by;
    std::vector<std::string> into;
  };

  LoopId copy(LoopId loop, LoopId parent, std::map<LoopId, LoopId>& copies);
  std::vector<LoopId> live(const std::string& name) const;
  void add_family(const std::string& name, std::vector<LoopId>& found) const;
  std::vector<LoopId>& siblings(LoopId loop);

  std::vector<Loop> loops_;
  std::vector<LoopId> roots_;
  std::map<std::string, Retired> retired_;
  std::uint32_t num_trees_;
};

}  // namespace forestvm::scheduler
