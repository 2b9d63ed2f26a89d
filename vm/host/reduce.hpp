// Adds up the private copies of an accumulator. Each element is summed in the order of the copies whatever
// the form, so that the form does not change its bits.
#pragma once

#include <cstddef>
#include <cstring>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/sums.hpp>

namespace forestvm::host {

/// A vector type of the compiler for `Width` sums that are added at once.
template <class Element, unsigned Width>
struct VectorOf;
template <unsigned Width>
struct VectorOf<F32Sum, Width> {
  typedef float Type __attribute__((vector_size(Width * sizeof(float))));
};
template <unsigned Width>
struct VectorOf<F64Sum, Width> {
  typedef double Type __attribute__((vector_size(Width * sizeof(double))));
};
template <unsigned Width>
struct VectorOf<Exact64Sum, Width> {
  typedef std::uint64_t Type __attribute__((vector_size(Width * sizeof(std::uint64_t))));
};

template <class Element>
void add_elements(Element* sums, const Element* more, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) sums[i].add(more[i]);
}

template <class Element, unsigned Width>
void add_vectors(Element* sums, const Element* more, std::size_t size) {
  using Vector = typename VectorOf<Element, Width>::Type;
  std::size_t i = 0;
  for (; i + Width <= size; i += Width) {
    Vector a, b;
    std::memcpy(&a, sums + i, sizeof a);
    std::memcpy(&b, more + i, sizeof b);
    a += b;
    std::memcpy(sums + i, &a, sizeof a);
  }
  add_elements(sums, more, i, size);
}

/// Adds more[i] to sums[i] for i below size, `width` at a time: operand Width of a reduction.
template <class Element>
void add_copy(Element* sums, const Element* more, std::size_t size, std::uint32_t width) {
  static_assert(kMaxReductionWidth == 16);
  switch (width) {
    case 1:
      return add_elements(sums, more, 0, size);
    case 2:
      return add_vectors<Element, 2>(sums, more, size);
    case 4:
      return add_vectors<Element, 4>(sums, more, size);
    case 8:
      return add_vectors<Element, 8>(sums, more, size);
    case 16:
      return add_vectors<Element, 16>(sums, more, size);
  }
  __builtin_unreachable();  // verified
}

/// Adds 128-bit sums one by one, because they carry from word to word: no vector adds them.
inline void add_copy(Exact128Sum* sums, const Exact128Sum* more, std::size_t size, std::uint32_t) {
  add_elements(sums, more, 0, size);
}

}  // namespace forestvm::host
