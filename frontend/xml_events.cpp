// See xml_events.hpp.
#include "frontend/xml_events.hpp"

#include <expat.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {
namespace {

/// The most bytes of a tag or text. While Expat reads a tag, it takes several times the tag's length of memory.
constexpr std::size_t kMaxTag = std::size_t{1} << 22;

/// The most bytes that one call passes to Expat, which counts them with an int. Expat makes no copy of a document that
/// is passed as one piece.
constexpr std::size_t kMaxPiece = std::size_t{1} << 30;

struct ParserDeleter {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};
using Parser = std::unique_ptr<std::remove_pointer_t<XML_Parser>, ParserDeleter>;

/// The state that the handlers share. No exception may pass through Expat, which is C, so it is kept in `thrown`.
struct XmlReading {
  XML_Parser parser;
  XmlSink& sink;
  std::uint32_t max_depth;
  std::uint32_t depth = 0;
  Result<void> result;
  std::exception_ptr thrown;

  std::size_t line() const { return XML_GetCurrentLineNumber(parser); }

  std::string place() const {
    return formatted("line {}, column {}", line(), XML_GetCurrentColumnNumber(parser) + 1);
  }

  /// Runs a part of the reading, and stops it if that part fails.
  template <class Part>
  void run(const Part& part) {
    if (!result.ok() || thrown) return;
    try {
      result = part();
    } catch (...) {
      thrown = std::current_exception();
    }
    if (!result.ok() || thrown) XML_StopParser(parser, XML_FALSE);
  }
};

XmlReading& reading_of(void* data) { return *static_cast<XmlReading*>(data); }

void XMLCALL begin_element(void* data, const XML_Char* name, const XML_Char** attributes) {
  XmlReading& reading = reading_of(data);
  reading.run([&]() -> Result<void> {
    if (++reading.depth > reading.max_depth)
      return refused(reading.place(), "more than {} elements inside one another", reading.max_depth);
    return reading.sink.on_begin(name, XmlAttributes(attributes), reading.line());
  });
}

void XMLCALL end_element(void* data, const XML_Char*) {
  XmlReading& reading = reading_of(data);
  --reading.depth;
  reading.run([&] { return reading.sink.on_end(reading.line()); });
}

void XMLCALL take_text(void* data, const XML_Char* text, int size) {
  XmlReading& reading = reading_of(data);
  reading.run([&] { return reading.sink.on_text({text, static_cast<std::size_t>(size)}); });
}

void XMLCALL refuse_doctype(void* data, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  XmlReading& reading = reading_of(data);
  reading.run([&]() -> Result<void> {
    return refused(reading.place(), "a document type declaration, which is never read: remove it");
  });
}

/// Refuses a document with a tag or text over the limit. Only tags contain '<'.
Result<void> check_lengths(std::string_view text) {
  std::size_t last = 0;
  while (last < text.size()) {
    const std::size_t next = std::min(text.find('<', last + 1), text.size());
    if (next - last > kMaxTag)
      return refused(formatted("byte {}", last), "a tag or text of more than {} bytes", kMaxTag);
    last = next;
  }
  return {};
}

}  // namespace

Result<void> read_xml(std::span<const std::byte> bytes, std::uint32_t max_depth, XmlSink& sink) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  FVM_TRY(check_lengths(text));
  const Parser parser(XML_ParserCreate(nullptr));
  if (!parser) throw std::bad_alloc();
  XmlReading reading{parser.get(), sink, max_depth, 0, {}, nullptr};
  XML_SetUserData(parser.get(), &reading);
  XML_SetElementHandler(parser.get(), begin_element, end_element);
  XML_SetCharacterDataHandler(parser.get(), take_text);
  XML_SetStartDoctypeDeclHandler(parser.get(), refuse_doctype);
  for (std::size_t at = 0;;) {
    const std::size_t size = std::min(kMaxPiece, text.size() - at);
    const bool last = at + size == text.size();
    const bool good =
        XML_Parse(parser.get(), text.data() + at, static_cast<int>(size), last ? 1 : 0) == XML_STATUS_OK;
    if (reading.thrown) std::rethrow_exception(reading.thrown);
    FVM_TRY(std::move(reading.result));
    if (!good) {
      const XML_Error error = XML_GetErrorCode(parser.get());
      if (error == XML_ERROR_NO_MEMORY) throw std::bad_alloc();
      return refused(reading.place(), std::string("the document is damaged: ") + XML_ErrorString(error));
    }
    if (last) return {};
    at += size;
  }
}

}  // namespace forestvm::frontend
