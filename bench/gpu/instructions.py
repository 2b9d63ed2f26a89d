#!/usr/bin/env python3
"""Counts the instructions of a node visit in the kernels' machine code: instructions.py OBJECT… -> a table.

OBJECT: an object file or library with CUDA machine code (build/release/kernels/gpu/megakernel_*_cuda.o), see
machine_code.py for the tools that read it. The inner loop of a walk loads equal numbers of nodes (8 or 16 bytes each)
and values of rows (4 bytes each, from shared memory), or of nodes of 4 bytes and codes of one byte. Its steps are
unrolled: the instructions of a visit are the loop's length divided by its nodes. Loops of fewer than 8 visits, with
which walks of other shapes end, are left out.

--most N LAYOUT: fails unless that layout's smallest count, with nodes in shared memory, is at most N for every GPU.
"""

import argparse
import re
import sys

import machine_code

LEAST_VISITS = 8
PHASE = re.compile(r"forestvm_phase_(\w+)")
NODES_OF_WORDS = ("Array4", "Sparse4")
WIDE = re.compile(r"\bLD(S|G)(\.E)?(\.\w+)*\.(64|128)\b")
SHARED_WORD = re.compile(r"\bLDS(?!\S*\.(64|128|U8|U16))")
CODE = re.compile(r"\bLDS(\.U)?\.U8\b")
WORD = re.compile(r"\bLD(S|G)(?!\S*\.(64|128|U8|U16|S8|S16))")


def loads(loop, of_words=False):
    """Returns the memory (G, S) from which a walk's loop loads nodes, one letter for each; None if the loop does not
    load a value or a code for each node. `of_words`: nodes have 4 bytes."""
    wide = [found[1] for instruction in loop if (found := WIDE.search(instruction))]
    words = [found[1] for instruction in loop if (found := WORD.search(instruction))]
    if of_words:
        codes = sum(bool(CODE.search(instruction)) for instruction in loop)
        return words if not wide and codes == len(words) and len(set(words)) == 1 else []
    return wide if words == ["S"] * len(wide) and len(set(wide)) == 1 else []


def visits(kernel, of_words):
    """Returns {memory of the nodes: (instructions per visit, visits of the loop)} for the shortest loops."""
    least = {}
    for first, last in kernel.inner_loops():
        loop = [text for _, text in kernel.instructions[first : last + 1]]
        nodes = loads(loop, of_words)
        if len(nodes) < LEAST_VISITS:
            continue
        where = {"S": "shared", "G": "global"}[nodes[0]]
        of_visit = len(loop) / len(nodes)
        if where not in least or of_visit < least[where][0]:
            least[where] = (of_visit, len(nodes))
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", nargs="+", metavar="OBJECT")
    parser.add_argument("--most", nargs=2, metavar=("N", "LAYOUT"))
    options = parser.parse_args()
    if not machine_code.tools_are_there():
        print(machine_code.NO_TOOLS)
        return 0
    exceeded, counted = [], 0
    print(f"{'kernel':10} {'for':8} {'nodes':7} {'instructions a visit':>20} {'visits in the loop':>19}")
    phases = [(found[1], kernel) for kernel in machine_code.kernels(options.objects)
              if (found := PHASE.fullmatch(kernel.name))]
    for layout, kernel in sorted(phases, key=lambda phase: (phase[0], phase[1].gpu)):
        for where, (of_visit, count) in sorted(visits(kernel, layout in NODES_OF_WORDS).items()):
            print(f"{layout:10} {kernel.gpu:8} {where:7} {of_visit:20.1f} {count:19}")
            if options.most and (layout, where) == (options.most[1], "shared"):
                counted += 1
                if of_visit > float(options.most[0]):
                    exceeded.append(f"{layout} for {kernel.gpu}")
    if options.most and (exceeded or not counted):
        print(f"more than {options.most[0]} instructions: {', '.join(exceeded) or 'no such loop was found'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
