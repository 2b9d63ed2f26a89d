// See flat_buffer.hpp. FlatBuffers' document "Internals" describes the layout: a table begins with the distance to its
// vtable, which holds the offsets of the table's fields; lists and texts begin with their length; references are
// distances forward.
#include "frontend/flat_buffer.hpp"

#include <string>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {

void FlatBuffer::fail(std::size_t at, const char* message) {
  if (!error_) error_ = refused(formatted("byte {}", base_ + at), message);
}

bool FlatBuffer::within(std::size_t at, std::size_t size) {
  if (error_) return false;
  if (at <= bytes_.size() && size <= bytes_.size() - at) return true;
  fail(at, "a value that lies outside of its part of the file");
  return false;
}

bool FlatBuffer::spend(std::size_t at, std::size_t size) {
  if (!within(at, size)) return false;
  if (size > unread_) {
    fail(at, "lists that share bytes: they hold more than their part of the file");
    return false;
  }
  unread_ -= size;
  return true;
}

FlatBuffer::List FlatBuffer::list(std::size_t at, std::size_t element_size) {
  const std::size_t begin = follow(at);
  const std::size_t count = number<std::uint32_t>(begin);
  return spend(begin, 4 + count * element_size) ? List{begin + 4, count} : List{};
}

FlatTable FlatBuffer::table(std::size_t at) {
  const std::size_t begin = follow(at);
  return spend(begin, 4) ? FlatTable(this, begin) : FlatTable();
}

FlatTable FlatBuffer::root() { return table(0); }

FlatTable FlatTables::operator[](std::size_t i) const { return buffer_->table(list_.at + 4 * i); }

std::size_t FlatTable::position_of(unsigned field) const {
  if (buffer_ == nullptr) return 0;
  const auto distance = buffer_->number<std::int32_t>(at_);
  // A vtable may lie behind its table: the sum wraps around to its position.
  const std::size_t vtable = at_ - static_cast<std::size_t>(std::int64_t{distance});
  const std::size_t slot = 4 + 2 * std::size_t{field};
  if (slot + 2 > buffer_->number<std::uint16_t>(vtable)) return 0;
  const std::size_t offset = buffer_->number<std::uint16_t>(vtable + slot);
  return offset == 0 ? 0 : at_ + offset;
}

FlatBuffer::List FlatTable::list_of(unsigned field, std::size_t element_size) const {
  const std::size_t at = position_of(field);
  return at == 0 ? FlatBuffer::List{} : buffer_->list(at, element_size);
}

std::span<const std::byte> FlatTable::bytes(unsigned field) const {
  const FlatBuffer::List list = list_of(field, 1);
  return list.count == 0 ? std::span<const std::byte>() : buffer_->bytes_.subspan(list.at, list.count);
}

std::string_view FlatTable::text(unsigned field) const {
  const std::span<const std::byte> found = bytes(field);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

std::vector<std::string_view> FlatTable::texts(unsigned field) const {
  const FlatBuffer::List list = list_of(field, 4);
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < list.count; ++i) {
    const FlatBuffer::List text = buffer_->list(list.at + 4 * i, 1);
    const auto* first = reinterpret_cast<const char*>(buffer_->bytes_.data());
    out.emplace_back(text.count == 0 ? std::string_view() : std::string_view(first + text.at, text.count));
  }
  return out;
}

FlatTable FlatTable::table(unsigned field) const {
  const std::size_t at = position_of(field);
  return at == 0 ? FlatTable() : buffer_->table(at);
}

FlatTables FlatTable::tables(unsigned field) const {
  const FlatBuffer::List list = list_of(field, 4);
  return list.count == 0 ? FlatTables() : FlatTables(buffer_, list);
}

}  // namespace forestvm::frontend
