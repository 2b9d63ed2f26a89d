// Reads the wire format of Protocol Buffers: a message is a sequence of numbered fields, read without a schema. In:
// bytes. Out: one field after the other, in place, each checked to lie within its message. Readers name the few fields
// they need by number and skip the others, as every protobuf reader does. The libraries that are generated from schemas
// copy whole messages into memory of their own before anything can be checked, at several times the file's size; here
// the caller sees every length first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// The encodings of a field. Groups (3 and 4), which protobuf gave up, are refused.
enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

/// The bytes of a message, and their offset in the file for error messages.
struct WireMessage {
  std::span<const std::byte> bytes;
  std::size_t offset = 0;
};

/// One field. The functions below read its value as the type that the schema says.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::Varint;
  std::uint64_t bits = 0;            ///< The value of Varint, Fixed32 and Fixed64.
  std::span<const std::byte> bytes;  ///< The value of Bytes: a text, a message or packed numbers.
  std::size_t offset = 0;            ///< Offset of the value in the file.
};

/// Reads a message's fields in order.
class WireReader {
 public:
  explicit WireReader(WireMessage message) : message_(message) {}

  bool at_end() const { return at_ == message_.bytes.size(); }
  /// Returns the next field; there must be one. Refuses a field that does not lie within the message.
  Result<WireField> next();

 private:
  Result<std::uint64_t> varint();
  Result<std::uint64_t> fixed(std::size_t size);
  Error error(std::string_view message) const;

  WireMessage message_;
  std::size_t at_ = 0;
};

/// Returns the place of a byte for messages: "byte 17".
std::string byte_location(std::size_t offset);

// Each of these refuses a field of another type than the schema's.
Result<std::int64_t> integer_of(const WireField& field);  ///< int32, int64, uint32, bool and enumerations.
Result<float> float_of(const WireField& field);
Result<double> double_of(const WireField& field);
Result<std::string_view> text_of(const WireField& field);  ///< Refuses what is not UTF-8.
Result<std::span<const std::byte>> bytes_of(const WireField& field);
Result<WireMessage> message_of(const WireField& field);

// Calls `receive` for each value of a repeated field's part: one number, or packed ones. Returns its errors also.
Result<void> visit_integers(const WireField& field, const std::function<Result<void>(std::int64_t)>& receive);
Result<void> visit_floats(const WireField& field, const std::function<Result<void>(float)>& receive);
Result<void> visit_doubles(const WireField& field, const std::function<Result<void>(double)>& receive);

}  // namespace forestvm::frontend
