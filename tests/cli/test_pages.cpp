// Man pages and completions contain everything in the tables of commands, and the programs that read them
// accept them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/pages/pages.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::cli::test_pages {
namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Returns a man page without roff's escapes.
std::string plain(std::string page) {
  const auto replace = [&page](std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = page.find(from, at)) != std::string::npos; at += to.size())
      page.replace(at, from.size(), to);
  };
  for (const char* const font : {"\\fB", "\\fI", "\\fR", "\\&"}) replace(font, "");
  replace("\\-", "-");
  replace("\\e", "\\");
  return page;
}

std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> all{std::string("--") + option.name};
  if (option.letter != '\0') all.push_back(std::string("-") + option.letter);
  return all;
}

std::vector<Option> options_and_help(const Command& command) {
  std::vector<Option> options(command.options.begin(), command.options.end());
  options.push_back({"help", 'h', "", ""});
  return options;
}

/// The output of a shell for a script, and its exit code.
struct Printed {
  std::string text;
  int code;
};

Printed run(const std::string& command) {
  Printed printed{"", -1};
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return printed;
  char buffer[4096];
  while (const std::size_t read = std::fread(buffer, 1, sizeof buffer, pipe))
    printed.text.append(buffer, read);
  printed.code = ::pclose(pipe);
  return printed;
}

bool is_there(const std::string& program) { return run("command -v " + program).code == 0; }

std::vector<std::string> sorted_words(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    if (end != begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(words.begin(), words.end());
  return words;
}

class Pages : public ::testing::Test, protected support::TemporaryFolder {
 protected:
  void SetUp() override { script_ = write("forestvm.bash", bash_completion()); }

  /// Returns, sorted, the words that bash offers to complete the last of `words`.
  std::vector<std::string> offered(const std::vector<std::string>& words) const {
    std::string command = "cd " + path().string() +
                          " && mkdir -p empty && cd empty && bash -c 'compopt() { :; }; . " + script_ +
                          "; COMP_WORDS=(";
    for (const std::string& word : words) command += " \"" + word + "\"";
    command += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _forestvm; echo \"${COMPREPLY[@]}\"'";
    const Printed printed = run(command);
    EXPECT_EQ(printed.code, 0) << printed.text;
    return sorted_words(printed.text);
  }

  std::string script_;
};

TEST_F(Pages, ManPagesSayAllOfTheTables) {
  const std::string overview = plain(man_overview("1.2.3"));
  EXPECT_TRUE(contains(overview, "forestvm 1.2.3"));
  for (const Command* const command : commands()) {
    SCOPED_TRACE(command->name);
    EXPECT_TRUE(contains(overview, std::string("forestvm-") + command->name + "(1)"));
    EXPECT_TRUE(contains(overview, command->meaning));
    const std::string page = plain(man_page(*command, "1.2.3"));
    EXPECT_TRUE(contains(page, command->meaning));
    for (const char* const usage : command->usages) EXPECT_TRUE(contains(page, usage)) << usage;
    for (const Positional& row : command->positionals) {
      EXPECT_TRUE(contains(page, row.name)) << row.name;
      EXPECT_TRUE(contains(page, row.meaning)) << row.name;
    }
    for (const Option& option : options_and_help(*command)) {
      for (const std::string& spelling : spellings(option)) EXPECT_TRUE(contains(page, spelling)) << spelling;
      EXPECT_TRUE(contains(page, option.meaning)) << option.name;
    }
    EXPECT_TRUE(contains(page, command->example));
    EXPECT_TRUE(command->notes == nullptr || contains(page, command->notes()));
    EXPECT_TRUE(contains(page, kExitCodes));
  }
}

TEST_F(Pages, LinesOfManPagesAreNoRequestsByAccident) {
  const Command command = {"sample",     ".hidden", {},     {}, {{"a-b", '\0', "", "'quoted' \\x .y"}},
                           ".example\n", nullptr,   nullptr};
  const std::string page = man_page(command, "1");
  EXPECT_TRUE(contains(page, "\\- \\&.hidden\n"));
  EXPECT_TRUE(contains(page, "\n\\&'quoted' \\ex .y\n"));
  EXPECT_TRUE(contains(page, "\n\\&.example\n"));
  EXPECT_TRUE(contains(page, "\\-\\-a\\-b"));
}

TEST_F(Pages, ManPagesHaveNoWarnings) {
  if (!is_there("groff")) GTEST_SKIP() << "no groff: install groff";
  std::string files = write("forestvm.1", man_overview("1"));
  for (const Command* const command : commands())
    files += " " + write(std::string(command->name) + ".1", man_page(*command, "1"));
  const Printed printed = run("groff -man -ww -z " + files);
  EXPECT_EQ(printed.code, 0);
  EXPECT_EQ(printed.text, "");
}

TEST_F(Pages, BashOffersCommandsAndTheirOptions) {
  std::vector<std::string> names{"--help", "--version"};
  for (const std::string_view name : command_names()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(offered({"forestvm", ""}), names);
  EXPECT_EQ(offered({"forestvm", "ver"}), (std::vector<std::string>{"verify", "version"}));
  for (const Command* const command : commands()) {
    std::vector<std::string> options;
    for (const Option& option : options_and_help(*command))
      for (const std::string& spelling : spellings(option)) options.push_back(spelling);
    std::sort(options.begin(), options.end());
    EXPECT_EQ(offered({"forestvm", command->name, "-"}), options) << command->name;
  }
}

TEST_F(Pages, BashOffersTheValuesOfOptions) {
  for (const Command* const command : commands())
    for (const Option& option : command->options) {
      if (*option.value == '\0' || option.values.names == nullptr) continue;
      std::vector<std::string> names;
      for (const std::string_view name : option.values.names()) names.emplace_back(name);
      std::sort(names.begin(), names.end());
      for (const std::string& spelling : spellings(option))
        EXPECT_EQ(offered({"forestvm", command->name, spelling, ""}), names)
            << command->name << ' ' << spelling;
    }
  EXPECT_EQ(offered({"forestvm", "run", "--output", "=", "ra"}), std::vector<std::string>{"raw"});
  EXPECT_EQ(offered({"forestvm", "run", "--output", "="}), offered({"forestvm", "run", "--output", ""}));
  EXPECT_EQ(offered({"forestvm", "run", "--threads", ""}), std::vector<std::string>{});
}

TEST_F(Pages, BashOffersFilesWhereTheyCanBeNamed) {
  offered({"forestvm", ""});  // creates the folder
  write("empty/model.json", "{}");
  const std::vector<std::string> file{"model.json"};
  EXPECT_EQ(offered({"forestvm", "run", "mod"}), file);
  EXPECT_EQ(offered({"forestvm", "run", "-o", "mod"}), file);
  EXPECT_EQ(offered({"forestvm", "run", "--schedule", "mod"}), file);
  EXPECT_EQ(offered({"forestvm", "run", "--contract", "mod"}), std::vector<std::string>{});
  EXPECT_EQ(offered({"forestvm", "help", "du"}), std::vector<std::string>{"dump"});
}

TEST_F(Pages, OtherShellsAreOfferedTheSame) {
  const std::string zsh = zsh_completion(), fish = fish_completion();
  for (const Command* const command : commands()) {
    EXPECT_TRUE(contains(zsh, std::string("'") + command->name + ":")) << command->name;
    EXPECT_TRUE(contains(fish, std::string(" -a ") + command->name + " ")) << command->name;
    const std::string begin = std::string("      ") + command->name + ")\n";
    const std::string section =
        zsh.substr(zsh.find(begin), zsh.find(";;", zsh.find(begin)) - zsh.find(begin));
    for (const Option& option : options_and_help(*command)) {
      for (const std::string& spelling : spellings(option)) EXPECT_TRUE(contains(section, spelling + "["));
      const std::string here = std::string("from ") + command->name + "'" +
                               (option.letter == '\0' ? "" : std::string(" -s ") + option.letter) + " -l " +
                               option.name + " ";
      EXPECT_TRUE(contains(fish, here)) << here;
      if (option.values.names == nullptr) continue;
      std::string names;
      for (const std::string_view name : option.values.names())
        names += (names.empty() ? "" : " ") + std::string(name);
      EXPECT_TRUE(contains(section, names)) << option.name;
      EXPECT_TRUE(contains(fish, "'" + names + "'")) << option.name;
    }
  }
}

TEST_F(Pages, OtherShellsAcceptTheirCompletions) {
  const std::string zsh = write("_forestvm", zsh_completion()),
                    fish = write("forestvm.fish", fish_completion());
  bool tried = false;
  for (const auto& [shell, file] :
       {std::pair(std::string("zsh"), zsh), std::pair(std::string("fish"), fish)}) {
    if (!is_there(shell)) continue;
    tried = true;
    const Printed printed = run(shell + " -n " + file);
    EXPECT_EQ(printed.code, 0) << printed.text;
    EXPECT_EQ(printed.text, "");
  }
  if (!tried) GTEST_SKIP() << "no zsh and no fish: install one of them";
}

/// If an option takes one of several names, the table lists the names that the option's error message lists.
TEST(Values, AreThoseThatCommandsTake) {
  const support::TemporaryFolder folder;
  const std::string data = std::string(FORESTVM_TEST_DATA) + "/breast_cancer/";
  // Targets and GPUs have error messages of their own.
  const std::vector<std::string_view> others{"target", "device-model"};
  std::size_t tried = 0;
  for (const Command* const command : commands())
    for (const Option& option : command->options) {
      const bool listed = option.values.names != nullptr && !option.values.files;
      if (!listed || std::find(others.begin(), others.end(), option.name) != others.end()) continue;
      std::vector<std::string> words;
      for (const Positional& positional : command->positionals)
        words.push_back(data + (positional.name == std::string("ROWS") ? "rows.npy" : "model.json"));
      words.insert(words.end(), {std::string("--") + option.name, "nonsense"});
      for (const Option& other : command->options)
        if (other.letter == 'o') words.insert(words.end(), {"-o", folder.file("out.npy")});
      const auto arguments = parse_arguments(*command, words);
      ASSERT_TRUE(arguments.ok()) << arguments.error().text();
      std::string names;
      for (const std::string_view name : option.values.names())
        names += (names.empty() ? "" : ", ") + std::string(name);
      const bool has_several = names.find(',') != std::string::npos;
      if (option.name == std::string_view("separator")) names += ", or a character";
      const Result<void> done = command->run(*arguments);
      ASSERT_FALSE(done.ok());
      EXPECT_EQ(done.error().message, std::string("--") + option.name + " 'nonsense': expected " +
                                          (has_several ? "one of " : "") + names)
          << command->name;
      ++tried;
    }
  EXPECT_GE(tried, 10U);
}

}  // namespace
}  // namespace forestvm::cli::test_pages
