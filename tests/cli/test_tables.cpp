// Tables of text as people have them: any separator, words for missing values and truth, columns that are no features.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cli/io/separator.hpp"
#include "read_rows.hpp"

namespace forestvm::cli::test_tables {
namespace {

/// Returns the separator that is found for rows of `width` cells, or the error's text.
std::string separator(std::string text, std::size_t width) {
  Source source = Source::from_text(std::move(text));
  const auto found = find_separator(source, width);
  return found ? std::string(1, *found) : found.error().text();
}

TEST(Separators, AreFoundInTheFirstLine) {
  EXPECT_EQ(separator("1,2\n", 2), ",");
  EXPECT_EQ(separator("1;2\n3,4\n", 2), ";");
  EXPECT_EQ(separator("1\t2\n", 2), "\t");
  EXPECT_EQ(separator("1 2\n", 2), " ");
  EXPECT_EQ(separator("  1   2\t \r\n", 2), "\t");  // a tab at the end makes an empty last cell
  EXPECT_EQ(separator("  1   2 \r\n", 2), " ");
  EXPECT_EQ(separator("1", 1), ",");
  EXPECT_EQ(separator("", 2), ",");
  EXPECT_EQ(separator("\t\t\n", 3), "\t");
}

TEST(Separators, AreNotInQuotesOrBesideOthers) {
  EXPECT_EQ(separator("\"a;b\",\"c\td\"\n", 2), ",");
  EXPECT_EQ(separator("\"a\nb\";c\n", 2), ";");
  EXPECT_EQ(separator("a b, c d\n", 2), ",");
  EXPECT_EQ(separator("1,\t2 ;3\n", 2).substr(0, 8), "line 1: ");
  EXPECT_EQ(separator("1,\t2\n", 2), ",");
  EXPECT_EQ(separator("income yearly\n", 1), ",");  // one column whose name has a space
}

TEST(Separators, AreThoseThatGiveTheRightNumberOfCells) {
  EXPECT_EQ(separator("1,5;2,5;3\n", 3),
            "line 1: the separator cannot be told, because the line has both ',' and ';': "
            "say it with --separator");
  EXPECT_EQ(separator("1,5;2,5;3,5\n", 3), ";");
  EXPECT_EQ(separator("a,b\tc\td\n", 3), "\t");
  EXPECT_EQ(
      separator("a,b\tc\n", 2),
      "line 1: the separator cannot be told, because the line has both ',' and a tab: say it with --separator");
}

TEST(Tables, HaveAnySeparator) {
  expect_values(rows_of("a;b\n1;2.5\n;4\n", 2), {1, 2.5F, NAN, 4});
  expect_values(rows_of("1\t2\t\n\t\t3\n", 3), {1, 2, NAN, NAN, NAN, 3});
  expect_values(rows_of("  1   2\t 3\n4 5 6   \r\n\"7\" 8 9", {.width = 3, .separator = kBlanks}),
                {1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_values(rows_of(" 1   2  3\r\n4 5 6\r\n\r\n", 3), {1, 2, 3, 4, 5, 6});
  expect_values(rows_of("1|2\n3|4\n", {.width = 2, .separator = '|'}), {1, 2, 3, 4});
  expect_values(rows_of("c b a\n1 2 3\n", 3, {"a", "b", "c"}), {3, 2, 1});
  EXPECT_EQ(refusal("1;2\n3\n", 2), "line 2: has 1 cells, the model has 2 features");
  EXPECT_EQ(refusal("1 2\n3\n", 2), "line 2: has 1 cells, the model has 2 features");
  EXPECT_EQ(refusal("1 2\n3 4 5\n", 2), "line 2: has more cells than the model's 2 features");
  EXPECT_EQ(refusal("1;2\n3;1,5\n", 2).substr(0, 22), "line 2, column 2: '1,5");
  EXPECT_EQ(refusal("1|2\n", 2),
            "has 1 columns, the model has 2 features; line 1 has no comma, semicolon, tab or blank "
            "(--separator names another)");
}

TEST(Tables, HaveTruthAsOneAndZero) {
  expect_values(rows_of("True,FALSE\ntrue,false\n\"TRUE\",0\n", 2), {1, 0, 1, 0, 1, 0});
  EXPECT_EQ(refusal("1,2\nyes,truee\n", 2).substr(0, 23), "line 2, column 1: 'yes'");
}

/// The words are those of pandas' read_csv, and "?".
TEST(Tables, HaveWordsForMissingValues) {
  for (const char* word :
       {"#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
        "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null",   "?",       ""}) {
    SCOPED_TRACE(word);
    expect_values(rows_of("1,2\n" + std::string(word) + ",3\n", 2), {1, 2, NAN, 3});
    expect_values(rows_of(std::string(word) + ",3\n", 2),
                  {NAN, 3});  // such a word does not make a line a header
  }
  const RowForm asked{.width = 2, .missing_words = std::vector<std::string>{"none", "-"}};
  expect_values(rows_of("1,none\n-,\n", asked), {1, NAN, NAN, NAN});
  EXPECT_EQ(refusal("1,2\nNA,1\n", asked).substr(0, 22), "line 2, column 1: 'NA'");
  expect_values(rows_of("1,NA\n2,nan\n", {.width = 2, .names = {"a", "b"}, .header = Header::No}),
                {1, NAN, 2, NAN});
}

TEST(Tables, HaveColumnsThatAreNoFeatures) {
  const RowForm ignores{.width = 2, .names = {"a", "b"}, .ignores_extra = true};
  expect_values(rows_of("id,b,note,a\nx,1,\"p,q\",2\ny,3,,4\n", ignores), {2, 1, 4, 3});
  EXPECT_EQ(refusal("id,b\nx,1\n", ignores), "header: lacks features of the model: 'a'");
  EXPECT_EQ(refusal("a,b,a\n1,2,3\n", ignores), "header: the file has two columns named 'a'");
  EXPECT_EQ(refusal("a,id,b\n1,x\n", ignores), "line 2: has 2 cells, the header has 3 columns");
  EXPECT_EQ(refusal("a,id,b\n1,x,2,3\n", ignores), "line 2: has more cells than the header's 3 columns");
  EXPECT_EQ(refusal("a,id,b\n1,x,y\n", ignores).substr(0, 21), "line 2, column 3: 'y'");
  EXPECT_EQ(refusal("1,2,3\n", ignores), "has 3 columns, the model has 2 features");
}

/// A model without names has the names f0, f1, …, Column_0, … or 0, 1, …
TEST(Tables, HaveColumnsThatAreNoFeaturesOfAModelWithoutNames) {
  const RowForm ignores{.width = 2, .ignores_extra = true};
  expect_values(rows_of("id,f1,f0\n7,1,2\n", ignores), {2, 1});
  expect_values(rows_of("Column_1,Column_0,id\n1,2,7\n", ignores), {2, 1});
  expect_values(rows_of(",0,1\n7,1,2\n", ignores), {1, 2});  // pandas' index is unnamed
  EXPECT_EQ(
      refusal("id,a,b\n7,1,2\n", ignores),
      "header: does not tell which columns are extra: the model has no feature names, and the file's are not f0, "
      "f1, …, Column_0, Column_1, … or 0, 1, …");
  EXPECT_EQ(
      notice("a,b\n", ignores),
      "line 1 is skipped as a header: the model has no feature names, so its columns are taken in order");
}

TEST(Tables, HintAtTheIndexOfPandas) {
  const std::string hint =
      "; the first column looks like pandas' index: write the file with to_csv(index=False), or leave it out with "
      "--extra-columns ignore";
  const Names names = {"a", "b"};
  EXPECT_EQ(refusal(",a,b\n0,1,2\n", 2, names), "header: has columns that the model lacks: ''" + hint);
  EXPECT_EQ(refusal("Unnamed: 0,a,b\n0,1,2\n", 2, names),
            "header: has columns that the model lacks: 'Unnamed: 0'" + hint);
  EXPECT_EQ(refusal(",0,1\n0,1,2\n", 2), "has 3 columns, the model has 2 features" + hint);
  EXPECT_EQ(refusal(",x,y\n0,1,2\n", 2), "has 3 columns, the model has 2 features" + hint);
  expect_values(rows_of(",a,b\n0,1,2\n", {.width = 2, .names = names, .ignores_extra = true}), {1, 2});
}

TEST(Tables, KeepTheCellsOfAColumn) {
  const std::vector<std::string> ids = {"x", "", "p,q"};
  const std::string text = "b,id,a\n1,x,2\n3,,4\n5,\"p,q\",6\n";
  const auto rows = rows_of(text, {.width = 2, .names = {"a", "b"}, .keep = "id"});
  expect_values(rows, {2, 1, 4, 3, 6, 5});
  EXPECT_EQ(rows->kept, ids);
  const auto feature = rows_of("b,a\n01,2\n", {.width = 2, .names = {"a", "b"}, .keep = "b"});
  expect_values(feature, {2, 1});
  EXPECT_EQ(feature->kept, std::vector<std::string>{"01"});
  // Spaces belong to a text, as in pandas, unless they separate cells.
  const std::vector<std::string> spaced = {" x ", " y"};
  EXPECT_EQ(rows_of("b,id,a\n1, x ,2\n3,\" y\",4\n", {.width = 2, .names = {"a", "b"}, .keep = "id"})->kept,
            spaced);
  EXPECT_EQ(rows_of("id b a\n  x 1 2\n", {.width = 2, .names = {"a", "b"}, .keep = "id"})->kept,
            std::vector<std::string>{"x"});
  // A model without names: the other columns are taken in order.
  const auto nameless = rows_of("u,id,v\n1,x,2\n", {.width = 2, .keep = "id"});
  expect_values(nameless, {1, 2});
  EXPECT_EQ(nameless->kept, std::vector<std::string>{"x"});
}

TEST(Tables, RefuseToKeepWhatIsNotThere) {
  const RowForm keeps{.width = 2, .names = {"a", "b"}, .keep = "id"};
  EXPECT_EQ(refusal("a,b\n1,2\n", keeps), "header: has no column 'id' to keep");
  EXPECT_EQ(refusal("1,2\n", keeps), "line 1: is not a header, so there is no column 'id' to keep");
  EXPECT_EQ(refusal("a,b\n", {.width = 2, .header = Header::No, .keep = "id"}),
            "line 1: is not a header, so there is no column 'id' to keep");
  EXPECT_EQ(refusal("id,a,id,b\n", keeps), "header: the file has two columns named 'id', the one to keep");
  EXPECT_EQ(refusal("id,a,b,c\n1,2,3,4\n", keeps),
            "header: has columns that the model lacks: 'c'; --extra-columns ignore leaves them out");
}

}  // namespace
}  // namespace forestvm::cli::test_tables
