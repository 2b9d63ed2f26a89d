// The parts of an exported file, each made by a file of this folder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/export.hpp>

#include "vm/program/decode_forest.hpp"

namespace forestvm::bytecode::export_c {

/// A feature whose values are not always compared as they are.
struct ChangedFeature {
  std::uint32_t feature;
  std::uint32_t rules;  ///< Bits of a column's rules.
};

/// The options that calls of the exported C can have.
struct CallKinds {
  bool rounds;         ///< Rounds whose trees count.
  bool averages;       ///< The number of rounds divides raw scores; implies `rounds`.
  bool base_of_first;  ///< Base scores belong to the first round; implies `rounds`.
  bool margins;        ///< Margins of rows, of contributions at least.
  bool score_margins;  ///< Margins of rows, of scores, too.
  bool early_stop;
  bool quantiles;  ///< The program computes quantiles, which are arguments of a function.

  explicit CallKinds(const Program& program);
  bool some_trees() const { return rounds || early_stop; }
  bool any() const { return some_trees() || margins; }
  /// Returns whether the code reads what a call asks for.
  bool read() const { return any() || quantiles; }
};

/// The inputs of every part.
struct Job {
  const Program& program;
  const ExportOptions& options;
  CallKinds calls;
  std::vector<DecodedGroup> groups;
  std::vector<ChangedFeature> changed;  ///< Features that have rules, ascending.

  /// Returns a name in the exported file: PREFIX_name.
  std::string name(const std::string& own) const { return options.prefix + "_" + own; }
};

/// These return numbers as C text that is exact and makes no compiler warn.
std::string number(std::uint64_t value);             ///< For example 12u, or 5000000000ull.
std::string literal(float value);                    ///< For example 0x1.8p+1f.
std::string literal(double value);                   ///< For example 0x1.8p+1.
std::string literal(ScalarType type, double value);  ///< The literal of the type.
/// Returns a leaf or base score as the initializer of a sum.
std::string sum_literal(const Job& job, AccumulatorKind kind, double value);

std::string c_type(ScalarType type);

/// Returns a feature word or child as C text, in hexadecimal if it has flags, which are the highest bits.
std::string word(std::uint32_t value);

/// These return a threshold as C text in the form in which it is compared, and its C type. In the column of a set,
/// members are 1 and others 0.
std::string threshold(const Job& job, double value);
std::string threshold(const Job& job, const DecodedTest& test);
std::string threshold_type(const Job& job);

/// The kinds of sums, one for each C type and way of adding.
inline constexpr AccumulatorKind kSumKinds[] = {AccumulatorKind::F32, AccumulatorKind::F64,
                                                AccumulatorKind::Exact64, AccumulatorKind::Exact128};

/// Returns the name of the kind of sums that has the elements of an accumulator of this kind.
std::string sum_name(AccumulatorKind kind);

/// Returns the C type of a sum of this kind.
std::string sum_type(const Job& job, AccumulatorKind kind);

/// Returns a table, `static const TYPE NAME[N] = {…};`, and adds its bytes to `bytes`. A table without values
/// has one zero: C has no empty arrays.
std::string table(const std::string& type, std::size_t element, const std::string& name,
                  const std::vector<std::string>& values, std::uint64_t& bytes);

/// These return tables of uint32_t: one of records, which all have the same number of numbers, and one of single
/// numbers.
std::string record_table(const Job& job, const std::string& name,
                         const std::vector<std::vector<std::uint64_t>>& records, std::uint64_t& bytes);
std::string words_table(const Job& job, const std::string& name, std::span<const std::uint32_t> words,
                        std::uint64_t& bytes);

/// A word of C text, and what stands for it in the file.
struct Word {
  std::string_view word, with;
};

/// Returns the text with each occurrence of a word replaced, word after word.
std::string replaced(std::string_view text, std::initializer_list<Word> words);

/// Returns C text in which the words that depend on the program are replaced, such as @ROW, and the prefix of names, @.
/// @SCORE becomes the type `score`, and @BITS the ending of functions for that type.
std::string in_file(const Job& job, std::string_view text, ScalarType score = ScalarType::Float32);

/// Returns the features of a program that have rules.
std::vector<ChangedFeature> changed_features(const Program& program);

/// Returns the number of columns.
std::uint64_t column_count(const Job& job);

/// Returns the feature word of a test: the number of the column that it compares, and whether missing values go
/// left. Columns are numbered as in the program; after them come the changed features, then the sets of categories.
std::uint32_t column_word(const Job& job, const DecodedTest& test);

/// Returns the tables and functions of lookups and hashed features. Adds the tables' bytes to `table_bytes`.
std::string lookups_text(const Job& job, std::uint64_t& table_bytes);

/// Returns whether rows have columns of lookups.
bool looks_up(const Program& program);

/// Returns whether the code copies rows first, to complete them by the columns of lookups or by computed columns other
/// than weighted sums.
bool copies_rows(const Program& program);

/// Returns the C expression for the value of a column in row x. `column` is a variable that holds its number.
std::string column_value(const Job& job, const std::string& column);

/// Returns the tables and functions of columns that are no features, as far as the program has any. Adds the
/// tables' bytes to `table_bytes`.
std::string columns_text(const Job& job, std::uint64_t& table_bytes);

/// Returns the tables of the groups and the functions PREFIX_walk_gN(tree, row), which return the number of a
/// leaf. What `code` does not name is left out: groups, and tables of leaves' values, numbers, outputs and trees. Adds
/// the tables' bytes to `table_bytes`.
std::string forest_text(const Job& job, const std::string& code, std::uint64_t& table_bytes);

/// Returns the tables of the program's leaf functions, and PREFIX_leaf_output(number, row), which computes the output
/// of one. Adds the tables' bytes to `table_bytes`.
std::string leaf_functions_text(const Job& job, std::uint64_t& table_bytes);

/// Returns the tables of the program's paths, and PREFIX_explain(row, out), which writes a row's contributions. Adds
/// the tables' bytes to `table_bytes`, and what the function takes to `stack_bytes`.
std::string contributions_text(const Job& job, std::uint64_t& table_bytes, std::uint64_t& stack_bytes);

/// Returns the tables of what leaves attribute to features, and PREFIX_attribute(leaves, out), which writes a row's
/// approximate contributions. Adds the tables' bytes to `table_bytes`.
std::string attributions_text(const Job& job, std::uint64_t& table_bytes);

/// Returns whether the program's uncertainty is that of virtual ensembles.
bool has_members(const Program& program);

/// Returns the numbers of a row's uncertainty, and how often the virtual ensembles are gone through for it.
std::uint32_t uncertainty_width(const Program& program);
std::uint32_t member_passes(const Program& program);

/// Returns PREFIX_add_member(scores, pass, count, totals), which adds what a virtual ensemble says to totals, and
/// PREFIX_uncertainty_of(totals, count, out), which writes what follows from them. Adds the bytes of tables to
/// `table_bytes`.
std::string uncertainty_text(const Job& job, std::uint64_t& table_bytes);

/// Returns the tables of the targets that leaves keep, and PREFIX_write_quantiles(leaves, call, out). Adds the tables'
/// bytes to `table_bytes`.
std::string quantiles_text(const Job& job, std::uint64_t& table_bytes);

/// Returns whether exported C gives an output of a program.
bool is_exported(const Program& program, OutputKind output);

/// Returns the function that runs the program's code on up to `rows_at_a_time` rows.
std::string code_text(const Job& job, std::uint32_t rows_at_a_time);

/// Returns the types and functions that the code uses (ranges, comparisons, sums, transforms), as far as
/// `body` names them.
std::string runtime_text(const Job& job, const std::string& body);

/// Returns the bodies of the functions that turn a row's scores into values, and values into labels. If the number of
/// a call's rounds divides raw scores, it is a parameter of the function, `divisor`.
std::string transform_body(const Job& job, ScalarType score);
std::string label_body(const Job& job, ScalarType score);

/// Returns whether the function that finds labels has the parameter `divisor`.
bool divides_for_label(const Job& job);

/// Returns the types PREFIX_options, which callers fill, and PREFIX_call, which the code reads; nothing if calls have
/// no options.
std::string call_types(const Job& job);

/// Returns the options that an output takes, those that check_options of vm/call accepts: kRounds, kMargins and
/// kEarlyStop. In C, a function returns the bit of an option that is wrong. Two more bits tell of virtual ensembles
/// that the rounds do not make, and of wrong quantiles.
unsigned options_of(const Job& job, OutputKind output);
inline constexpr unsigned kRounds = 1, kMargins = 2, kEarlyStop = 4, kEnsembles = 8, kQuantiles = 16;

/// Returns whether the number from which a sum of this kind starts depends on the call.
bool base_varies(const Job& job, AccumulatorKind kind);

/// Returns the function PREFIX_base_of_KIND(call, row, k), for kinds of sums for which base_varies.
std::string base_text(const Job& job, AccumulatorKind kind);

/// Returns the functions that callers see. The code runs on up to `rows_at_a_time` rows.
std::string entries_text(const Job& job, std::uint32_t rows_at_a_time);

/// Returns the bytes that the code takes on the stack for a row.
std::uint64_t bytes_per_row(const Program& program);

}  // namespace forestvm::bytecode::export_c
