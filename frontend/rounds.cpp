// See forestvm/rounds.hpp.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/rounds.hpp>

#include <algorithm>
#include <string>

namespace forestvm {

Result<Rounds> best_rounds(const Model& model) {
  if (!model.best_round)
    return refused("the model has no best round: its file does not mention early stopping");
  return Rounds{0, *model.best_round + 1};
}

Result<void> keep_rounds(Model& model, Rounds rounds) {
  const std::uint32_t count = round_count(model);
  const std::string text = formatted("{}:{}", rounds.begin, rounds.end);
  if (rounds.begin >= rounds.end || rounds.end > count)
    return usage("rounds {}: expected A:B with A < B, and B at most {}, the model's number of rounds", text,
                 count);
  if (rounds == Rounds{0, count}) return {};
  if (model.divisor != 1 && !model.averaged)
    return refused("the model's trees are not rounds of boosting: all of them are needed");
  const std::uint32_t first = model.round_begins[rounds.begin], last = model.round_begins[rounds.end];
  std::vector<Tree>& trees = model.trees;
  trees.erase(trees.begin() + last, trees.end());
  trees.erase(trees.begin(), trees.begin() + first);
  std::vector<std::uint32_t> begins;
  for (std::uint32_t round = rounds.begin; round <= rounds.end; ++round)
    begins.push_back(model.round_begins[round] - first);
  model.round_begins = std::move(begins);
  if (model.base_of_first_round && rounds.begin != 0) std::fill(model.base.begin(), model.base.end(), 0.0);
  if (rounds.begin != 0)
    model.uncertainty = UncertaintyRule::None;  // virtual ensembles begin with the first round
  model.best_round.reset();
  return {};
}

}  // namespace forestvm
