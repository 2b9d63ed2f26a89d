// See level_paths.hpp.
#include "vm/host/paths/level_paths.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace forestvm::host {
namespace {

/// The most trees of a chunk, and the number of splits after which no tree joins a chunk or a bundle. Bundles are so
/// small that their numbers stay in the caches.
constexpr std::size_t kChunkTrees = 16, kChunkSplits = 16384, kBundleSplits = 256;

constexpr std::uint32_t kNoChild = UINT32_MAX;

template <class Number>
class LevelLoader {
  static constexpr std::size_t kLanes = sizeof(Line) / sizeof(Number);
  static constexpr unsigned kBits = 8 * sizeof(Number);  ///< Bits of a lane.

  struct LevelSplit {
    const PathSplit* split;
    const Number* constants;
    std::uint32_t left = kNoChild, right = kNoChild;
    std::uint32_t slot = 0;
    std::uint8_t bit = 0;  ///< LevelVector::bit

    bool repeated() const { return split->above != kNoneAbove; }
    unsigned point_constants() const {
      return (split->flags & kFourConstants) != 0 ? SplitConstants::FourConstants
                                                  : SplitConstants::TwoConstants;
    }
  };

 public:
  LevelLoader(HostPaths& paths, const std::vector<Number>& constants)
      : paths_(paths), constants_(constants) {}

  void run() {
    // A quarter is for lanes without splits. Memory that no chunk needs is not touched.
    paths_.levels.reserve(paths_.splits.size() * (9 + 3 * paths_.most_points) / kLanes * 5 / 4);
    for (const PathBatch& batch : paths_.batches) {
      paths_.level_chunks.push_back({paths_.levels.size(), 0});
      LevelChunks& chunks = paths_.level_chunks.back();
      for (std::size_t t = batch.first_tree; t < batch.end_tree; ++chunks.count) {
        clear();
        const std::size_t begin = t;
        while (t < batch.end_tree && t - begin < kChunkTrees && splits_.size() < kChunkSplits)
          if (!add_tree(paths_.trees[t++])) return give_up();
        if (!add_chunk(std::span(paths_.trees).subspan(begin, t - begin))) return give_up();
      }
    }
  }

 private:
  /// A split on the way to the one that is added.
  struct OpenSplit {
    std::uint32_t split;
    unsigned features;  ///< Different features on the way, its own included.
    bool left, right;   ///< True if the child is a split that is yet to be added.
  };

  struct Vector {
    std::size_t begin, end;  ///< Its splits in order_.
    LevelVector lanes;
  };

  void give_up() {
    paths_.levels.clear();
    paths_.levels.shrink_to_fit();
  }

  void clear() {
    splits_.clear();
    roots_.clear();
    left_in_order_.clear();
    slots_ = 0;
  }

  /// Adds the splits of a tree. Returns false if one does not fit the form.
  bool add_tree(const PathTree& tree) {
    const auto root = static_cast<std::uint32_t>(splits_.size());
    roots_.push_back(root);
    open_.clear();
    for (std::size_t i = 0; i < tree.split_count; ++i) {
      const PathSplit& split = paths_.splits[tree.first_split + i];
      const auto at = static_cast<std::uint32_t>(root + i);
      const unsigned features = open_.empty() ? 0 : open_.back().features;
      const bool first = split.above == kNoneAbove;
      const unsigned bit = first ? features : splits_[root + split.above - 1].bit;
      if (bit >= kBits || split.column > UINT16_MAX || split.sum > UINT16_MAX) return false;
      paths_.level_columns = std::max(paths_.level_columns, split.column + 1);
      splits_.push_back({&split, constants_.data() + tree.first_constant + split.constants});
      splits_.back().bit = static_cast<std::uint8_t>(bit);
      if (!open_.empty()) {
        OpenSplit& above = open_.back();
        (above.left ? splits_[above.split].left : splits_[above.split].right) = at;
        (above.left ? above.left : above.right) = false;
      }
      open_.push_back(
          {at, features + (first ? 1 : 0), (split.flags & kLeftLeaf) == 0, (split.flags & kRightLeaf) == 0});
      for (; !open_.empty() && !open_.back().left && !open_.back().right; open_.pop_back())
        left_in_order_.push_back(open_.back().split);
    }
    return true;
  }

  /// Appends the trees in bundles, then their sums. Returns false if they have too many splits.
  bool add_chunk(std::span<const PathTree> trees) {
    const std::size_t first = paths_.levels.size();
    lines(1);
    std::uint32_t bundles = 0;
    std::vector<std::uint8_t> done(trees.size());
    for (std::size_t t = 0; t < trees.size(); ++t) {
      if (done[t] != 0) continue;
      order_.clear();
      weights_.clear();
      points_ = trees[t].points;
      std::size_t splits = 0;
      for (std::size_t u = t; u < trees.size() && order_.size() < kLanes && splits < kBundleSplits; ++u) {
        if (done[u] != 0 || trees[u].points != points_) continue;
        done[u] = 1;
        order_.push_back(roots_[u]);
        weights_.push_back(constants_.data() + trees[u].first_constant);
        splits += (u + 1 < trees.size() ? roots_[u + 1] : splits_.size()) - roots_[u];
      }
      add_bundle();
      ++bundles;
    }
    if (slots_ > UINT16_MAX) return false;
    paths_.level_slots = std::max(paths_.level_slots, slots_);
    const LevelChunk chunk{bundles, static_cast<std::uint32_t>(left_in_order_.size())};
    std::memcpy(paths_.levels.data() + first, &chunk, sizeof chunk);
    auto* sum = reinterpret_cast<LevelSum*>(
        lines(whole_lines(left_in_order_.size() * sizeof(LevelSum)) / sizeof(Line)));
    for (const std::uint32_t s : left_in_order_)
      *sum++ = {static_cast<std::uint16_t>(splits_[s].slot),
                static_cast<std::uint16_t>(splits_[s].split->sum)};
    return true;
  }

  /// Gives the splits of a bundle their slots, and appends the bundle. `order_` has the roots.
  void add_bundle() {
    vectors_.clear();
    for (std::size_t begin = 0; begin < order_.size();) {
      const std::size_t end = order_.size();
      const std::size_t next_slot = (vectors_.size() + (end - begin + kLanes - 1) / kLanes) * kLanes;
      for (; begin < end; begin = vectors_.back().end)
        vectors_.push_back(vector_of(begin, std::min(begin + kLanes, end), next_slot - end));
    }
    const std::size_t vectors = vectors_.size();
    paths_.level_vectors = std::max(paths_.level_vectors, vectors + 1);
    paths_.level_points = std::max(paths_.level_points, (vectors + 1) * points_);

    constexpr std::size_t kVectorLines = sizeof(LevelVector) / sizeof(Line);
    Line* at = lines(1 + points_ + vectors * (kVectorLines + 7 + std::size_t{3} * points_));
    const LevelBundle bundle{static_cast<std::uint32_t>(vectors), points_};
    std::memcpy(at++, &bundle, sizeof bundle);
    for (std::uint32_t k = 0; k < points_; ++k)
      for (std::size_t i = 0; i < weights_.size(); ++i) reinterpret_cast<Number*>(at + k)[i] = weights_[i][k];
    at += points_;
    for (const Vector& vector : vectors_) {
      std::memcpy(at, &vector.lanes, sizeof vector.lanes);
      at += kVectorLines;
      for (std::size_t i = vector.begin; i < vector.end; ++i) {
        const LevelSplit& split = splits_[order_[i]];
        Number* to = reinterpret_cast<Number*>(at) + i - vector.begin;
        const Number* point = split.constants + SplitConstants::Count;
        *to = split.repeated() ? point[SplitConstants::PointAway] : Number{0};
        for (std::uint32_t k = 0; k < points_; ++k, point += split.point_constants()) {
          *(to += kLanes) = point[SplitConstants::PointLeft];
          *(to += kLanes) = point[SplitConstants::PointRight];
        }
      }
      at += 1 + std::size_t{2} * points_;
    }
    for (std::size_t v = vectors; v-- > 0; at += 6 + points_)
      for (std::size_t i = vectors_[v].begin; i < vectors_[v].end; ++i)
        add_upward(splits_[order_[i]], reinterpret_cast<Number*>(at) + i - vectors_[v].begin);
    slots_ += vectors * kLanes;
  }

  /// Writes the constants of a split that are used on the way up, to the same lane of lines.
  void add_upward(const LevelSplit& split, Number* to) const {
    const bool leaves = split.left == kNoChild && split.right == kNoChild;
    const Number* const all = split.constants;
    *to = all[SplitConstants::IfLeft];
    *(to += kLanes) = all[SplitConstants::IfRight];
    *(to += kLanes) = all[SplitConstants::FirstLeft];
    *(to += kLanes) = all[SplitConstants::FirstRight];
    *(to += kLanes) = leaves ? Number{1} : all[SplitConstants::LeftValue];
    *(to += kLanes) = leaves ? Number{0} : all[SplitConstants::RightValue];
    const Number* point = all + SplitConstants::Count;
    for (std::uint32_t k = 0; k < points_; ++k, point += split.point_constants())
      *(to += kLanes) = split.repeated() ? point[SplitConstants::PointSlope] : Number{1};
  }

  /// Returns a vector of splits of a level, and appends their children to `order_`. A split's slot is its index in
  /// `order_` plus `next_offset` in the next level.
  Vector vector_of(std::size_t begin, std::size_t end, std::size_t next_offset) {
    Vector vector{begin, end, {}};
    LevelVector& lanes = vector.lanes;
    lanes.next = static_cast<std::uint32_t>(order_.size() + next_offset);
    for (std::size_t i = begin; i < end; ++i) {
      LevelSplit& split = splits_[order_[i]];
      split.slot = static_cast<std::uint32_t>(slots_ + vectors_.size() * kLanes + i - begin);
      lanes.column[i - begin] = static_cast<std::uint16_t>(split.split->column);
      lanes.code[i - begin] = split.split->code;
      lanes.bit[i - begin] = split.bit;
    }
    lanes.left = add_children(begin, end, &LevelSplit::left);
    lanes.right = add_children(begin, end, &LevelSplit::right);
    return vector;
  }

  /// Appends the children on one side to `order_`. Returns a bit for each split: 1 if it has such a child.
  std::uint16_t add_children(std::size_t begin, std::size_t end, std::uint32_t LevelSplit::*side) {
    unsigned bits = 0;
    for (std::size_t i = begin; i < end; ++i)
      if (const std::uint32_t child = splits_[order_[i]].*side; child != kNoChild) {
        bits |= 1u << (i - begin);
        order_.push_back(child);
      }
    return static_cast<std::uint16_t>(bits);
  }

  /// Appends lines of zeros. Returns the first.
  Line* lines(std::size_t count) {
    const std::size_t begin = paths_.levels.size();
    paths_.levels.resize(begin + count);
    return paths_.levels.data() + begin;
  }

  HostPaths& paths_;
  const std::vector<Number>& constants_;
  // The chunk that is added:
  std::vector<LevelSplit> splits_;            ///< Its splits, tree by tree, in preorder.
  std::vector<std::uint32_t> roots_;          ///< The first split of each tree.
  std::vector<std::uint32_t> left_in_order_;  ///< The splits in the order in which PathWalk leaves them.
  std::size_t slots_ = 0;                     ///< Slots of the bundles before.
  // The bundle that is added:
  std::vector<std::uint32_t> order_;    ///< Its splits, level by level.
  std::vector<const Number*> weights_;  ///< The weights of the points, tree by tree.
  std::vector<Vector> vectors_;
  std::uint32_t points_ = 0;
  // The tree that is added:
  std::vector<OpenSplit> open_;  ///< By depth: the splits on the way.
};

}  // namespace

void add_levels(HostPaths& paths) {
  if (paths.wide)
    LevelLoader<double>(paths, paths.doubles).run();
  else
    LevelLoader<float>(paths, paths.singles).run();
}

}  // namespace forestvm::host
