"""Runs pytest on a folder, and says in a few words what was skipped: run_pytest.py FOLDER"""
import collections
import re
import sys

import pytest


class Skips:
    """Counts the tests that were skipped, by what they lack. Prints nothing for tests that do not fail, because ctest
    keeps the first 1024 bytes that a test prints."""

    def __init__(self):
        self.reasons = collections.Counter()

    def pytest_runtest_logreport(self, report):
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            absent = re.match(r"could not import '(\w+)", reason)
            self.reasons[f"no {absent[1]}" if absent else reason] += 1

    def pytest_report_teststatus(self, report):
        if report.skipped or (report.passed and report.when == "call"):
            return report.outcome, "", ""


def main():
    skips = Skips()
    status = pytest.main(["-p", "no:cacheprovider", "-q", "-rfE", sys.argv[1]], plugins=[skips])
    if skips.reasons:
        counted = (f"{count} tests: {reason}" for reason, count in skips.reasons.most_common())
        print("partly skipped:", "; ".join(counted))
    return status


if __name__ == "__main__":  # processes that tests start import this file
    sys.exit(main())
