// The shared headers as device code: one thread interprets a program and counts the instructions of each
// kind, walks one tree of each layout, and transforms one row. It is compiled, not run: what breaks here
// would break a GPU backend.
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/transform.hpp>

namespace {

/// Runs every loop in the calling thread.
struct CountingMachine {
  forestvm::Range ranges[forestvm::kRangeRegisters];
  const forestvm::Inst* code;
  forestvm::OutputKind output;
  std::uint32_t counts[forestvm::kOpCount];

  __device__ bool wants(forestvm::OutputKind kind) const { return kind == output; }
  __device__ void count(const forestvm::Inst& inst) { ++counts[static_cast<unsigned>(inst.op)]; }

  __device__ void parallel(const forestvm::Inst& par, std::uint32_t body) {
    using enum forestvm::OperandKind;
    using forestvm::Op;
    const forestvm::Range over = ranges[forestvm::operand<Op::Par, RangeIn>(par)];
    const std::uint32_t step = forestvm::operand<Op::Par, Step>(par);
    for (std::uint32_t i = 0; i < forestvm::iterations(over.size(), step); ++i) {
      ranges[forestvm::operand<Op::Par, RangeOut>(par)] = forestvm::chunk(over, step, i);
      forestvm::interpret(code, body, *this);
    }
  }

  __device__ void init(const forestvm::Inst& inst) { count(inst); }
  __device__ void zero(const forestvm::Inst& inst) { count(inst); }
  __device__ void add_base(const forestvm::Inst& inst) { count(inst); }
  __device__ void privatize(const forestvm::Inst& inst) { count(inst); }
  __device__ void walk(const forestvm::Inst& inst) { count(inst); }
  __device__ void reduce_dim(const forestvm::Inst& inst) { count(inst); }
  __device__ void transform(const forestvm::Inst& inst) { count(inst); }
  __device__ void store(const forestvm::Inst& inst) { count(inst); }
  __device__ void label(const forestvm::Inst& inst) { count(inst); }
};

template <class View>
__device__ float walk_tree(const typename View::Node* tree, const float* row) {
  std::uint32_t at = 0;
  while (!View::is_leaf(tree, at)) at = View::next(tree, at, row);
  return View::value(tree, at);
}

}  // namespace

extern "C" __global__ void forestvm_count_instructions(const forestvm::Inst* code, std::uint32_t rows,
                                                       std::uint32_t trees, forestvm::OutputKind output,
                                                       std::uint32_t* counts) {
  CountingMachine machine{};
  machine.code = code;
  machine.output = output;
  machine.ranges[0] = {0, rows, 0};
  machine.ranges[1] = {0, trees, 0};
  forestvm::interpret(code, 0, machine);
  for (unsigned i = 0; i < forestvm::kOpCount; ++i) counts[i] = machine.counts[i];
}

extern "C" __global__ void forestvm_walk(const forestvm::ArrayView::Node* array,
                                         const forestvm::SparseView::Node* sparse, const float* row,
                                         forestvm::Transform transform, float* scores, std::int64_t* label) {
  scores[0] = walk_tree<forestvm::ArrayView>(array, row);
  scores[1] = walk_tree<forestvm::SparseView>(sparse, row);
  forestvm::transform_row(transform, scores, 2);
  forestvm::label_row(forestvm::ClassRule::Argmax, scores, 2, label);
}
