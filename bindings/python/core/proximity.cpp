// See proximity.hpp.
#include "bindings/python/core/proximity.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include <forestvm/proximity.hpp>

#include "bindings/python/core/errors.hpp"

namespace forestvm::python {
namespace {

/// The arrays of a call. They are matrices in C order, which Forest.proximity makes.
struct Call {
  Buffer leaves, others, out, rows;
  bool has_others = false, has_rows = false;

  static std::size_t height(const Buffer& array) { return static_cast<std::size_t>(array->shape[0]); }
  static std::size_t width(const Buffer& array) { return static_cast<std::size_t>(array->shape[1]); }
  static std::span<const std::int32_t> numbers(const Buffer& array) {
    return {static_cast<const std::int32_t*>(array->buf), height(array) * width(array)};
  }
};

template <class Score>
Result<void> share(const Call& call) {
  FVM_ASSIGN(KeptLeaves kept, KeptLeaves::make(Call::width(call.leaves)));
  FVM_TRY(kept.add(Call::numbers(call.has_others ? call.others : call.leaves)));
  const std::size_t count = Call::height(call.leaves), others = kept.rows(), trees = kept.trees();
  const auto score = [&](std::size_t first, std::size_t rows, std::span<Score> out) {
    const auto mine = Call::numbers(call.leaves).subspan(first * trees, rows * trees);
    if constexpr (std::is_same_v<Score, double>)
      return call.has_others ? kept.weigh(mine, out) : kept.weigh_kept(first, rows, out);
    else
      return call.has_others ? kept.count(mine, out) : kept.count_kept(first, rows, out);
  };
  auto* const out = static_cast<Score*>(call.out->buf);
  if (!call.has_rows) return score(0, count, {out, count * others});
  auto* const nearest_rows = static_cast<std::int64_t*>(call.rows->buf);
  const std::size_t top = Call::width(call.rows);
  // The scores of few rows stay in a cache until the nearest are found. Weights of many trees take so long that more
  // rows are compared with one another, each pair once.
  constexpr std::size_t kScoreBytes = std::size_t{4} << 20, kLeastRows = 16, kManyTrees = 200;
  const bool takes_long = std::is_same_v<Score, double> && trees > kManyTrees;
  const std::size_t own_bytes = std::size_t{takes_long ? 128U : 8U} << 20;
  const std::size_t row_bytes = others * sizeof(Score);
  const std::size_t at_once = call.has_others ? std::min(count, std::max(kLeastRows, kScoreBytes / row_bytes))
                                              : kept.rows_together(own_bytes / row_bytes);
  const auto room = std::make_unique_for_overwrite<Score[]>(at_once * others);
  const std::span<Score> scores(room.get(), at_once * others);
  for (std::size_t first = 0; first < count; first += at_once) {
    const std::size_t rows = std::min(at_once, count - first);
    FVM_TRY(score(first, rows, scores));
    for (std::size_t r = 0; r < rows; ++r) {
      const auto self = call.has_others ? std::nullopt : std::optional(first + r);
      std::size_t at = (first + r) * top;
      for (const auto& neighbour :
           nearest(std::span<const Score>(scores.data() + r * others, others), top, self)) {
        nearest_rows[at] = static_cast<std::int64_t>(neighbour.row);
        out[at++] = neighbour.score;
      }
    }
  }
  return {};
}

}  // namespace

PyObject* share_leaves(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *leaves = nullptr, *others = nullptr, *out = nullptr, *rows = nullptr;
    if (PyArg_ParseTuple(args, "OOOO", &leaves, &others, &out, &rows) == 0) return nullptr;
    constexpr int kRead = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT, kWrite = kRead | PyBUF_WRITABLE;
    Call call;
    call.has_others = others != Py_None;
    call.has_rows = rows != Py_None;
    if (!call.leaves.open(leaves, kRead) || !call.out.open(out, kWrite)) return nullptr;
    if (call.has_others && !call.others.open(others, kRead)) return nullptr;
    if (call.has_rows && !call.rows.open(rows, kWrite)) return nullptr;
    const bool weighs = *call.out->format == 'd';
    Result<void> done;
    {
      const WithoutGil others_run;
      done = weighs ? share<double>(call) : share<std::int32_t>(call);
    }
    if (!done) return raise(done.error());
    Py_RETURN_NONE;
  });
}

}  // namespace forestvm::python
