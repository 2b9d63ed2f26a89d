// C functions for the texts in a program: names of features and categories, labels of classes, and its origin.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <forestvm/forestvm.h>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/program.hpp>

#include "bindings/c/handles.hpp"

namespace {

using namespace forestvm;
using namespace forestvm::c_api;

/// Sets a caller's pointer and size to the text that `find` finds in the program.
template <class Find>
fvm_status give_text(const char* function, const fvm_program* program, const char** text, std::size_t* size,
                     const Find& find) {
  return guarded(function, [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    if (text == nullptr || size == nullptr) return usage("a pointer to the result is null");
    FVM_ASSIGN(const std::string_view found, find(program->names->program()));
    *text = found.data();
    *size = found.size();
    return {};
  });
}

/// Returns Usage if a number is not below the count of things that messages call `things`.
Result<void> check_below(std::uint32_t number, std::uint32_t count, const std::string& things) {
  if (number < count) return {};
  return usage("number {}, and there are {} {}", number, count, things);
}

}  // namespace

fvm_status fvm_program_text(const fvm_program* program, fvm_text which, const char** text, size_t* size) {
  static constexpr StringId kStrings[] = {StringId::Format, StringId::Trainer, StringId::Version,
                                          StringId::Objective, StringId::Schedule};
  const auto find = [&](const Program& known) -> Result<std::string_view> {
    if (which == FVM_TEXT_FINGERPRINT) return std::string_view(program->fingerprint);
    if (which < 0 || which > FVM_TEXT_FINGERPRINT) return usage("there is no text {}", which);
    return known.text(kStrings[which]);
  };
  return give_text("fvm_program_text", program, text, size, find);
}

fvm_status fvm_program_name_counts(const fvm_program* program, uint32_t* feature_names,
                                   uint32_t* class_labels) {
  return guarded("fvm_program_name_counts", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    const ProgramMeta& meta = program->names->program().meta();
    if (feature_names != nullptr) *feature_names = meta.num_feature_names;
    if (class_labels != nullptr) *class_labels = meta.num_class_labels;
    return {};
  });
}

fvm_status fvm_program_feature_name(const fvm_program* program, uint32_t feature, const char** name,
                                    size_t* size) {
  return give_text("fvm_program_feature_name", program, name, size,
                   [&](const Program& known) -> Result<std::string_view> {
                     FVM_TRY(check_below(feature, known.meta().num_feature_names, "names of features"));
                     return known.feature_name(feature);
                   });
}

fvm_status fvm_program_class_label(const fvm_program* program, uint32_t label, const char** text,
                                   size_t* size) {
  return give_text("fvm_program_class_label", program, text, size,
                   [&](const Program& known) -> Result<std::string_view> {
                     FVM_TRY(check_below(label, known.meta().num_class_labels, "class labels"));
                     return known.class_label(label);
                   });
}

fvm_status fvm_program_categories(const fvm_program* program, uint32_t feature, uint32_t* count,
                                  double* unseen) {
  return guarded("fvm_program_categories", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    if (count == nullptr || unseen == nullptr) return usage("a pointer to a result is null");
    const Program& known = program->names->program();
    FVM_TRY(check_below(feature, known.meta().num_features, "features"));
    const CategoryNames* const named = known.named_categories(feature);
    *count = named == nullptr ? 0 : named->count;
    *unseen = named == nullptr || named->refuses_unseen != 0 ? -1 : named->unseen;
    return {};
  });
}

fvm_status fvm_program_category_name(const fvm_program* program, uint32_t feature, uint32_t category,
                                     const char** name, size_t* size) {
  return give_text("fvm_program_category_name", program, name, size,
                   [&](const Program& known) -> Result<std::string_view> {
                     FVM_TRY(check_below(feature, known.meta().num_features, "features"));
                     const CategoryNames* const named = known.named_categories(feature);
                     FVM_TRY(check_below(category, named == nullptr ? 0 : named->count,
                                         formatted("names of categories of feature {}", feature)));
                     return known.category_name(feature, category);
                   });
}

fvm_status fvm_program_category_code(const fvm_program* program, uint32_t feature, const char* name,
                                     size_t size, double* code) {
  return guarded("fvm_program_category_code", [&]() -> Result<void> {
    FVM_TRY(check_handle(program));
    if (code == nullptr || (name == nullptr && size != 0)) return usage("the name or the code is null");
    FVM_TRY(check_below(feature, program->names->program().meta().num_features, "features"));
    const CategoryTexts& texts = program->names->categories();
    if (!texts.takes(feature))
      return usage("feature {} has no names of categories, and is not compared as text", feature);
    FVM_ASSIGN(*code, texts.number_of(feature, std::string_view(name, size)));
    return {};
  });
}
