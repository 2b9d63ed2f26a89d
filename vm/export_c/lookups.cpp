// Writes the lookups of hashed categories, see core/derived_columns.hpp, and the function that puts the code of a
// category's text into a row's cell: the low 32 bits of CityHash64 (version 1.0).
#include <forestvm/core/derived_columns.hpp>

#include "vm/export_c/parts.hpp"

namespace forestvm::bytecode::export_c {
namespace {

constexpr const char* kCityHash = R"(/* CityHash64, version 1.0. */
static uint64_t @bytes(const char *text, size_t count) {
  uint64_t word = 0u;
  while (count-- > 0u) word = word << 8 | (unsigned char)text[count];
  return word;
}
static uint64_t @rotated(uint64_t word, uint32_t by) { return word >> by | word << (64u - by); }
static uint64_t @mixed(uint64_t word) { return word ^ word >> 47; }
static uint64_t @joined(uint64_t low, uint64_t high) {
  const uint64_t factor = 0x9ddfea08eb382d69ull, first = @mixed((low ^ high) * factor);
  return @mixed((high ^ first) * factor) * factor;
}
static uint64_t @hash_to_16(const char *text, size_t size) {
  const uint64_t prime2 = 0x9ae16a3b2f90404full, prime3 = 0xc949d7c7509e6557ull;
  uint64_t last;
  if (size > 8u) {
    last = @bytes(text + size - 8, 8u);
    return @joined(@bytes(text, 8u), @rotated(last + size, (uint32_t)size)) ^ last;
  }
  if (size >= 4u) return @joined(size + (@bytes(text, 4u) << 3), @bytes(text + size - 4, 4u));
  if (size == 0u) return prime2;
  last = size + (@bytes(text + size - 1, 1u) << 2);
  return @mixed((@bytes(text, 1u) + (@bytes(text + size / 2u, 1u) << 8)) * prime2 ^ last * prime3) * prime2;
}
static uint64_t @hash_to_32(const char *text, size_t size) {
  const uint64_t prime0 = 0xc3a5c85c97cb3127ull, prime1 = 0xb492b66fbe98f273ull, prime2 = 0x9ae16a3b2f90404full;
  const uint64_t prime3 = 0xc949d7c7509e6557ull;
  const uint64_t a = @bytes(text, 8u) * prime1, b = @bytes(text + 8, 8u);
  const uint64_t c = @bytes(text + size - 8, 8u) * prime2, d = @bytes(text + size - 16, 8u) * prime0;
  return @joined(@rotated(a - b, 43u) + @rotated(c, 30u) + d, a + @rotated(b ^ prime3, 20u) - c + size);
}
static void @hash_half(const char *text, uint64_t a, uint64_t last, uint64_t *pair) {
  uint64_t b = @rotated(a + last, 52u), c = @rotated(a, 37u);
  a += @bytes(text + 8, 8u);
  c += @rotated(a, 7u);
  a += @bytes(text + 16, 8u);
  pair[0] = a + last;
  pair[1] = b + @rotated(a, 31u) + c;
}
static uint64_t @hash_to_64(const char *text, size_t size) {
  const uint64_t prime0 = 0xc3a5c85c97cb3127ull, prime2 = 0x9ae16a3b2f90404full;
  const char *const end = text + size;
  uint64_t v[2], w[2];
  @hash_half(text, @bytes(text, 8u) + (size + @bytes(end - 16, 8u)) * prime0, @bytes(text + 24, 8u), v);
  @hash_half(end - 32, @bytes(text + 16, 8u) + @bytes(end - 32, 8u), @bytes(end - 8, 8u), w);
  return @mixed(@mixed((v[0] + w[1]) * prime2 + (w[0] + v[1]) * prime0) * prime0 + v[1]) * prime2;
}
static void @hash_32(const char *text, uint64_t a, uint64_t b, uint64_t *pair) {
  const uint64_t last = @bytes(text + 24, 8u);
  uint64_t begin;
  a += @bytes(text, 8u);
  b = @rotated(b + a + last, 21u);
  begin = a;
  a += @bytes(text + 8, 8u);
  a += @bytes(text + 16, 8u);
  pair[0] = a + last;
  pair[1] = b + @rotated(a, 44u) + begin;
}
static uint64_t @hash_from_65(const char *text, size_t size) {
  const uint64_t prime0 = 0xc3a5c85c97cb3127ull, prime1 = 0xb492b66fbe98f273ull;
  const char *const end = text + size;
  uint64_t x = @bytes(text, 8u), y = @bytes(end - 16, 8u) ^ prime1, z = @bytes(end - 56, 8u) ^ prime0;
  uint64_t v[2], w[2];
  size_t i;
  @hash_32(end - 64, size, y, v);
  @hash_32(end - 32, size * prime1, prime0, w);
  z += @mixed(v[1]) * prime1;
  x = @rotated(z + x, 39u) * prime1;
  y = @rotated(y, 33u) * prime1;
  for (i = 0u; i < (size - 1u) / 64u; ++i, text += 64) {
    uint64_t old_z;
    x = @rotated(x + y + v[0] + @bytes(text + 16, 8u), 37u) * prime1;
    y = @rotated(y + v[1] + @bytes(text + 48, 8u), 42u) * prime1;
    x ^= w[1];
    y ^= v[0];
    z = @rotated(z ^ w[0], 33u);
    @hash_32(text, v[1] * prime1, x + w[0], v);
    @hash_32(text + 32, z + w[1], y, w);
    old_z = z;
    z = x;
    x = old_z;
  }
  return @joined(@joined(v[0], w[0]) + @mixed(y) * prime1 + z, @joined(v[1], w[1]) + x);
}
/* Writes a category, by its UTF-8 text of `size` bytes, to the cell of a row. Whole numbers are categories by their
 * decimal text. */
void @category(float *cell, const char *text, size_t size) {
  const uint64_t hash = size <= 16u   ? @hash_to_16(text, size)
                        : size <= 32u ? @hash_to_32(text, size)
                        : size <= 64u ? @hash_to_64(text, size)
                                      : @hash_from_65(text, size);
  const uint32_t code = (uint32_t)(hash & 0xffffffffu);
  memcpy(cell, &code, sizeof code);
}
)";

constexpr const char* kLookUp =
    R"(/* Writes the columns of the lookups of a row. */
static void @look_up(const float *x, float *cells) {
  const uint64_t factor = @FACTOR;
  uint32_t i, k;
  for (i = 0u; i < @LOOKUPS; ++i) {
    const uint32_t *const lookup = @lookups[i], width = lookup[5];
    const uint64_t unused = @unused[i];
    const uint32_t *slot = @slots;
    uint64_t key = 0u, word;
    for (k = lookup[0]; k < lookup[1]; ++k) {
      const uint32_t *const part = @parts[k];
      const float value = x[part[1]];
      float border;
      int32_t code;
      memcpy(&border, part + 2, sizeof border);
      memcpy(&code, x + part[1], sizeof code);
      if (part[0] == 1u) code = value > border;
      if (part[0] == 2u) code = value > border || value != value;
      if (part[0] == 3u) code = (uint32_t)code == part[2];
      word = (uint64_t)(int64_t)code;
      key = factor * (key + factor * word);
    }
    slot += ((size_t)lookup[3] << 16 << 16 | lookup[2]) + (size_t)((key >> 32) * lookup[4] >> 32) * (width + 2u);
    for (;; slot += width + 2u) {
      word = slot[0] | (uint64_t)slot[1] << 32;
      if (word == key || word == unused) break;
    }
    memcpy(cells, slot + 2, width * sizeof *cells);
    cells += width;
  }
}
)";

}  // namespace

bool looks_up(const Program& program) { return !program.lookups().empty(); }

std::string lookups_text(const Job& job, std::uint64_t& table_bytes) {
  const Program& program = job.program;
  std::vector<std::vector<std::uint64_t>> lookups, parts;
  std::vector<std::string> unused;
  for (const LookupDesc& lookup : program.lookups()) {
    lookups.push_back({lookup.first_part, std::uint64_t{lookup.first_part} + lookup.part_count,
                       lookup.first_word & UINT32_MAX, lookup.first_word >> 32, lookup.home_count,
                       lookup.width});
    unused.push_back(number(lookup.unused_key));
  }
  for (const KeyPart& part : program.key_parts())
    parts.push_back({static_cast<std::uint64_t>(part.kind), part.feature, part.operand});
  if (parts.empty()) parts.push_back({0, 0, 0});
  const std::string text =
      replaced(kLookUp, {{"@LOOKUPS", number(program.lookups().size())}, {"@FACTOR", number(kKeyFactor)}});
  return "/* Parts of keys: kind, cell, operand. Kinds: 0 the code, 1 above the operand, 2 above it or NaN, 3 equal code. "
         "*/\n" +
         record_table(job, "parts", parts, table_bytes) +
         "/* Lookups: first part, end of the parts, first word of the table in two halves, slots where searches begin, "
         "columns.\n * A slot is a key in two halves, and a float for each column. */\n" +
         record_table(job, "lookups", lookups, table_bytes) +
         table("uint64_t", sizeof(std::uint64_t), job.name("unused"), unused, table_bytes) +
         words_table(job, "slots", program.lookup_words(), table_bytes) + in_file(job, text + kCityHash);
}

}  // namespace forestvm::bytecode::export_c
