// See ydf_columns.hpp. Field numbers are those of YDF's data_spec.proto.
#include "frontend/ydf_columns.hpp"

#include <optional>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

Result<YdfType> type_of(std::int64_t number, const WireField& field) {
  const auto unsupported = [&](const char* what) {
    return refused(byte_location(field.offset), "columns of {} are not supported", what);
  };
  switch (number) {
    case 1:
      return YdfType::Numerical;
    case 4:
      return YdfType::Categorical;
    case 7:
      return YdfType::Boolean;
    case 9:
      return YdfType::Discretized;
    case 2:
    case 3:
      return unsupported("sets or lists of numbers");
    case 5:
    case 6:
      return unsupported("sets or lists of categories");
    case 8:
      return unsupported("texts");
    case 10:
      return unsupported("hashes");
    case 11:
      return unsupported("sequences of vectors");
    default:
      return refused(byte_location(field.offset), "unknown column type {}", number);
  }
}

Result<void> read_numerical(WireMessage message, YdfColumn& column) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number != 1) continue;
    FVM_ASSIGN(column.mean, double_of(field));
  }
  return {};
}

struct Category {
  std::string_view name;
  std::int64_t number = 0;
  std::size_t offset = 0;
};

Result<Category> read_category(WireMessage message) {
  Category category;
  category.offset = message.offset;
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number == 1) {
      FVM_ASSIGN(category.name, text_of(field));
    } else if (field.number == 2) {
      FVM_ASSIGN(const WireMessage value, message_of(field));
      for (WireReader values(value); !values.at_end();) {
        FVM_ASSIGN(const WireField number, values.next());
        if (number.number != 1) continue;
        FVM_ASSIGN(category.number, integer_of(number));
      }
    }
  }
  return category;
}

/// Sets the names of the categories 0, 1, ...; each number must have one name.
Result<void> set_names(const std::vector<Category>& categories, YdfColumn& column) {
  std::vector<bool> seen(categories.size());
  column.names.resize(categories.size());
  for (const Category& category : categories) {
    const auto wrong = [&](const std::string& what) {
      return refused(byte_location(category.offset), "category {}{}", category.number, what);
    };
    if (category.number < 0 || static_cast<std::uint64_t>(category.number) >= categories.size())
      return wrong(formatted(" does not exist: there are {} categories", categories.size()));
    const auto at = static_cast<std::size_t>(category.number);
    if (seen[at]) return wrong(" has two names");
    seen[at] = true;
    column.names[at] = category.name;
  }
  return {};
}

Result<void> read_categorical(WireMessage message, YdfColumn& column) {
  std::vector<Category> categories;
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    switch (field.number) {
      case 1: {
        FVM_ASSIGN(column.most_frequent, integer_of(field));
        break;
      }
      case 2: {
        FVM_ASSIGN(column.num_categories, integer_of(field));
        break;
      }
      case 5: {
        FVM_ASSIGN(const std::int64_t integerized, integer_of(field));
        column.integerized = integerized != 0;
        break;
      }
      case 7: {
        FVM_ASSIGN(const WireMessage item, message_of(field));
        FVM_ASSIGN(const Category category, read_category(item));
        categories.push_back(category);
        break;
      }
      default:
        break;
    }
  }
  FVM_TRY(set_names(categories, column));
  if (!column.integerized && column.num_categories != static_cast<std::int64_t>(categories.size()))
    return refused(byte_location(message.offset), "{} categories, but {} have a name", column.num_categories,
                   categories.size());
  return {};
}

Result<void> read_boundaries(WireMessage message, YdfColumn& column) {
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number != 1) continue;
    FVM_TRY(visit_floats(field, [&](float boundary) -> Result<void> {
      column.boundaries.push_back(boundary);
      return {};
    }));
  }
  return {};
}

Result<void> read_boolean(WireMessage message, YdfColumn& column) {
  std::int64_t counts[2] = {0, 0};  // rows with true, rows with false
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number != 1 && field.number != 2) continue;
    FVM_ASSIGN(counts[field.number - 1], integer_of(field));
  }
  column.mostly_true = counts[0] >= counts[1];
  return {};
}

using PartReader = Result<void> (*)(WireMessage, YdfColumn&);

/// Returns the function that reads a field of a column which is a message.
PartReader part_reader(std::uint32_t field) {
  switch (field) {
    case 5:
      return read_numerical;
    case 6:
      return read_categorical;
    case 8:
      return read_boundaries;
    case 9:
      return read_boolean;
    default:
      return nullptr;
  }
}

}  // namespace

Result<std::vector<WireMessage>> ydf_columns_of(WireMessage data_spec) {
  std::vector<WireMessage> columns;
  for (WireReader reader(data_spec); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number != 1) continue;
    FVM_ASSIGN(const WireMessage column, message_of(field));
    columns.push_back(column);
  }
  return columns;
}

Result<YdfColumn> read_ydf_column(WireMessage message) {
  YdfColumn column;
  bool typed = false;
  for (WireReader reader(message); !reader.at_end();) {
    FVM_ASSIGN(const WireField field, reader.next());
    if (field.number == 1) {
      FVM_ASSIGN(const std::int64_t type, integer_of(field));
      FVM_ASSIGN(column.type, type_of(type, field));
      typed = true;
    } else if (field.number == 2) {
      FVM_ASSIGN(const std::string_view name, text_of(field));
      column.name = name;
    } else if (const PartReader read = part_reader(field.number); read != nullptr) {
      FVM_ASSIGN(const WireMessage part, message_of(field));
      FVM_TRY(read(part, column));
    }
  }
  if (!typed) return refused(byte_location(message.offset), "a column without a type");
  return column;
}

}  // namespace forestvm::frontend
