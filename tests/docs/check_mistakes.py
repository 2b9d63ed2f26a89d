#!/usr/bin/env python3
"""Checks that the checker of documents finds mistakes: check_mistakes.py FOLDER COMMAND...

COMMAND checks the pages of FOLDER. Comments in these pages say what it must find, `<!-- expects: TEXT -->`: a problem
whose text contains TEXT, between this comment and the next one. It must find nothing else.
"""
import re
import subprocess
import sys
from pathlib import Path


def main():
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    expected = []
    for page in sorted(folder.glob("*.md")):
        here = [(number, text) for number, line in enumerate(page.read_text().split("\n"), 1)
                for text in re.findall(r"<!-- expects: (.*?) -->", line)]
        ends = [number for number, _ in here[1:]] + [sys.maxsize]
        expected += [(page.name, begin, end, text) for (begin, text), end in zip(here, ends)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.findall(r"^([\w-]+\.md):(\d+): (.*)$", done.stdout, re.MULTILINE)
    wrong = [] if done.returncode == 1 else [f"exit code {done.returncode}, not 1"]
    for page, begin, end, text in expected:
        hits = [hit for hit in found if hit[0] == page and begin <= int(hit[1]) < end and text in hit[2]]
        if hits:
            found.remove(hits[0])
        else:
            wrong.append(f"not found: {page}:{begin}: {text}")
    wrong += ["not expected: " + ":".join(hit) for hit in found]
    print(done.stdout)
    print(f"{len(expected)} mistakes expected, {len(wrong)} differences")
    for text in wrong:
        print(text)
    sys.exit(1 if wrong or not expected else 0)


if __name__ == "__main__":
    main()
