// Rewrites and lineage of the loop tree.
#include "scheduler/loop_tree.hpp"

#include <algorithm>
#include <functional>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {
namespace {

/// A name in a schedule: `outer.inner` means the loops `inner` inside loops `outer`, `inner` alone all loops of
/// that name.
struct QualifiedName {
  std::string around, own;

  explicit QualifiedName(const std::string& name) {
    const std::size_t dot = name.find('.');
    own = dot == std::string::npos ? name : name.substr(dot + 1);
    if (dot != std::string::npos) around = name.substr(0, dot);
  }
};

/// True if two names can mean the same loop.
bool overlap(const std::string& a, const std::string& b) {
  const QualifiedName x(a), y(b);
  return x.own == y.own && (x.around.empty() || y.around.empty() || x.around == y.around);
}

}  // namespace

LoopTree::LoopTree(std::uint32_t num_trees) : num_trees_(num_trees) {
  Loop batch, tree;
  batch.name = "batch";
  batch.children = {1};
  tree.name = "tree";
  tree.axis = Axis::Trees;
  tree.parent = 0;
  loops_ = {batch, tree};
  roots_ = {0};
}

std::vector<LoopId> LoopTree::live(const std::string& name) const {
  const QualifiedName wanted(name);
  std::vector<LoopId> found;
  const std::function<void(LoopId, bool)> visit = [&](LoopId id, bool within) {
    if (within && loops_[id].name == wanted.own) found.push_back(id);
    for (const LoopId child : loops_[id].children) visit(child, within || loops_[id].name == wanted.around);
  };
  for (const LoopId root : roots_) visit(root, wanted.around.empty());
  return found;
}

Result<std::vector<LoopId>> LoopTree::find(const std::string& name) const {
  std::vector<LoopId> found = live(name);
  if (!found.empty()) return found;
  const auto gone = std::find_if(retired_.begin(), retired_.end(),
                                 [&](const auto& entry) { return overlap(entry.first, name); });
  if (gone == retired_.end()) return refused(formatted("there is no loop '{}'", name));
  std::string into;
  for (const std::string& part : gone->second.into) into += (into.empty() ? "" : " and ") + part;
  return refused(formatted("loop '{}' became {} by {}", gone->first, into, gone->second.by));
}

Result<std::vector<LoopId>> LoopTree::find_family(const std::string& name) const {
  std::vector<LoopId> found;
  add_family(name, found);
  if (found.empty()) return find(name);
  return found;
}

void LoopTree::add_family(const std::string& name, std::vector<LoopId>& found) const {
  for (const LoopId loop : live(name))
    if (std::find(found.begin(), found.end(), loop) == found.end()) found.push_back(loop);
  const std::string around = QualifiedName(name).around;
  for (const auto& [gone, retired] : retired_)
    if (overlap(gone, name))
      for (const std::string& part : retired.into)
        add_family(around.empty() ? part : formatted("{}.{}", around, part), found);
}

Result<void> LoopTree::check_new_name(const std::string& name) const {
  const bool taken =
      !live(name).empty() || std::any_of(retired_.begin(), retired_.end(),
                                         [&](const auto& entry) { return overlap(entry.first, name); });
  if (taken) return refused(formatted("the name '{}' is taken", name));
  return {};
}

std::vector<LoopId>& LoopTree::siblings(LoopId loop) {
  return loops_[loop].parent == kNoLoop ? roots_ : loops_[loops_[loop].parent].children;
}

void LoopTree::tile(LoopId v, const std::string& outer, const std::string& inner, std::uint64_t size) {
  const LoopId id = loops_.size();
  Loop in;
  in.name = inner;
  in.axis = loops_[v].axis;
  in.parent = v;
  in.children = loops_[v].children;
  in.source = v;
  in.step = loops_[v].step;
  for (Loop& loop : loops_)
    if (loop.source == v) loop.source = id;  // an iteration of v is one of the inner loop now
  for (const LoopId child : in.children) loops_[child].parent = id;
  loops_[v].name = outer;
  loops_[v].children = {id};
  loops_[v].step = std::min(kAll, loops_[v].step * size);
  loops_.push_back(std::move(in));
}

LoopId LoopTree::copy(LoopId loop, LoopId parent, std::map<LoopId, LoopId>& copies) {
  const LoopId id = loops_.size();
  loops_.push_back(loops_[loop]);
  copies[loop] = id;
  loops_[id].parent = parent;
  if (const auto source = copies.find(loops_[id].source); source != copies.end())
    loops_[id].source = source->second;
  const std::vector<LoopId> children = loops_[id].children;
  loops_[id].children.clear();
  for (const LoopId child : children) {
    const LoopId twin = copy(child, id, copies);
    loops_[id].children.push_back(twin);
  }
  return id;
}

void LoopTree::split(LoopId v, const std::string& first, const std::string& second, std::uint64_t at) {
  std::map<LoopId, LoopId> copies;
  const LoopId twin = copy(v, loops_[v].parent, copies);
  const std::uint64_t cut = std::min({kAll, loops_[v].to, loops_[v].from + at * loops_[v].step});
  loops_[v].name = first;
  loops_[v].to = cut;
  loops_[twin].name = second;
  loops_[twin].from = cut;
  std::vector<LoopId>& around = siblings(v);
  around.insert(std::find(around.begin(), around.end(), v) + 1, twin);
}

void LoopTree::permute(const std::vector<LoopId>& chain, const std::vector<LoopId>& order) {
  const LoopId above = loops_[chain.front()].parent;
  const std::vector<LoopId> below = loops_[chain.back()].children;
  std::vector<LoopId>& top = siblings(chain.front());
  *std::find(top.begin(), top.end(), chain.front()) = order.front();
  for (std::size_t i = 0; i < order.size(); ++i) {
    loops_[order[i]].parent = i == 0 ? above : order[i - 1];
    loops_[order[i]].children = i + 1 < order.size() ? std::vector<LoopId>{order[i + 1]} : below;
  }
  for (const LoopId child : below) loops_[child].parent = order.back();
}

void LoopTree::retire(const std::string& name, const std::string& by, std::vector<std::string> into) {
  retired_[name] = {by, std::move(into)};
}

bool LoopTree::inside(LoopId loop, LoopId around) const {
  for (LoopId at = loops_[loop].parent; at != kNoLoop; at = loops_[at].parent)
    if (at == around) return true;
  return false;
}

std::uint64_t LoopTree::extent(LoopId loop) const {
  const Loop& l = loops_[loop];
  std::uint64_t size = l.axis == Axis::Trees ? num_trees_ : kAll;
  if (l.source != kNoLoop) size = std::min(extent(l.source), loops_[l.source].step);
  return std::min(l.to, size) - std::min(l.from, size);
}

std::uint64_t LoopTree::iterations(LoopId loop) const {
  const std::uint64_t step = loops_[loop].step;
  return (extent(loop) + step - 1) / step;
}

std::size_t LoopTree::depth(LoopId loop) const {
  std::size_t depth = 0;
  for (LoopId at = loop; at != kNoLoop; at = loops_[at].parent) ++depth;
  return depth;
}

std::pair<std::uint32_t, std::uint32_t> LoopTree::tree_bounds(LoopId loop) const {
  const Loop& l = loops_[loop];
  // which iteration is not known here: all of them count
  if (l.source != kNoLoop) return tree_bounds(l.source);
  const auto cut = [&](std::uint64_t at) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(at, num_trees_));
  };
  return {cut(l.from), cut(l.to)};
}

}  // namespace forestvm::scheduler
