// See level_paths.hpp.
#include "vm/host/paths/level_paths.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "vm/host/paths/loaded_paths.hpp"

namespace forestvm::host {
namespace {

/// Trees are bundled until they have this many splits, so that the numbers of a bundle stay in the first-level cache.
constexpr std::size_t kBundleSplits = 256;

constexpr std::uint32_t kNoChild = UINT32_MAX;

/// A split of a bundle.
struct LevelSplit {
  const PathSplit* split;
  std::size_t constants;  ///< Index of its constants among all.
  std::uint32_t points;   ///< Points of its tree.
  std::uint32_t left = kNoChild, right = kNoChild;
  std::uint32_t slot = 0;
  std::uint8_t bit = 0;
};

template <class Number>
class LevelLoader {
  static constexpr std::size_t kLanes = sizeof(Line) / sizeof(Number);
  static constexpr unsigned kBits = 8 * sizeof(Number);  ///< Bits of a lane.

 public:
  LevelLoader(LoadedPaths& paths, const std::vector<Number>& constants)
      : paths_(paths), constants_(constants) {}

  void run() {
    for (PathBatch& batch : paths_.batches) {
      batch.first_line = paths_.levels.size();
      for (std::size_t t = batch.first_tree; t < batch.end_tree;) {
        splits_.clear();
        roots_.clear();
        left_in_order_.clear();
        const std::size_t begin = t;
        while (t < batch.end_tree && t - begin < kLanes && splits_.size() < kBundleSplits)
          if (!add_tree(paths_.trees[t++])) return give_up();
        if (!add_bundle(std::span(paths_.trees).subspan(begin, t - begin))) return give_up();
        ++batch.bundles;
      }
    }
  }

 private:
  void give_up() {
    paths_.levels.clear();
    paths_.levels.shrink_to_fit();
  }

  /// Adds the splits of a tree. Returns false if one does not fit the form.
  bool add_tree(const PathTree& tree) {
    roots_.push_back(static_cast<std::uint32_t>(splits_.size()));
    open_.assign(paths_.most_depth, 0);
    features_.assign(paths_.most_depth + 1, 0);
    for (std::size_t i = 0; i < tree.step_count; ++i) {
      const PathStep& step = paths_.steps[tree.first_step + i];
      if (step.motion == PathMotion::Turn) continue;
      if (step.motion != PathMotion::Up) {
        const PathSplit& split = paths_.splits[tree.first_split + step.split];
        const auto at = static_cast<std::uint32_t>(splits_.size());
        const bool first = split.above == kNoneAbove;
        const unsigned bit = first ? features_[step.depth] : splits_[open_[split.above]].bit;
        if (bit >= kBits || split.column > UINT16_MAX || split.sum > UINT16_MAX) return false;
        features_[step.depth + 1u] = features_[step.depth] + (first ? 1 : 0);
        paths_.level_columns = std::max(paths_.level_columns, split.column + 1);
        splits_.push_back({&split, tree.first_constant + split.constants, tree.points});
        splits_.back().bit = static_cast<std::uint8_t>(bit);
        open_[step.depth] = at;
        if (step.depth != 0) {
          LevelSplit& above = splits_[open_[step.depth - 1u]];
          (step.is_right != 0 ? above.right : above.left) = at;
        }
      }
      if (step.motion == PathMotion::Up || step.motion == PathMotion::Both)
        left_in_order_.push_back(open_[step.depth]);
    }
    return true;
  }

  /// Gives splits their slots, and appends their vectors.
  bool add_bundle(std::span<const PathTree> trees) {
    struct Vector {
      std::size_t begin, end;  // in `order`
      LevelVector lanes;
    };
    std::vector<std::uint32_t> order = roots_;
    std::vector<Vector> vectors;
    std::uint32_t points = 0;
    for (const PathTree& tree : trees) points = std::max(points, tree.points);
    for (std::size_t begin = 0, base = 0; begin < order.size();) {
      const std::size_t end = order.size();
      base = vectors.size() * kLanes;
      const std::size_t next_base = base + (end - begin + kLanes - 1) / kLanes * kLanes;
      for (; begin < end; begin += std::min(kLanes, end - begin))
        vectors.push_back({begin, std::min(begin + kLanes, end),
                           vector_of(order, begin, std::min(begin + kLanes, end), vectors.size() * kLanes,
                                     next_base, end)});
    }
    const std::size_t slots = (vectors.size() + 1) * kLanes;
    if (slots > UINT16_MAX) return false;
    paths_.level_vectors = std::max(paths_.level_vectors, vectors.size() + 1);
    paths_.level_points = std::max<std::size_t>(paths_.level_points, vectors.size() * points + points);

    append(LevelBundle{static_cast<std::uint32_t>(vectors.size()), points,
                       static_cast<std::uint32_t>(left_in_order_.size())});
    for (std::uint32_t k = 0; k < points; ++k) {
      Number weights[kLanes] = {};
      for (std::size_t i = 0; i < trees.size(); ++i)
        if (k < trees[i].points) weights[i] = constants_[trees[i].first_constant + k];
      append(weights);
    }
    for (const Vector& vector : vectors) {
      const auto some = std::span(order).subspan(vector.begin, vector.end - vector.begin);
      append(vector.lanes);
      append_each(some, [&](const LevelSplit& split) { return at(split, SplitConstants::IfAway); });
      for (std::uint32_t k = 0; k < points; ++k)
        for (const unsigned constant : {SplitConstants::PointLeft, SplitConstants::PointRight})
          append_each(some, [&](const LevelSplit& split) { return at_point(split, k, constant); });
    }
    for (std::size_t v = vectors.size(); v-- > 0;) {
      const auto some = std::span(order).subspan(vectors[v].begin, vectors[v].end - vectors[v].begin);
      for (const unsigned constant : {SplitConstants::IfLeft, SplitConstants::IfRight,
                                      SplitConstants::FirstLeft, SplitConstants::FirstRight})
        append_each(some, [&](const LevelSplit& split) { return at(split, constant); });
      append_each(some, [&](const LevelSplit& split) {
        return of_leaves(split) ? Number{1} : at(split, SplitConstants::LeftValue);
      });
      append_each(some, [&](const LevelSplit& split) {
        return of_leaves(split) ? Number{0} : at(split, SplitConstants::RightValue);
      });
      for (std::uint32_t k = 0; k < points; ++k)
        append_each(some, [&](const LevelSplit& split) {
          const bool repeated = split.split->above != kNoneAbove;
          return repeated ? at_point(split, k, SplitConstants::PointSlope) : Number{1};
        });
    }
    std::vector<LevelSum> sums;
    for (const std::uint32_t s : left_in_order_)
      sums.push_back({static_cast<std::uint16_t>(splits_[s].slot),
                      static_cast<std::uint16_t>(splits_[s].split->sum)});
    append_bytes(sums.data(), sums.size() * sizeof(LevelSum));
    return true;
  }

  /// Returns what a row is compared with in a vector, and appends the children to `order`. The splits of the next level
  /// begin at `next_begin` in it, with the slot `next_slot`.
  LevelVector vector_of(std::vector<std::uint32_t>& order, std::size_t begin, std::size_t end,
                        std::size_t slot, std::size_t next_slot, std::size_t next_begin) {
    LevelVector lanes{};
    lanes.next = static_cast<std::uint32_t>(next_slot + order.size() - next_begin);
    for (std::size_t i = begin; i < end; ++i) {
      LevelSplit& split = splits_[order[i]];
      split.slot = static_cast<std::uint32_t>(slot + i - begin);
      lanes.column[i - begin] = static_cast<std::uint16_t>(split.split->column);
      lanes.code[i - begin] = split.split->code;
      lanes.bit[i - begin] = split.bit;
    }
    for (std::size_t i = begin; i < end; ++i)
      if (const std::uint32_t left = splits_[order[i]].left; left != kNoChild) {
        lanes.left = static_cast<std::uint16_t>(lanes.left | 1u << (i - begin));
        order.push_back(left);
      }
    for (std::size_t i = begin; i < end; ++i)
      if (const std::uint32_t right = splits_[order[i]].right; right != kNoChild) {
        lanes.right = static_cast<std::uint16_t>(lanes.right | 1u << (i - begin));
        order.push_back(right);
      }
    return lanes;
  }

  static bool of_leaves(const LevelSplit& split) {
    return split.left == kNoChild && split.right == kNoChild;
  }

  Number at(const LevelSplit& split, unsigned constant) const {
    return constants_[split.constants + constant];
  }

  /// Returns a constant of a point; 0 where the tree does not have the point.
  Number at_point(const LevelSplit& split, std::uint32_t k, unsigned constant) const {
    if (k >= split.points) return 0;
    const unsigned each = split.split->above != kNoneAbove ? 3 : 2;
    return constants_[split.constants + SplitConstants::Count + k * each + constant];
  }

  template <class Get>
  void append_each(std::span<const std::uint32_t> some, const Get& get) {
    Number numbers[kLanes] = {};
    for (std::size_t i = 0; i < some.size(); ++i) numbers[i] = get(splits_[some[i]]);
    append(numbers);
  }

  template <class Lines>
  void append(const Lines& lines) {
    static_assert(sizeof lines % sizeof(Line) == 0);
    append_bytes(&lines, sizeof lines);
  }

  void append_bytes(const void* from, std::size_t bytes) {
    const std::size_t begin = paths_.levels.size();
    paths_.levels.resize(begin + whole_lines(bytes) / sizeof(Line));
    if (bytes != 0) std::memcpy(paths_.levels.data() + begin, from, bytes);
  }

  LoadedPaths& paths_;
  const std::vector<Number>& constants_;
  std::vector<LevelSplit> splits_;             ///< Splits of the bundle, tree by tree, in preorder.
  std::vector<std::uint32_t> roots_;           ///< The first split of each tree.
  std::vector<std::uint32_t> left_in_order_;   ///< The splits in the order in which PathWalk leaves them.
  std::vector<std::uint32_t> open_;            ///< By depth: the split on the way.
  std::vector<unsigned> features_;             ///< By depth: different features on the way above.
};

}  // namespace

void add_levels(LoadedPaths& paths) {
  if (paths.wide)
    LevelLoader<double>(paths, paths.doubles).run();
  else
    LevelLoader<float>(paths, paths.singles).run();
}

}  // namespace forestvm::host
