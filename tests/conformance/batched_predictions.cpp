// See batched_predictions.hpp.
#include "batched_predictions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace forestvm::test {

std::vector<double> predicted(const Predictor& predictor, const RowBlock& rows, OutputKind output,
                              const CallOptions& options, std::size_t batch) {
  const auto context = predictor.make_context();
  const std::size_t width = output_width(predictor.program(), output, options);
  std::vector<double> out(rows.count * width);
  std::vector<std::int64_t> labels(rows.count * width);
  const bool is_class = output == OutputKind::Class;
  const std::size_t outputs = predictor.program().meta().num_outputs;
  for (std::size_t begin = 0; begin < rows.count; begin += batch) {
    RowBlock some = rows;
    some.data = static_cast<const std::byte*>(rows.data) +
                begin * rows.stride * (rows.type == RowType::Float64 ? sizeof(double) : sizeof(float));
    some.count = std::min(batch, rows.count - begin);
    CallOptions call = options;
    if (options.base_margin.data != nullptr) {
      call.base_margin.data = static_cast<const double*>(options.base_margin.data) + begin * outputs;
      call.base_margin.rows = some.count;
    }
    void* const to =
        is_class ? static_cast<void*>(labels.data() + begin * width) : out.data() + begin * width;
    const auto done = predictor.predict_with(*context, some, output,
                                             is_class ? ResultType::Int64 : ResultType::Float64, call, to);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  }
  if (is_class) out.assign(labels.begin(), labels.end());
  return out;
}

}  // namespace forestvm::test
