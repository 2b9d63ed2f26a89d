// The protobuf reader: every kind of field, and bytes that are no message.
#include "frontend/protobuf_wire.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace forestvm::test::test_protobuf_wire {
namespace {

using namespace std::string_view_literals;
using frontend::WireField;
using frontend::WireReader;

std::span<const std::byte> bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Returns the fields before the first error, and the error's text.
std::pair<std::vector<WireField>, std::string> fields_of(std::string_view text) {
  std::vector<WireField> fields;
  WireReader reader({bytes_in(text), 100});
  while (!reader.at_end()) {
    const Result<WireField> field = reader.next();
    if (!field) return {fields, field.error().text()};
    fields.push_back(*field);
  }
  return {fields, ""};
}

TEST(ProtobufWire, Fields) {
  const auto [fields, error] = fields_of(
      "\x08\x96\x01\x12\x02hi\x1d\x00\x00\x80\x3f\x21\x00\x00\x00\x00\x00\x00\xe0\x3f"
      "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xfa\xff\xff\xff\x0f\x00"sv);
  EXPECT_EQ(error, "");
  ASSERT_EQ(fields.size(), 6u);
  EXPECT_EQ(*integer_of(fields[0]), 150);
  EXPECT_EQ(fields[0].offset, 101u);
  EXPECT_EQ(*text_of(fields[1]), "hi");
  EXPECT_EQ(message_of(fields[1])->offset, 105u);
  EXPECT_EQ(*float_of(fields[2]), 1.0f);
  EXPECT_EQ(*double_of(fields[3]), 0.5);
  EXPECT_EQ(*integer_of(fields[4]), -1);
  EXPECT_EQ(fields[5].number, (1u << 29) - 1);
  EXPECT_EQ(integer_of(fields[1]).error().text(),
            "byte 105: field 2 has wire type 2, expected a whole number");
  EXPECT_EQ(message_of(fields[0]).error().text(), "byte 101: field 1 has wire type 0, expected a message");
}

TEST(ProtobufWire, RepeatedNumbersPackedAndNot) {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  const auto integer = [&](std::int64_t x) -> Result<void> { return integers.push_back(x), Result<void>(); };
  const auto real = [&](double x) -> Result<void> { return reals.push_back(x), Result<void>(); };
  const auto [fields, error] = fields_of(
      "\x0a\x03\x05\x96\x01\x08\x07\x12\x08\x00\x00\x80\x3f\x00\x00\x00\x40\x1a\x08\x00\x00\x00\x00\x00\x00\xe0\x3f"sv);
  ASSERT_EQ(fields.size(), 4u) << error;
  EXPECT_TRUE(visit_integers(fields[0], integer));
  EXPECT_TRUE(visit_integers(fields[1], integer));
  EXPECT_EQ(integers, (std::vector<std::int64_t>{5, 150, 7}));
  EXPECT_TRUE(visit_floats(fields[2], real));
  EXPECT_TRUE(visit_doubles(fields[3], real));
  EXPECT_EQ(reals, (std::vector<double>{1, 2, 0.5}));
  EXPECT_EQ(visit_doubles(fields[0], real).error().text(),
            "byte 102: field 1: its packed numbers end within a number");
  const auto [cut, none] = fields_of("\x0a\x02\x05\x96"sv);
  EXPECT_EQ(visit_integers(cut.front(), integer).error().text(),
            "byte 103: a packed number that is damaged or cut off");
}

TEST(ProtobufWire, Damage) {
  const struct {
    std::string_view bytes, sentence;
  } cases[] = {
      {"\x08"sv, "byte 101: a protobuf number that is damaged or cut off"},
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv,
       "byte 101: a protobuf number that is damaged or cut off"},
      {"\x0d\x00\x00\x00"sv, "byte 101: a protobuf number that is cut off"},
      {"\x12\x03hi"sv, "byte 102: protobuf field 2 has 3 bytes, but its message ends after 2"},
      {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi"sv,
       "byte 111: protobuf field 2 has 18446744073709551615 bytes, but its message ends after 2"},
      {"\x00\x00"sv, "byte 101: protobuf field number 0 does not exist"},
      {"\x80\x80\x80\x80\x10\x00"sv, "byte 105: protobuf field number 536870912 does not exist"},
      {"\x0b\x0c"sv, "byte 101: protobuf wire type 3 does not exist, or is a group"},
  };
  for (const auto& damaged : cases) EXPECT_EQ(fields_of(damaged.bytes).second, damaged.sentence);
  const auto [fields, error] = fields_of("\x12\x01\xff"sv);
  ASSERT_EQ(fields.size(), 1u) << error;
  EXPECT_EQ(text_of(fields[0]).error().text(), "byte 102: a text that is not UTF-8");
}

}  // namespace
}  // namespace forestvm::test::test_protobuf_wire
