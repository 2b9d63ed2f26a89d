"""Makes the files of this folder: the same 5 rows of 3 features as numpy, scipy, pandas and scikit-learn write them.

Run with numpy 2, scipy 1.17, pandas and scikit-learn installed: python make_tables.py
"""
import gzip
import json
import pathlib

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

here = pathlib.Path(__file__).parent
rows = np.array([[0, 1.5, 0], [-2, 0, 3], [0, 0, 0], [0.1, 1e30, 0], [0, 0, 7]], dtype=np.float64)
csr = sp.csr_matrix(rows)
frame = pd.DataFrame(rows, columns=["a", "b", "c"])
holes = frame.mask(frame == 0)

np.savez(here / "one.npz", rows=rows)
np.savez_compressed(here / "packed.npz", rows.astype(np.float32))
np.savez(here / "two.npz", first=rows, second=rows[:2] + 1)
sp.save_npz(here / "csr.npz", csr)
sp.save_npz(here / "csr_plain.npz", sp.csr_array(csr), compressed=False)
sp.save_npz(here / "csc.npz", csr.tocsc())
dump_svmlight_file(csr, np.arange(5), str(here / "zero.svm"), zero_based=True)
dump_svmlight_file(csr, np.arange(5), str(here / "one.svm"), zero_based=False, comment="made for tests")
frame.to_csv(here / "rows.csv.gz", index=False)
holes.to_csv(here / "index.csv")
holes.to_csv(here / "semicolon.csv", sep=";", index=False, na_rep="NA")
holes.to_json(here / "rows.jsonl", orient="records", lines=True)
with gzip.open(here / "arrays.jsonl.gz", "wt") as out:
    for row in rows.tolist():
        print(json.dumps(row), file=out)
