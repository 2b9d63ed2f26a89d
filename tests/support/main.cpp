// The tests' main: GoogleTest's, with --update, which makes tests with golden files rewrite them. It refuses tests whose
// names in ctest's list would not be the same in every run.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

/// Returns whether ctest names a test by its parameter's address or bytes: the test has a number for a name, for which
/// ctest takes the parameter's text, and GoogleTest has no text for the parameter's type.
bool is_named_by_memory(const testing::TestInfo& test) {
  if (test.value_param() == nullptr) return false;
  const std::string_view name = test.name(), parameter = test.value_param();
  if (name.find_first_not_of("0123456789", name.rfind('/') + 1) != std::string_view::npos) return false;
  return parameter.find("0x") != std::string_view::npos ||
         parameter.find("-byte object <") != std::string_view::npos;
}

bool names_are_stable() {
  bool stable = true;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < tests.total_test_suite_count(); ++suite)
    for (int i = 0; i < tests.GetTestSuite(suite)->total_test_count(); ++i) {
      const testing::TestInfo& test = *tests.GetTestSuite(suite)->GetTestInfo(i);
      if (!is_named_by_memory(test)) continue;
      std::fprintf(stderr,
                   "%s.%s has the parameter %s: give INSTANTIATE_TEST_SUITE_P a function that names it\n",
                   test.test_suite_name(), test.name(), test.value_param());
      stable = false;
    }
  return stable;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--update") ::setenv("FORESTVM_UPDATE", "1", 1);
  if (!names_are_stable()) return EXIT_FAILURE;
  return RUN_ALL_TESTS();
}
