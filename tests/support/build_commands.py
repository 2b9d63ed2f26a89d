#!/usr/bin/env python3
"""The commands with which a build compiles its sources.

As a program it prints them as a compilation database (https://clang.llvm.org/docs/JSONCompilationDatabase.html) that has
an entry for each source. CMake's own has one for each batch where sources are compiled in batches (FORESTVM_UNITY).

  build_commands.py BUILD_FOLDER
"""

import json
import pathlib
import re
import sys


def sources_of(file):
    """Returns the sources that a batch includes; a source that is no batch is its own."""
    if file.parent.name != "Unity":
        return [file]
    return [pathlib.Path(path) for path in re.findall(r'^#include "(.*)"$', file.read_text(), re.MULTILINE)]


def commands(build):
    """Returns the entries of CMake's compilation database, each with the sources that its command compiles."""
    entries = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    return [(entry, sources_of(pathlib.Path(entry["file"]))) for entry in entries]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    each = []
    for entry, sources in commands(sys.argv[1]):
        for source in sources:
            command = entry["command"].replace(entry["file"], str(source))
            each.append({"directory": entry["directory"], "command": command, "file": str(source)})
    json.dump(each, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
