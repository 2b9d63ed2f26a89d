// The contents of a program as the compiler fills them in, and the function that makes a Program of them. Implemented
// by vm/program.
#pragma once

#include <string>
#include <vector>

#include <forestvm/program.hpp>

namespace forestvm {

/// The records of each section of a program, by the section's name. `strings` becomes two sections.
struct ProgramParts {
  /// StringId::Count texts, then feature names, then class labels, then names of categories.
  std::vector<std::string> strings;
#define FVM_RECORD(number, Name, name, Record, meaning) Record name{};
#define FVM_TEXTS(number, Name, name, Record, meaning)
#define FVM_SECTION(number, Name, name, Record, meaning) std::vector<Record> name;
#include <forestvm/internal/sections.def>
};

/// Makes the image of `parts` and verifies it: a program that is returned can run.
Result<Program> build_program(const ProgramParts& parts);

}  // namespace forestvm
