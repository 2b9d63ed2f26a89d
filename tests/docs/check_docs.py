#!/usr/bin/env python3
"""Checks the documents: that links lead somewhere, that paths exist, and that code blocks do what the page says.

    check_docs.py links  ROOT [PAGE ...]
    check_docs.py blocks ROOT --build BUILD --cc CC --cxx CXX [PAGE ...]
    check_docs.py follow ROOT [--launcher COMMAND] PAGE ...
    check_docs.py apply  ROOT --cxx CXX PAGE ...

Pages are Markdown files, named from ROOT; without any, all that git tracks are read by `links`, and README.md and docs/
by `blocks`. Every problem is a line "PAGE:LINE: what is wrong". The exit code is 1 if there is one.

`links` checks on every page that relative links and their anchors lead to a file and one of its headings, and that
words in `backquotes` that begin with a folder of the tree are paths that exist.

`blocks` runs each page as a reader would, from top to bottom, in a folder of its own. This folder has README.md,
tests/, bench/ and examples/ of the source tree, BUILD as build/release, and the example model as model.json, rows.csv
and rows.npy. `forestvm` is on the PATH. HOME is a folder with the build installed in ~/forestvm. A fenced block's
language says what is done with it:

    sh         run by `sh -eu`; must succeed
    cpp, c     compiled against the installed copy, warnings are errors; run if it has a main
    schedule   compiled with the model; its output is the loops that `forestvm dump` prints
    fvm        assembled over the program of the page (model.fvm) by `forestvm assemble`
    text       neither run nor compiled: output, grammars and pictures
    python     not run here: the tests in bindings/python/tests run it and compare its output

`follow` does what pages about changes of the tree say: for each page it copies the tracked files, applies the blocks
marked `add to` and `new file`, and runs those marked `in the tree`, in order, at the top of the copy. There `release` is
configured for the first CPU target alone, without GPUs' compilers, tests and benchmarks; the program that it builds is
on the PATH, and the files of the example are there.

`apply` does the same up to the first block that builds, and then only lets the compiler read the sources that the page
has changed or added, and the headers that expand the lists of rows. It takes seconds where `follow` takes minutes.

A comment on the line before a block changes that:

    <!-- not run: REASON -->     neither run nor compiled; counted and listed
    <!-- add to: FILE -->        `follow` adds it before the last line of FILE that begins with #undef, which ends a list of
                                 rows. `links` checks that FILE has rows of that name, and that the new row's number, if
                                 its first argument is one, is the next after theirs
    <!-- add to: FILE before LINE -->
                                 `follow` adds it before each line of FILE that, without its indentation, is LINE; `links`
                                 checks that there is one
    <!-- new file: FILE -->      `follow` writes it to FILE of the tree; `links` checks that there is no such file
    <!-- in the tree -->         an sh block that only `follow` runs
    <!-- file: NAME -->          written to NAME in the page's folder, and by `follow` to the top of the copy, for the
                                 blocks after it; not run by itself
    <!-- exits: CODE -->         an sh block that must end with this exit code
    <!-- refused -->             a schedule block that must be refused
    <!-- output -->              a text block that must be what the last block printed; `...` stands for any text
    <!-- output: STAGE -->       a text block that must be what `forestvm dump --stage STAGE` prints for the last
                                 schedule block; `...` stands for any text
    <!-- with: DECLARATIONS -->  a cpp or c block without main: statements of a function that has these parameters
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KNOWN = {"sh", "cpp", "c", "schedule", "fvm", "text", "cmake", "python"}
ELSEWHERE = object()  # stands for the output of a block that is not run here
NOTE = re.compile(r"^<!-- (not run|add to|new file|in the tree|file|exits|refused|output|with)(?:: ?(.*?))? -->$")
FENCE = re.compile(r"^( *)(```+|~~~+) *(.*?) *$")
TIMEOUT = 240  # seconds, for one block
TREE = Path(__file__).resolve().parents[2]


class Block:
    def __init__(self, page, line, language, notes):
        self.page, self.line, self.language, self.notes, self.lines = page, line, language, notes, []

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)


def problem(page, line, what):
    return f"{page}:{line}: {what}"


def read_page(root, page):
    """Returns the page's blocks, its other lines as (number, text), and problems."""
    blocks, prose, problems = [], [], []
    block, fence, indent, notes = None, "", 0, {}
    lines = (root / page).read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        found = FENCE.match(line)
        if block is not None:
            if found and found[2].startswith(fence) and not found[3]:
                blocks.append(block)
                block = None
            else:
                block.lines.append(line[indent:] if line[:indent].isspace() else line)
            continue
        if found:
            indent, fence = len(found[1]), found[2]
            block = Block(page, number, found[3], notes)
            if found[3] not in KNOWN:
                problems.append(problem(page, number, f"a block of the language '{found[3]}'; known are "
                                        + ", ".join(sorted(KNOWN))))
            notes = {}
            continue
        note = NOTE.match(line.strip())
        if note:
            notes[note[1]] = note[2] or ""
            continue
        if notes and line.strip():
            problems.append(problem(page, number, f"a comment '{next(iter(notes))}' is not followed by a block"))
            notes = {}
        prose.append((number, line))
    if block is not None:
        problems.append(problem(page, block.line, "the block is not closed"))
    return blocks, prose, problems


# Links

CODE_SPAN = re.compile(r"(`+)(.+?)\1")
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def slug(heading):
    """Returns the anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", text.replace("`", "").strip().lower())
    return text.replace(" ", "-")


def anchors(root, page, known={}):
    if (root, page) not in known:
        found, seen = set(), {}
        for _, line in read_page(root, page)[1]:
            heading = re.match(r"^#{1,6} +(.*?)(?: +#+)? *$", line)
            if heading:
                name = slug(heading[1])
                count = seen.get(name, 0)
                seen[name] = count + 1
                found.add(f"{name}-{count}" if count else name)
            found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        known[(root, page)] = found
    return known[(root, page)]


CHANGES = ("add to", "new file", "in the tree")
NUMBERED = r"^{}\((0x[0-9a-f]+|\d+)\b"


def places(text, anchor):
    """Returns the indices of the lines before which a block is added: `LINE`, or the end of a list if it is empty."""
    lines = text.split("\n")
    if anchor:
        return [i for i, line in enumerate(lines) if line.strip() == anchor]
    return [i for i, line in enumerate(lines) if line.startswith("#undef")][:1]


def wrong_change(root, block):
    """Says what is wrong with a block that changes the tree; None if nothing is."""
    if "new file" in block.notes:
        name = block.notes["new file"]
        return f"the tree has '{name}' already" if (root / name).exists() else None
    if "add to" not in block.notes:
        return None
    file, _, anchor = block.notes["add to"].partition(" before ")
    if not (root / file).is_file():
        return f"there is no '{file}' in the tree"
    there = (root / file).read_text(encoding="utf-8")
    if not places(there, anchor):
        return f"{file} has no line '{anchor or '#undef'}'"
    if anchor:
        return None
    name = block.text.partition("(")[0]
    if not re.search(rf"^{name}\(", there, re.MULTILINE):
        return f"{file} has no row {name}(...)"
    own = re.match(NUMBERED.format(name), block.text)
    last = max([int(number, 0) for number in re.findall(NUMBERED.format(name), there, re.MULTILINE)], default=None)
    if own and (last is None or int(own[1], 0) != last + 1):
        return f"the row's number is {own[1]}, but the last one of {file} is {last}"
    return None


def check_links(root, pages):
    problems, links, paths = [], 0, 0
    folders = [entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    folders = [name for name in folders if name != "build"]
    path = re.compile(r"^(?:" + "|".join(map(re.escape, folders)) + r")/[\w./+-]*$")
    for page in pages:
        blocks, prose, _ = read_page(root, page)
        for block in blocks:
            wrong = wrong_change(root, block)
            if wrong:
                problems.append(problem(page, block.line, wrong))
        for number, line in prose:
            for target in LINK.findall(CODE_SPAN.sub("", line)):
                if re.match(r"^[a-z][a-z0-9+.-]*:", target):
                    continue
                links += 1
                name, _, anchor = target.partition("#")
                file = (root / page).parent / name if name else root / page
                if not file.exists():
                    problems.append(problem(page, number, f"the link to '{target}' leads nowhere"))
                elif anchor and file.suffix == ".md":
                    there = os.path.relpath(file, root)
                    if anchor not in anchors(root, there):
                        problems.append(problem(page, number, f"{there} has no heading '#{anchor}'"))
                elif not file.resolve().is_relative_to(root):
                    problems.append(problem(page, number, f"the link to '{target}' leaves the tree"))
            for _, word in CODE_SPAN.findall(line):
                if path.match(word):
                    paths += 1
                    if not (root / word).exists():
                        problems.append(problem(page, number, f"there is no '{word}' in the tree"))
    print(f"{len(pages)} pages: {links} links and {paths} paths looked up")
    return problems


# Blocks


def shown(text, limit=2500):
    text = text.strip("\n")
    return text if len(text) <= limit else text[:limit] + "\n[…]"


def matches(expected, printed):
    """Returns whether two texts are equal, where `...` in the expected one stands for any text."""
    def normal(text):
        return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
    pattern = ".*".join(re.escape(part) for part in re.split(r"\.\.\.", normal(expected)))
    return re.fullmatch(pattern, normal(printed), re.DOTALL) is not None


class Runner:
    def __init__(self, root, options, folder):
        self.root, self.options, self.folder = root, options, folder
        self.home = folder / "home"
        self.home.mkdir()
        self.run(["cmake", "--install", options.build, "--prefix", str(self.home / "forestvm")])
        self.environment = dict(os.environ, HOME=str(self.home), LC_ALL="C.UTF-8", TMPDIR=str(folder),
                                PATH=f"{self.home}/forestvm/bin:" + os.environ["PATH"], CC=options.cc,
                                CXX=options.cxx, CMAKE_GENERATOR=options.generator)
        self.problems, self.counts, self.not_run, self.programs = [], {}, [], []

    def run(self, command, **more):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}:\n{done.stdout}")

    def new_page(self, page):
        there = self.folder / "pages" / page.replace("/", "_")
        there.mkdir(parents=True)
        for name in ("tests", "bench", "examples", "README.md", "CMakePresets.json"):
            (there / name).symlink_to(TREE / name)
        (there / "build").mkdir()
        (there / "build/release").symlink_to(Path(self.options.build).resolve())
        data = TREE / "tests/data/breast_cancer"
        for name in ("model.json", "rows.csv", "rows.npy"):
            shutil.copy(data / name, there)
        return there

    def execute(self, command, there):
        try:
            return subprocess.run(command, cwd=there, env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"still running after {TIMEOUT} s")

    def found(self, block, what, details=""):
        text = problem(block.page, block.line, what)
        self.problems.append(
            text + "".join("\n    " + line for line in shown(details).split("\n")) if details else text
        )

    def page(self, page):
        blocks, _, problems = read_page(self.root, page)
        self.problems += problems
        there = self.new_page(page)
        printed = None
        for block in blocks:
            notes, language = block.notes, block.language
            if language not in KNOWN:
                continue
            if "not run" in notes:
                if not notes["not run"]:
                    self.found(block, "'not run' without a reason")
                self.not_run.append(problem(page, block.line, notes["not run"]))
            elif any(change in notes for change in CHANGES):
                self.count("changes of the tree left to `follow`")
            elif "file" in notes:
                (there / notes["file"]).parent.mkdir(parents=True, exist_ok=True)
                (there / notes["file"]).write_text(block.text)
                self.count("written to files")
            elif language == "text":
                if "output" not in notes:
                    continue
                if printed is ELSEWHERE:
                    continue
                self.count("outputs compared")
                if printed is None:
                    self.found(block, "no block before this one printed anything")
                    continue
                if notes["output"]:
                    printed = self.dump(notes["output"], there).stdout
                if not matches(block.text, printed):
                    self.found(block, "this is not what was printed, which is:", printed)
            elif language == "python":
                printed = ELSEWHERE
            elif language == "sh":
                printed = self.sh(block, there)
            elif language == "schedule":
                printed = self.schedule(block, there)
            elif language == "fvm":
                printed = self.assembly(block, there)
            elif language in ("cpp", "c"):
                self.keep_program(block, there)
            else:
                self.found(block, f"a block of '{language}' must be a file or say why it is not run")

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def sh(self, block, there):
        self.count("sh run")
        done = self.execute(["sh", "-eu", "-c", block.text], there)
        wanted = int(block.notes.get("exits", "0"))
        if done.returncode != wanted:
            self.found(block, f"exit code {done.returncode}, not {wanted}:", done.stdout + done.stderr)
        return done.stdout + (done.stderr if wanted != 0 else "")

    def schedule(self, block, there):
        self.count("schedules compiled")
        (there / "block.schedule").write_text(block.text)
        done = self.execute(["forestvm", "compile", "model.json", "--schedule", "./block.schedule", "-o", "block.fvm"],
                            there)
        wanted = 1 if "refused" in block.notes else 0
        if done.returncode != wanted:
            self.found(block, f"exit code {done.returncode}, not {wanted}:", done.stdout + done.stderr)
        return self.dump("loops", there).stdout if wanted == 0 else done.stderr

    def dump(self, stage, there):
        return self.execute(["forestvm", "dump", "model.json", "--schedule", "./block.schedule", "--stage", stage],
                            there)

    def assembly(self, block, there):
        self.count("programs assembled")
        (there / "block.fvm.txt").write_text(block.text)
        command = ["forestvm", "assemble", "block.fvm.txt", "--data", "model.fvm", "-o", "assembled.fvm"]
        done = self.execute(command, there)
        if done.returncode != 0:
            self.found(block, f"exit code {done.returncode}:", done.stdout + done.stderr)
        return done.stdout

    # C and C++: the blocks of all pages are one project, configured once.

    def keep_program(self, block, there):
        self.count(f"{block.language} compiled")
        text = block.text
        has_main = re.search(r"\bint main\(", text) is not None
        if not has_main:
            lines = text.split("\n")
            includes = [line for line in lines if line.startswith("#include")]
            rest = [line for line in lines if not line.startswith("#include")]
            if "with" in block.notes:
                rest = [f"void block({block.notes['with']}) {{"] + rest + ["}"]
            first = "<forestvm/forestvm.hpp>" if block.language == "cpp" else "<forestvm/forestvm.h>"
            extra = ["#include <cstdio>", "#include <vector>"] if block.language == "cpp" else ["#include <stdio.h>"]
            prototype = ["void block(" + block.notes["with"] + ");"] if "with" in block.notes else []
            text = "\n".join([f"#include {first}"] + extra + includes + prototype + rest) + "\n"
        self.programs.append((block, there, text, has_main))

    def build_programs(self):
        if not self.programs:
            return
        project = self.folder / "project"
        project.mkdir()
        targets = []
        for i, (block, _, text, has_main) in enumerate(self.programs):
            name = f"block_{i}"
            source = f"{name}.{'cpp' if block.language == 'cpp' else 'c'}"
            (project / source).write_text(text)
            kind = "add_executable({} {})" if has_main else "add_library({} OBJECT {})"
            library = "ForestVM::forestvm" if block.language == "cpp" else "ForestVM::runtime"
            targets.append(kind.format(name, source) + f"\ntarget_link_libraries({name} PRIVATE {library})")
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(blocks LANGUAGES C CXX)\n"
            "find_package(ForestVM CONFIG REQUIRED)\nset(CMAKE_CXX_STANDARD 20)\nset(CMAKE_C_STANDARD 99)\n"
            "add_compile_options(-Wall -Wextra -Wpedantic -Werror -Wno-unused-variable -Wno-unused-parameter)\n"
            + "\n".join(targets) + "\n")
        built = project / "build"
        done = self.execute(["cmake", "-S", project, "-B", built, f"-DCMAKE_PREFIX_PATH={self.home}/forestvm"], project)
        if done.returncode != 0:
            sys.exit(f"the project of the blocks cannot be configured:\n{done.stdout}{done.stderr}")
        for i, (block, there, _, has_main) in enumerate(self.programs):
            done = self.execute(["cmake", "--build", built, "--target", f"block_{i}"], project)
            if done.returncode != 0:
                self.found(block, "this does not compile:", done.stdout + done.stderr)
            elif has_main:
                self.count("programs run")
                done = self.execute([built / f"block_{i}"], there)
                if done.returncode != 0:
                    self.found(block, f"the program's exit code is {done.returncode}:", done.stdout + done.stderr)


def check_blocks(root, pages, options):
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(root, options, Path(folder))
        for page in pages:
            runner.page(page)
        runner.build_programs()
    print(f"{len(pages)} pages: " + ", ".join(f"{count} {what}" for what, count in sorted(runner.counts.items()))
          + f"; {len(runner.not_run)} blocks not run:")
    for line in runner.not_run:
        print("  " + line)
    return runner.problems


# Changes of the tree


def changed(text, anchor, block):
    """Returns a file's text with a block added, which takes the indentation of the lines before which it goes."""
    lines = text.split("\n")
    for i in reversed(places(text, anchor)):
        indent = lines[i][:len(lines[i]) - len(lines[i].lstrip())]
        lines[i:i] = [indent + line if line else line for line in block.lines]
    return "\n".join(lines)


# What expands the lists of rows of layouts and opcodes.
EXPANSIONS = ("include/forestvm/core/layouts.hpp", "include/forestvm/core/interpret.hpp", "kernels/link/linked_inst.hpp")


class Follower:
    """Does in a copy of the tree what a page says."""

    def __init__(self, root, page, options, folder):
        self.root, self.page, self.options = root, page, options
        self.tree = Path(folder) / "forestvm"
        self.blocks, _, self.problems = read_page(root, page)
        for name in tracked(root, "*"):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, self.tree / name, follow_symlinks=False)
        shutil.copytree(root / "tests/data/breast_cancer", self.tree, dirs_exist_ok=True)
        self.environment = dict(os.environ, LC_ALL="C.UTF-8", TMPDIR=str(folder),
                                PATH=f"{self.tree}/build/release/cli:" + os.environ["PATH"])

    def run(self, line, command):
        done = subprocess.run(["sh", "-euc", command], cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(f"$ {command.strip()}\n{done.stdout[-1500:]}", flush=True)
        if done.returncode != 0:
            self.problems.append(problem(self.page, line, f"exit code {done.returncode} of:\n{command}"))

    def change(self, block):
        """Applies a block to the tree, or runs it. Returns the file that it has changed or added, if it is one."""
        wrong = wrong_change(self.tree, block)
        if wrong:
            self.problems.append(problem(self.page, block.line, wrong))
        elif "add to" in block.notes:
            file, _, anchor = block.notes["add to"].partition(" before ")
            (self.tree / file).write_text(changed((self.tree / file).read_text(), anchor, block))
            return file
        elif "new file" in block.notes or "file" in block.notes:
            file = block.notes.get("new file") or block.notes["file"]
            (self.tree / file).write_text(block.text)
            return file
        elif "in the tree" in block.notes:
            self.run(block.line, block.text)
        return None

    def follow(self):
        self.run(1, "cmake --preset release -DFORESTVM_TARGETS=baseline -DFORESTVM_CUDA=OFF -DFORESTVM_HIP=OFF "
                 f"-DFORESTVM_TESTS=OFF -DFORESTVM_BENCH=OFF -DCMAKE_CXX_COMPILER_LAUNCHER={self.options.launcher}")
        for block in self.blocks:
            self.change(block)
            if self.problems:
                break
        return self.problems

    def apply(self):
        files = set(EXPANSIONS)
        for block in self.blocks:
            if self.problems or ("in the tree" in block.notes and "cmake --build" in block.text):
                break
            file = self.change(block)
            if file and file.endswith((".cpp", ".hpp")):
                files.add(file)
        for file in sorted(files):
            if not self.problems:
                self.run(1, f"{self.options.cxx} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I include -I . -I tests "
                         f"-include {file} -x c++ /dev/null")
        return self.problems


def do_as_said(root, page, options):
    with tempfile.TemporaryDirectory() as folder:
        follower = Follower(root, page, options, folder)
        return follower.apply() if options.what == "apply" else follower.follow()


def tracked(root, pattern):
    """Returns the files of the tree, without what git ignores."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", pattern], cwd=root, capture_output=True,
                            text=True)
    if listed.returncode == 0:
        names = listed.stdout.split("\n")[:-1]
    else:  # an archive of the sources
        names = [str(file.relative_to(root)) for file in root.rglob(pattern)
                 if file.is_file() and "build" not in file.parts]
    return [name for name in names if (root / name).exists()]


def tracked_pages(root):
    return sorted(page for page in tracked(root, "*.md") if not page.startswith("tests/docs/mistakes/"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["links", "blocks", "follow", "apply"])
    parser.add_argument("root", type=lambda name: Path(name).resolve())
    parser.add_argument("pages", nargs="*")
    parser.add_argument("--build")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--launcher", default="", help="program that starts the compiler, such as ccache")
    options = parser.parse_intermixed_args()
    if options.what == "links":
        problems = check_links(options.root, options.pages or tracked_pages(options.root))
    elif options.what in ("follow", "apply"):
        if not options.pages:
            parser.error(f"{options.what} needs the pages")
        problems = [found for page in options.pages for found in do_as_said(options.root, page, options)]
    else:
        pages = options.pages or [page for page in tracked_pages(options.root)
                                  if page == "README.md" or page.startswith("docs/") or "/" not in page]
        problems = check_blocks(options.root, pages, options)
    for text in problems:
        print(text)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
