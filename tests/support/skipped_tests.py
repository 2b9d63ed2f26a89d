"""Prints which tests of a run were skipped, in whole or in part, and what was absent for each:
skipped_tests.py JUNIT_FILE_OF_CTEST"""
import re
import sys
import xml.etree.ElementTree as xml


def reason(output):
    """Returns what a skipped test said: GoogleTest's message, or the line that begins with "skipped:"."""
    message = re.search(r": Skipped\n(.+)", output) or re.search(r"^skipped: *(.+)$", output, re.MULTILINE)
    return message.group(1).strip() if message else "it does not say why"


def main():
    """Prints a line for each reason, with its tests."""
    tests = {}
    for case in xml.parse(sys.argv[1]).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        if case.find("skipped") is not None:
            tests.setdefault(reason(output), []).append(case.get("name"))
        elif part := re.search(r"^partly skipped: *(.+)$", output, re.MULTILINE):
            tests.setdefault(part.group(1), []).append(f"parts of {case.get('name')}")
    for why, names in tests.items():
        print(f"not run here: {', '.join(names)}: {why}")


main()
