// The tests' main: GoogleTest's, with --update, which makes tests with golden files rewrite them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--update") ::setenv("FORESTVM_UPDATE", "1", 1);
  return RUN_ALL_TESTS();
}
