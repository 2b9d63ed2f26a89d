"""python -m forestvm predict MODEL IN OUT: predicts the rows of Parquet and Arrow files."""

from __future__ import annotations

import sys

from ._predict_files import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
