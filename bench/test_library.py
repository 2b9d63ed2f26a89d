"""Tests that library.py describes the structs of the C ABI as the library has them, by predictions:

test_library.py FORESTVM LIBRARY

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so.
"""

import sys, tempfile, unittest

try:
    import numpy
except ModuleNotFoundError:
    print("skipped: no NumPy (Debian: python3-numpy)")
    sys.exit()

from library import ROOT, Forest, Library, compiled

DATA = ROOT / "tests" / "data" / "breast_cancer"


class Calls(unittest.TestCase):
    forestvm = library = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        program = compiled(self.forestvm, DATA / "model.json", self.folder.name, "trees")
        self.forest = Forest(Library(self.library), program)
        self.rows = numpy.load(DATA / "rows.npy").astype(numpy.float32)
        self.raw = numpy.load(DATA / "expected_raw.npy")

    def tearDown(self):
        self.forest.close()
        self.folder.cleanup()

    def test_raw_scores_are_the_trainers(self):
        out = self.forest.call(self.rows, "raw")()
        self.assertEqual(out.ravel().tolist(), self.raw.ravel().tolist())

    def test_the_last_stage_is_the_raw_score(self):
        stages = self.forest.call(self.rows, "staged", every=10)()
        self.assertEqual(stages[:, -1].tolist(), self.raw.ravel().tolist())


if __name__ == "__main__":
    Calls.library, Calls.forestvm = sys.argv.pop(), sys.argv.pop()
    unittest.main()
