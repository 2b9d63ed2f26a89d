// Rows in the formats of other libraries: gzip, NPZ, sparse matrices, libsvm and JSON lines. tests/data/tables has the
// same rows as numpy, scipy, pandas and scikit-learn write them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <utility>
#include <vector>

#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/inflate.hpp>

#include "cli/io/gzip_source.hpp"
#include "read_rows.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_row_formats {
namespace {

std::string table(const std::string& name) { return FORESTVM_TEST_DATA "/tables/" + name; }
std::string bytes_of_table(const std::string& name) { return support::content_of(table(name)); }

const RowForm kForm{.width = 3};
const RowForm kNamed{.width = 3, .names = {"a", "b", "c"}};
const RowForm kZero{.width = 3, .absent = Absent::Zero};
const std::vector<float> kRows = {0, 1.5F, 0, -2, 0, 3, 0, 0, 0, 0.1F, 1e30F, 0, 0, 0, 7};

/// Returns the rows with NaN for 0.
std::vector<float> with_holes() {
  std::vector<float> rows = kRows;
  for (float& value : rows)
    if (value == 0) value = NAN;
  return rows;
}

RowForm with(RowForm form, const std::function<void(RowForm&)>& change) {
  change(form);
  return form;
}

void expect_table(const std::string& name, const RowForm& form, const std::vector<float>& expected) {
  SCOPED_TRACE(name);
  expect_values(rows_of(Source::open(table(name)).value(), form), expected);
  expect_values(rows_of(bytes_of_table(name), form), expected);
}

/// Returns a ZIP archive of stored files.
std::string zip(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto number = [](std::uint64_t value, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(&value), size);
  };
  std::string out, directory;
  for (const auto& [name, content] : files) {
    const std::uint32_t checksum = crc32_of(0, std::as_bytes(std::span(content)));
    const std::string sizes = number(checksum, 4) + number(content.size(), 4) + number(content.size(), 4);
    const std::string common = std::string(8, '\0') + sizes + number(name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + number(20, 2) + number(20, 2) + common + std::string(10, '\0') +
                 number(out.size(), 4) + name;
    out += "PK\x03\x04" + number(20, 2) + common + name + content;
  }
  return out + directory + "PK\x05\x06" + number(0, 4) + number(files.size(), 2) + number(files.size(), 2) +
         number(directory.size(), 4) + number(out.size(), 4) + number(0, 2);
}

template <class T>
std::string vector_npy(std::string_view dtype, const std::vector<T>& values) {
  return npy2(dtype, bytes_of(values), "(" + std::to_string(values.size()) + ",)");
}

/// Returns a CSR matrix of 3 columns as scipy saves it.
std::string csr(std::int64_t rows, const std::vector<std::int32_t>& ends,
                const std::vector<std::int32_t>& columns, const std::vector<double>& values) {
  return zip({{"indices.npy", vector_npy("<i4", columns)},
              {"indptr.npy", vector_npy("<i4", ends)},
              {"format.npy", npy2("|S3", "csr", "()")},
              {"shape.npy", vector_npy<std::int64_t>("<i8", {rows, 3})},
              {"data.npy", vector_npy("<f8", values)}});
}

TEST(RowFormats, AreFoundByContent) {
  for (const char* name : {"one.npz", "packed.npz", "rows.csv.gz", "arrays.jsonl.gz"})
    expect_table(name, kForm, kRows);
  expect_table("csr.npz", kZero, kRows);
  expect_table("csr_plain.npz", kZero, kRows);
  expect_table("zero.svm", kZero, kRows);
  expect_table("one.svm", with(kZero, [](RowForm& form) { form.index_base = 1; }), kRows);
  expect_table("csr.npz", kForm, with_holes());
  expect_table("zero.svm", kForm, with_holes());
  expect_table("semicolon.csv", kNamed, with_holes());
  expect_table("rows.jsonl", kNamed, with_holes());
  expect_table("index.csv", with(kNamed, [](RowForm& form) { form.ignores_extra = true; }), with_holes());
}

TEST(RowFormats, MayBeSaid) {
  const auto as = [](RowFormat format) { return RowForm{.width = 3, .format = format}; };
  expect_values(rows_of("5\n", {.width = 1, .format = RowFormat::Libsvm}), {NAN});
  expect_values(rows_of("1,2,3\n", as(RowFormat::Csv)), {1, 2, 3});
  EXPECT_EQ(refusal("1,2,3\n", as(RowFormat::Npy)), "is not an NPY array");
  EXPECT_EQ(refusal("1,2,3\n", as(RowFormat::Npz)), "ZIP archive: has no directory: it is cut short");
  EXPECT_EQ(refusal("1,2,3\n", as(RowFormat::JsonLines)),
            "line 1: is a single value, expected an object or array");
}

/// Float64 rows of a model that compares in float64 are not rounded on the way.
TEST(RowFormats, KeepFloat64) {
  const RowForm wide{.width = 3, .wide = true, .absent = Absent::Zero};
  const std::vector<double> rows = {0, 1.5, 0, -2, 0, 3, 0, 0, 0, 0.1, 1e30, 0, 0, 0, 7};
  for (const char* name : {"one.npz", "csr.npz", "zero.svm", "arrays.jsonl.gz", "rows.csv.gz"}) {
    SCOPED_TRACE(name);
    expect_wide_values(rows_of(bytes_of_table(name), wide), rows);
  }
}

TEST(RowFormats, TakeMissingNumbers) {
  const RowForm zero{.width = 3, .missing = parse_missing("0"), .absent = Absent::Zero};
  for (const char* name : {"one.npz", "csr.npz", "zero.svm", "arrays.jsonl.gz", "rows.csv.gz"})
    expect_table(name, zero, with_holes());
}

TEST(RowFormats, AreReadInBlocks) {
  for (const char* name :
       {"one.npz", "packed.npz", "csr.npz", "zero.svm", "arrays.jsonl.gz", "rows.csv.gz"}) {
    SCOPED_TRACE(name);
    auto reader = RowReader::open(Source::open(table(name)).value(), kZero);
    ASSERT_TRUE(reader.ok()) << reader.error().text();
    std::vector<float> all;
    Rows rows;
    do {
      ASSERT_TRUE(reader->next(2, rows).ok());
      all.insert(all.end(), rows.values.begin(), rows.values.end());
    } while (rows.count != 0);
    expect_numbers(all, kRows);
  }
}

/// Returns the error of rows with an option of another format.
std::string misuse(const std::string& name, const std::function<void(RowForm&)>& change) {
  const auto reader = RowReader::open(Source::open(table(name)).value(), with(kForm, change));
  if (reader) return "accepted";
  EXPECT_EQ(reader.error().code, ErrorCode::Usage);
  return reader.error().text();
}

TEST(RowFormats, RefuseOptionsOfOthers) {
  EXPECT_EQ(misuse("one.npz", [](RowForm& form) { form.header = Header::No; }),
            "is an NPZ archive: --header is for CSV");
  EXPECT_EQ(misuse("zero.svm", [](RowForm& form) { form.separator = ' '; }),
            "is a libsvm file: --separator is for CSV");
  EXPECT_EQ(misuse("one.npz", [](RowForm& form) { form.missing_words.emplace(); }),
            "is an NPZ archive: --na is for texts");
  EXPECT_EQ(misuse("csr.npz", [](RowForm& form) { form.ignores_extra = true; }),
            "is an NPZ archive: --extra-columns is for CSV and JSON lines");
  EXPECT_EQ(misuse("zero.svm", [](RowForm& form) { form.keep = "id"; }),
            "is a libsvm file: --keep is for CSV and JSON lines");
  EXPECT_EQ(misuse("rows.jsonl", [](RowForm& form) { form.array = "a"; }),
            "holds JSON lines: --array is for NPZ");
  EXPECT_EQ(misuse("rows.csv.gz", [](RowForm& form) { form.index_base = 1; }),
            "is CSV: --index-base is for libsvm");
}

TEST(Gzip, IsRefusedIfDamaged) {
  const std::string good = bytes_of_table("rows.csv.gz");
  for (std::size_t size = 2; size < good.size(); ++size)
    EXPECT_NE(refusal(good.substr(0, size), kForm).find("of the gzip file: the gzip data ends too early"),
              std::string::npos)
        << size;
  EXPECT_NE(refusal(good + "x", kForm).find("other bytes follow the end of the gzip data"),
            std::string::npos);
  std::string bad = good;
  bad[bad.size() - 6] = static_cast<char>(bad[bad.size() - 6] ^ 1);
  EXPECT_NE(refusal(bad, kForm).find("damaged gzip data: incorrect data check"), std::string::npos);
  // A file of two members is one text.
  EXPECT_EQ(refusal(good + good, kForm).substr(0, 23), "line 7, column 1: 'a' i");
}

TEST(Npz, HasOneArrayOrAChosenOne) {
  const std::string two = bytes_of_table("two.npz");
  EXPECT_EQ(refusal(two, kForm), "holds several arrays, 'first', 'second': choose one with --array");
  expect_values(rows_of(two, with(kForm, [](RowForm& form) { form.array = "first"; })), kRows);
  expect_values(rows_of(two, with(kForm, [](RowForm& form) { form.array = "second.npy"; })),
                {1, 2.5F, 1, -1, 1, 4});
  EXPECT_EQ(refusal(two, with(kForm, [](RowForm& form) { form.array = "third"; })),
            "has no array 'third'; it has 'first', 'second'");
  EXPECT_EQ(refusal(two, {.width = 4, .array = "first"}),
            "array 'first.npy': has 3 columns, the model has 4 features");
  EXPECT_EQ(refusal(zip({{"xl/workbook.xml", "x"}}), kForm),
            "is a ZIP archive without arrays (.npy); an .xlsx file?");
  EXPECT_EQ(refusal(zip({}), kForm), "is a ZIP archive without arrays (.npy); an .xlsx file?");
}

TEST(Npz, IsReadFromAPipe) {
  for (const char* name : {"packed.npz", "csr.npz"}) {
    std::array<int, 2> ends = {-1, -1};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const std::string bytes = bytes_of_table(name);
    EXPECT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(ends[1]);
    expect_values(rows_of(Source::open("/proc/self/fd/" + std::to_string(ends[0])).value(), kZero), kRows);
    ::close(ends[0]);
  }
}

TEST(Npz, RefusesDamage) {
  const std::string good = bytes_of_table("one.npz");
  const std::size_t value = good.find("\xf8\x3f");  // in 1.5
  std::string bad = good;
  bad[value] = static_cast<char>(bad[value] ^ 1);
  EXPECT_EQ(refusal(bad, kForm),
            "array 'rows.npy', ZIP archive: 'rows.npy' is damaged: its checksum is not the directory's");
  for (const char* name : {"one.npz", "packed.npz", "csr.npz", "csr_plain.npz", "two.npz"}) {
    SCOPED_TRACE(name);
    const std::string bytes = bytes_of_table(name);
    for (std::size_t at = 4; at < bytes.size(); ++at) {
      EXPECT_FALSE(rows_of(bytes.substr(0, at), kForm).ok()) << at;
      for (const char change : {'\x01', '\x80', '\xff'}) {
        bad = bytes;
        bad[at] = static_cast<char>(bad[at] ^ change);
        if (const auto rows = rows_of(bad, kForm)) {
          EXPECT_EQ(rows->values.size(), rows->count * 3) << at;
        }
      }
    }
  }
}

TEST(Csr, RefusesOtherFormsAndNumbersThatDoNotFit) {
  EXPECT_EQ(refusal(bytes_of_table("csc.npz"), kForm),
            "is a sparse matrix in the form 'csc'; expected 'csr': save it with scipy.sparse.save_npz(file, "
            "matrix.tocsr())");
  EXPECT_EQ(refusal(bytes_of_table("csr.npz"), {.width = 4}), "has 3 columns, the model has 4 features");
  expect_values(rows_of(csr(2, {0, 1, 3}, {2, 1, 0}, {5, 6, 7}), kForm), {NAN, NAN, 5, 7, 6, NAN});
  EXPECT_EQ(refusal(csr(2, {0, 2, 1}, {2, 1, 0}, {5, 6, 7}), kForm),
            "row 1: ends before it begins, in a damaged CSR matrix");
  EXPECT_EQ(refusal(csr(2, {0, 1, 2}, {2, 1, 0}, {5, 6, 7}), kForm),
            "is a damaged CSR matrix: its rows end at value 2 of 3");
  EXPECT_EQ(refusal(csr(1, {0, 2}, {1, 1}, {5, 6}), kForm),
            "row 0: has column 1 twice (scipy's sum_duplicates() adds them)");
  EXPECT_EQ(refusal(csr(1, {0, 1}, {3}, {5}), kForm),
            "array 'indices': has 3.000000, expected a whole number from 0 to 2");
  EXPECT_EQ(refusal(csr(1, {0, 9}, {1}, {5}), kForm),
            "array 'indptr': has 9.000000, expected a whole number from 0 to 1");
  EXPECT_EQ(refusal(csr(2, {0, 1}, {1}, {5}), kForm),
            "is a damaged CSR matrix: 2 rows, 2 ends of rows, 1 columns of values, 1 values");
}

TEST(Libsvm, ReadsLabelsQueriesAndComments) {
  expect_values(rows_of("# made by hand\n\n1 qid:3 0:1 2:-2.5 # note 7:8\r\n0,2  1:nan\n-1\n", kForm),
                {1, NAN, -2.5F, NAN, NAN, NAN, NAN, NAN, NAN});
  expect_values(rows_of("1 1:5\n", {.width = 3, .index_base = 1, .absent = Absent::Zero}), {5, 0, 0});
}

TEST(Libsvm, SaysFromWhatItCounts) {
  EXPECT_EQ(notice("1 0:5\n", kForm), "");
  EXPECT_EQ(
      notice("1 1:5\n2 2:3 \n", kForm),
      "features are counted from 0, as XGBoost and LightGBM read libsvm files, although the first lines do not have "
      "feature 0; --index-base 1 counts from 1, --index-base 0 only silences this");
  for (const std::uint32_t base : {0u, 1u})
    EXPECT_EQ(notice("1 1:5\n", {.width = 3, .index_base = base}), "");
}

TEST(Libsvm, NamesTheWordThatIsWrong) {
  EXPECT_EQ(
      refusal("1 0:5\n2 3:1\n", kForm),
      "line 2, column 2: index 3 is beyond the model's 3 features, counted from 0; --index-base 1 counts from 1");
  EXPECT_EQ(refusal("1 4:5\n", kForm),
            "line 1, column 2: index 4 is beyond the model's 3 features, counted from 0");
  EXPECT_EQ(refusal("1 0:5\n", {.width = 3, .index_base = 1}),
            "line 1, column 2: index 0, but features are counted from 1 (--index-base 1)");
  EXPECT_EQ(refusal("1 0:5\n1 1:1 1:2\n", kForm), "line 2, column 3: index 1 is listed twice");
  EXPECT_EQ(refusal("1 0:5\n1 1:\n", kForm), "line 2, column 2: '1:' is not index:value");
  EXPECT_EQ(refusal("1 0:5\n1 -1:5\n", kForm), "line 2, column 2: '-1:5' is not index:value");
  EXPECT_EQ(refusal("1 0:5\n1 2:x\n", kForm).substr(0, 21), "line 2, column 2: 'x'");
  EXPECT_EQ(
      refusal("1 0:5\n0:5 1:2\n", kForm),
      "line 2, column 1: '0:5' is not a label; a line begins with a number, which is not used, before its features");
}

TEST(JsonLines, ReadsObjectsAndArrays) {
  expect_values(
      rows_of(
          "{\"c\": 3, \"a\": 1e0, \"b\": null}\n\n[true, \"NA\", -0.5]\r\n{\"a\":\"7\",\"b\":false,\"c\":2}",
          kNamed),
      {1, NAN, 3, 1, NAN, -0.5F, 7, 0, 2});
  expect_values(
      rows_of("{\"f1\": 1, \"f0\": 0, \"f2\": 2}\n{\"Column_2\":5,\"Column_1\":4,\"Column_0\":3}\n", kForm),
      {0, 1, 2, 3, 4, 5});
  // Python's json writes these.
  expect_values(rows_of("[NaN, -Infinity, Infinity]\n{\"c\":NaN,\"b\":1,\"a\":-Infinity}\n", kNamed),
                {NAN, -kInf, kInf, -kInf, 1, NAN});
  expect_values(rows_of("{\"x\\\"NaN\": NaN}\n", 1, {"x\"NaN"}), {NAN});
  // Numbers are rounded once: by way of float64 this would be 16777216.
  expect_values(rows_of("[16777217.0000001]\n", 1), {16777218.0F});
}

/// A text of a feature that is compared as text is the category; a number stands for its decimal text, as elsewhere.
TEST(JsonLines, HashesTexts) {
  const std::vector<std::uint32_t> hashed = {1};
  const RowForm form{.width = 2, .names = {"a", "b"}, .wide = true, .hashed = hashed};
  const auto code = [](const char* text) { return static_cast<double>(category_code(text)); };
  const auto rows = rows_of(
      "{\"b\": \"red\", \"a\": 0.1}\n[1, \" r\\u0065d\"]\n[1, 7]\n[1, -7.0]\n[1, true]\n[1, \"\"]\n[1, \"NaN\"]\n"
      "[1, 18446744073709551615]\n[NaN, \"01\"]\n",
      form);
  expect_wide_values(
      rows, {static_cast<double>(0.1F), code("red"), 1, code(" red"), 1, code("7"), 1, code("-7"), 1,
             code("1"), 1, code(""), 1, code("NaN"), 1, code("18446744073709551615"), NAN, code("01")});
  EXPECT_TRUE(rows->hashed);
  for (const char* value : {"null", "NaN", "-Infinity", "0.5", "1e300"})
    EXPECT_EQ(
        refusal(std::string("[1, ") + value + "]\n", form),
        "line 1, value 2: is no category: the model compares this feature as text, for which whole numbers "
        "stand by their decimal text")
        << value;
}

TEST(JsonLines, MayBeginWithBlankLines) {
  expect_values(rows_of(" \r\n\n  {\"f0\":1,\"f1\":2,\"f2\":3}\n", kForm), {1, 2, 3});
  expect_values(rows_of("\n [1,2,3]", kForm), {1, 2, 3});
}

TEST(JsonLines, HasExtraAndKeptNames) {
  const std::string text =
      "{\"id\": \"x,1\", \"a\": 1, \"b\": 2, \"c\": 3}\n{\"c\": 6, \"id\": 5, \"b\": 5, \"a\": 4}\n";
  EXPECT_EQ(refusal(text, kNamed),
            "line 1: has 'id', which is not a feature of the model; --extra-columns ignore leaves it out");
  expect_values(rows_of(text, with(kNamed, [](RowForm& form) { form.ignores_extra = true; })),
                {1, 2, 3, 4, 5, 6});
  const RowForm keeps = with(kNamed, [](RowForm& form) { form.keep = "id"; });
  const auto rows = rows_of(text, keeps);
  expect_values(rows, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(rows->kept, (std::vector<std::string>{"x,1", "5"}));
  EXPECT_EQ(refusal("{\"a\":1,\"b\":2,\"c\":3}\n", keeps), "line 1: has no 'id' to keep");
  EXPECT_EQ(refusal("[1,2,3]\n", keeps), "line 1: is an array without names, so it has no 'id'");
}

TEST(JsonLines, NamesWhatIsWrong) {
  EXPECT_EQ(refusal("{\"a\":1,\"b\":2}\n", kNamed),
            "line 1: lacks the feature 'c' (a missing value is null)");
  EXPECT_EQ(refusal("{\"f0\":1}\n", kForm), "line 1: lacks the feature f1 (a missing value is null)");
  EXPECT_EQ(refusal("{\"a\":1,\"b\":2,\"a\":3}\n", kNamed), "line 1: has 'a' twice");
  EXPECT_EQ(refusal("{\"a\":1,\"b\":[2],\"c\":3}\n", kNamed),
            "line 1: 'b' is an object or array, expected a number");
  const std::string all_rows =
      "line 1: value 1 is an object or array, expected a number; each row has a line of its own, as pandas writes them "
      "with to_json(orient=\"records\", lines=True)";
  EXPECT_EQ(refusal("[[1,2,3]]\n", kForm), all_rows);
  EXPECT_EQ(refusal("[{\"a\":1}]\n", kForm), all_rows);
  EXPECT_EQ(refusal("[1,[2],3]\n", kForm), "line 1: value 2 is an object or array, expected a number");
  EXPECT_EQ(refusal("[1,2,1e400]\n", kForm),
            "line 1, column 10: ends a number that float64 cannot represent");
  EXPECT_EQ(refusal("[1,2,3]\n[1,2]\n", kForm), "line 2: has 2 values, the model has 3 features");
  EXPECT_EQ(refusal("[1,2,3]\n[1,2,3,4]\n", kForm), "line 2: has more values than the model's 3 features");
  EXPECT_EQ(refusal("[1,2,3]\n[1,\"x\",3]\n", kForm).substr(0, 20), "line 2, value 2: 'x'");
  EXPECT_EQ(refusal("{\"a\":1,\"b\":\"y\",\"c\":3}\n", kNamed).substr(0, 16), "line 1, 'b': 'y'");
  EXPECT_EQ(refusal("[1,2,3]\n7\n", kForm), "line 2: is a single value, expected an object or array");
  EXPECT_EQ(refusal("[1,\n2,3]\n", kForm),
            "line 1, column 4: is not a JSON object or array on one line (a missing value is null)");
  EXPECT_EQ(refusal("[1,2,3] x\n", kForm).substr(0, 17), "line 1, column 9:");
  EXPECT_EQ(refusal("{\"a\":1,\"b\":2}\n", {.width = 2, .names = {"a", "a"}}),
            "the model has two features named 'a'");
  EXPECT_EQ(refusal("[1" + std::string(2 << 20, ' ') + ",2,3]\n", kForm),
            "line 1: is longer than 1060864 bytes");
}

/// Makes rows of pieces of the formats; none may crash, and what is accepted has the model's width.
TEST(RowFormats, SurviveEveryTruncationAndFlippedByte) {
  for (const char* name :
       {"zero.svm", "one.svm", "rows.jsonl", "semicolon.csv", "index.csv", "rows.csv.gz"}) {
    const std::string good = bytes_of_table(name);
    for (std::size_t at = 0; at < good.size(); ++at) {
      static_cast<void>(rows_of(good.substr(0, at), kNamed));
      for (int byte = 0; byte < 256; byte += 5) {
        std::string bad = good;
        bad[at] = static_cast<char>(byte);
        if (const auto rows = rows_of(bad, kNamed)) {
          EXPECT_EQ(rows->values.size(), rows->count * 3) << name << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace forestvm::cli::test_row_formats
