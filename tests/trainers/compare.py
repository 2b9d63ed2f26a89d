"""Compares forestvm's predictions of a case with the trainer's own."""
import pathlib
import subprocess

import numpy


def predicted(forestvm, folder, case, kind, *options):
    """Returns what forestvm predicts; ends with its message if it refuses."""
    rows, out = case.rows, folder / "out.npy"
    if not isinstance(rows, pathlib.Path):
        rows = folder / "rows.npy"
        numpy.save(rows, case.rows)
    subprocess.run([forestvm, "run", case.file, rows, "-o", out, "--output", kind, *options], check=True)
    return numpy.load(out)


def flat(array, like):
    """Returns the array in the type and shape of another."""
    return numpy.asarray(array, dtype=like.dtype).reshape(like.shape)


def far(ours, theirs, ulps, bound):
    """Returns how many numbers have other bits, and are apart by more than `ulps` units in the last place and `bound`."""
    theirs = flat(theirs, ours)
    if ulps == 0 and bound == 0:
        return int((ours.view(f"u{ours.itemsize}") != theirs.view(f"u{theirs.itemsize}")).sum())
    with numpy.errstate(invalid="ignore"):
        apart = numpy.abs(ours - theirs)
        near = (apart <= ulps * numpy.spacing(numpy.abs(ours))) | (apart <= bound * numpy.maximum(1, numpy.abs(theirs)))
    return int((~(near | (ours == theirs) | (numpy.isnan(ours) & numpy.isnan(theirs)))).sum())


def differences(forestvm, folder, case, *options):
    """Returns how many raw scores, values and leaf numbers differ, by kind."""
    counts = {}
    if case.raw is not None:
        counts["raw scores"] = far(predicted(forestvm, folder, case, "raw", *options), case.raw, 0, case.raw_bound)
    if case.value is not None:
        counts["values"] = far(predicted(forestvm, folder, case, "value", *options), case.value, 2, case.bound)
    if case.leaves is not None:
        leaves = predicted(forestvm, folder, case, "leaf", *options)
        counts["leaf numbers"] = int((leaves != flat(case.leaves, leaves)).sum())
    return counts


def listed(counts):
    """Returns the counts of differences as text."""
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())
