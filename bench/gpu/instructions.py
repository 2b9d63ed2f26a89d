#!/usr/bin/env python3
"""Counts the instructions of a node visit in the kernels' machine code: instructions.py OBJECT… -> a table.

OBJECT: an object file or library with CUDA machine code (build/release/kernels/gpu/megakernel_*_cuda.o). cuobjdump and
nvdisasm (CUDA's, or PyPI's nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm) are looked for in PATH, and beside each other
in the folder that CUDA_TOOLS names. A walk's inner loop is one that loads as many nodes (8 or 16 bytes at once) as values
of rows (4 bytes, from shared memory); its hops are unrolled, and a visit is its length divided by its nodes. Loops of
fewer than 8 visits, which walks of other shapes end with, are left out.

--most N LAYOUT: fails unless the least count of that layout's, with nodes in shared memory, is at most N everywhere.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST_VISITS = 8
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(.*?)\s*;")
LABEL = re.compile(r"^(\.L_x_\d+):")
BRANCH = re.compile(r"\bBRA\b.*`\((\.L_x_\d+)\)")
NODE = re.compile(r"\bLD(S|G)(\.E)?(\.\w+)*\.(64|128)\b")
VALUE = re.compile(r"\bLDS(?!\S*\.(64|128|U8|U16))")


def tool(name):
    folder = os.environ.get("CUDA_TOOLS")
    return shutil.which(name, path=folder) if folder else shutil.which(name)


def kernels(objects, folder):
    """-> (kernel, architecture, disassembly) of every code object."""
    for number, path in enumerate(objects):
        inside = Path(folder) / str(number)
        inside.mkdir()
        subprocess.run([tool("cuobjdump"), "-xelf", "all", str(Path(path).resolve())], cwd=inside, check=True,
                       stdout=subprocess.DEVNULL)
        for code in sorted(inside.iterdir()):
            text = subprocess.run([tool("nvdisasm"), "-c", str(code)], check=True, capture_output=True, text=True).stdout
            kernel = re.search(r"\.text\.forestvm_phase_(\w+)", text)
            gpu = re.search(r"sm_\d+", code.name)
            if kernel and gpu:
                yield kernel[1], gpu[0], text


def inner_loops(text):
    """-> lists of instructions."""
    labels, instructions = {}, []
    for line in text.splitlines():
        if found := LABEL.match(line):
            labels[found[1]] = len(instructions)
        elif found := INSTRUCTION.match(line):
            instructions.append(found[1])
    loops = []
    for end, instruction in enumerate(instructions):
        found = BRANCH.search(instruction)
        if found and labels.get(found[1], len(instructions)) <= end:
            loops.append((labels[found[1]], end))
    for begin, end in loops:
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in loops):
            yield instructions[begin : end + 1]


def visits(text):
    """-> {where the nodes are: (instructions of a visit, visits of the loop)}, of the shortest loops."""
    least = {}
    for loop in inner_loops(text):
        nodes = [found for instruction in loop if (found := NODE.search(instruction))]
        values = sum(1 for instruction in loop if VALUE.search(instruction))
        if len(nodes) < LEAST_VISITS or values != len(nodes) or len({found[1] for found in nodes}) != 1:
            continue
        where = {"S": "shared", "G": "global"}[nodes[0][1]]
        of_visit = len(loop) / len(nodes)
        if where not in least or of_visit < least[where][0]:
            least[where] = (of_visit, len(nodes))
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", nargs="+", metavar="OBJECT")
    parser.add_argument("--most", nargs=2, metavar=("N", "LAYOUT"))
    options = parser.parse_args()
    if not tool("cuobjdump") or not tool("nvdisasm"):
        print("skipped: cuobjdump and nvdisasm are not there (PyPI: nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm)")
        return 0
    exceeded, counted = [], 0
    print(f"{'kernel':10} {'for':8} {'nodes':7} {'instructions a visit':>20} {'visits in the loop':>19}")
    with tempfile.TemporaryDirectory() as folder:
        for kernel, gpu, text in sorted(kernels(options.objects, folder)):
            for where, (of_visit, count) in sorted(visits(text).items()):
                print(f"{kernel:10} {gpu:8} {where:7} {of_visit:20.1f} {count:19}")
                if options.most and (kernel, where) == (options.most[1], "shared"):
                    counted += 1
                    if of_visit > float(options.most[0]):
                        exceeded.append(f"{kernel} for {gpu}")
    if options.most and (exceeded or not counted):
        print(f"more than {options.most[0]} instructions: {', '.join(exceeded) or 'no such loop was found'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
