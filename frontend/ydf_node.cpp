// See ydf_node.hpp. Field numbers are those of YDF's decision_tree.proto.
#include "frontend/ydf_node.hpp"

#include <algorithm>

#include <forestvm/core/categories.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

Result<void> add_category(std::int64_t code, const WireField& field, YdfNode& node) {
  if (code < 0 || code >= std::int64_t{kMaxCategories})
    return refused(byte_location(field.offset), "category {} is not within 0 and {}", code,
                   kMaxCategories - 1);
  node.categories.push_back(static_cast<std::uint32_t>(code));
  return {};
}

Result<void> read_list(const WireField& field, YdfNode& node) {
  if (field.number != 1) return {};
  FVM_TRY(visit_integers(field, [&](std::int64_t code) { return add_category(code, field, node); }));
  std::sort(node.categories.begin(), node.categories.end());
  node.categories.erase(std::unique(node.categories.begin(), node.categories.end()), node.categories.end());
  return {};
}

Result<void> read_bitmap(const WireField& field, YdfNode& node) {
  if (field.number != 1) return {};
  FVM_ASSIGN(const std::span<const std::byte> bitmap, bytes_of(field));
  node.categories.clear();
  for (std::size_t i = 0; i < bitmap.size(); ++i)
    for (unsigned bit = 0; bit < 8; ++bit)
      if ((std::to_integer<unsigned>(bitmap[i]) >> bit & 1) != 0)
        FVM_TRY(add_category(static_cast<std::int64_t>(8 * i + bit), field, node));
  return {};
}

Result<void> read_higher(const WireField& field, YdfNode& node) {
  if (field.number != 1) return {};
  FVM_ASSIGN(node.threshold, float_of(field));
  return {};
}

Result<void> read_bin(const WireField& field, YdfNode& node) {
  if (field.number != 1) return {};
  FVM_ASSIGN(node.bin, integer_of(field));
  return {};
}

Result<void> read_oblique(const WireField& field, YdfNode& node) {
  const auto into = [](std::vector<float>& numbers) {
    return [&numbers](float number) -> Result<void> {
      numbers.push_back(number);
      return {};
    };
  };
  switch (field.number) {
    case 1:
      return visit_integers(field, [&](std::int64_t attribute) -> Result<void> {
        node.attributes.push_back(attribute);
        return {};
      });
    case 2:
      return visit_floats(field, into(node.weights));
    case 3: {
      FVM_ASSIGN(node.threshold, float_of(field));
      return {};
    }
    case 4:
      return visit_floats(field, into(node.replacements));
    default:
      return {};
  }
}

Result<void> read_nothing(const WireField&, YdfNode&) { return {}; }

struct Condition {
  YdfCondition condition;
  Result<void> (*read)(const WireField& field, YdfNode& node);
};

/// The conditions in the order of their field numbers, from 1 on.
constexpr Condition kConditions[] = {
    {YdfCondition::IsMissing, read_nothing}, {YdfCondition::Higher, read_higher},
    {YdfCondition::True, read_nothing},      {YdfCondition::In, read_list},
    {YdfCondition::In, read_bitmap},         {YdfCondition::Discretized, read_bin},
    {YdfCondition::Oblique, read_oblique},
};
constexpr std::uint32_t kVectorSequence = 8;

/// Reads the one field of the message that says what the condition is.
Result<void> read_kind(WireMessage message, YdfNode& node) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    const auto wrong = [&](std::string_view what) { return refused(byte_location(field.offset), what); };
    if (field.number == kVectorSequence) return wrong("conditions on sequences of vectors are not supported");
    if (field.number == 0 || field.number > std::size(kConditions))
      return wrong(formatted("unknown condition {}", field.number));
    if (node.condition != YdfCondition::None) return wrong("a node with two conditions");
    const Condition& row = kConditions[field.number - 1];
    node.condition = row.condition;
    FVM_ASSIGN(const WireMessage part, message_of(field));
    for (WireReader parts(part); !parts.at_end();) {
      FVM_ASSIGN(const WireField value, parts.next());
      FVM_TRY(row.read(value, node));
    }
  }
  return {};
}

Result<void> set_cover(const WireField& field, YdfNode& node) {
  FVM_ASSIGN(const std::int64_t rows, integer_of(field));
  node.cover = static_cast<float>(std::max<std::int64_t>(rows, 0));
  return {};
}

Result<void> read_condition(WireMessage message, YdfNode& node) {
  double weight = std::numeric_limits<double>::quiet_NaN();
  float score = std::numeric_limits<float>::quiet_NaN();
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    switch (field.number) {
      case 1: {
        FVM_ASSIGN(const std::int64_t na_value, integer_of(field));
        node.na_value = na_value != 0;
        break;
      }
      case 2: {
        FVM_ASSIGN(node.attribute, integer_of(field));
        break;
      }
      case 3: {
        FVM_ASSIGN(const WireMessage kind, message_of(field));
        FVM_TRY(read_kind(kind, node));
        break;
      }
      case 4:
        FVM_TRY(set_cover(field, node));
        break;
      case 5: {
        FVM_ASSIGN(weight, double_of(field));
        break;
      }
      case 6: {
        FVM_ASSIGN(score, float_of(field));
        break;
      }
      default:
        break;
    }
  }
  if (node.condition == YdfCondition::None)
    return refused(byte_location(message.offset), "a split without a condition that is known");
  node.gain = static_cast<float>(static_cast<double>(score) * weight);
  return {};
}

Result<void> read_counts(WireMessage message, YdfNode& node) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number == 1) {
      FVM_TRY(visit_doubles(field, [&](double count) -> Result<void> {
        node.class_counts.push_back(count);
        return {};
      }));
    } else if (field.number == 2) {
      FVM_ASSIGN(node.count_sum, double_of(field));
    }
  }
  return {};
}

Result<void> read_class(WireMessage message, YdfNode& node) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number == 1) {
      FVM_ASSIGN(node.top_class, integer_of(field));
    } else if (field.number == 2) {
      FVM_ASSIGN(const WireMessage counts, message_of(field));
      FVM_TRY(read_counts(counts, node));
    }
  }
  return {};
}

Result<void> read_number(WireMessage message, YdfNode& node) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number != 1) continue;
    FVM_ASSIGN(node.number, float_of(field));
  }
  return {};
}

Result<void> read_examples(WireMessage message, YdfNode& node) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number != 1) continue;
    FVM_ASSIGN(node.num_examples, integer_of(field));
  }
  return {};
}

Result<void> read_part(const WireField& field, WireMessage part, YdfNode& node) {
  constexpr std::uint32_t kClass = 1, kNumber = 2, kCondition = 3, kUplift = 5;
  switch (field.number) {
    case kClass:
      node.output = YdfOutput::Class;
      return read_class(part, node);
    case kNumber:
      node.output = YdfOutput::Number;
      return read_number(part, node);
    case kCondition:
      return read_condition(part, node);
    case kUplift:
      return refused(byte_location(field.offset), "uplift models are not supported");
    default:
      node.output = YdfOutput::Count;
      return read_examples(part, node);
  }
}

}  // namespace

Result<YdfNode> read_ydf_node(WireMessage message) {
  YdfNode node;
  node.offset = message.offset;
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    constexpr std::uint32_t kTrainingRows = 4, kLastPart = 6;
    if (field.number > kLastPart) continue;
    if (field.number == kTrainingRows) {
      FVM_TRY(set_cover(field, node));
      continue;
    }
    FVM_ASSIGN(const WireMessage part, message_of(field));
    FVM_TRY(read_part(field, part, node));
  }
  return node;
}

}  // namespace forestvm::frontend
