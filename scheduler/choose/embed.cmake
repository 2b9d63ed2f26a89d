# Writes a C++ source file that defines walk_costs_image(): cmake -DIN=walk_costs.fvm -DOUT=FILE.cpp -P embed.cmake
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\"\n\"" bytes "${bytes}")
file(SIZE ${IN} size)
file(WRITE ${OUT} "#include \"scheduler/choose/walk_costs.hpp\"

namespace forestvm::scheduler {
namespace {
alignas(64) constexpr char kBytes[] =
\"${bytes}\";
}
std::span<const std::byte> walk_costs_image() { return std::as_bytes(std::span(kBytes, ${size})); }
}  // namespace forestvm::scheduler
")
