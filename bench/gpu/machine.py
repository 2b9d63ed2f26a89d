#!/usr/bin/env python3
"""Runs kernels' machine code without a GPU, and counts the instructions: machine.py RECORDING OBJECT… -> a table.

RECORDING: a folder with a call on the emulator, written by record.cpp. OBJECT: an object file or library with CUDA
machine code; see machine_code.py for the tools that read it. Kernels of the recording's layout are run.

Each thread of a launch runs by itself on the recorded memory, from barrier to barrier and from shuffle to shuffle. The
memory must then equal what the emulator left, bit for bit. The run ends with an error if a thread reads or writes
outside the memory or at an unaligned address, if opcodes.py does not know an instruction, or if only some lanes of a
warp reach an instruction that needs the whole warp.

The count of a warp estimates the instructions that a GPU issues for it, including those that a predicate disables. It
is a sum over basic blocks: the block's instructions times the largest number of times that one lane ran the block. It
is exact if all lanes take the same way ("together"), and if lanes that part meet again before they run a block twice.
The table has the mean of all warps. Walk loops are the innermost loops that load and compare; visits are counted in
them if their loads can be told apart. Lines are the distinct lines of code, of 128 bytes, that a warp's instructions
lie in: a warp waits for the first of each if no earlier launch or other warp has brought it into a cache. Stack is the
bytes of its threads' stacks that a warp writes: L1 hands them on to L2.

--compare REGEX: also runs kernels whose names match, and prints the overhead of each --kernel: its instructions divided
by those of the matching kernel, minus 1.
--most X: fails if an overhead is larger. --at-most N: fails if a --kernel takes more instructions.
--interpreting X: prints the part of a --kernel's instructions that interprets the program; fails if it is larger than
X.
--profile N: prints the cost of each instruction of the interpreted program, with its lines of code, and the N most
expensive basic blocks; for objects compiled with -lineinfo also the N most expensive source lines, each with the opcode
for which it ran.
"""

import argparse
import bisect
import functools
import json
import operator
import re
import sys
from collections import Counter
from math import nan
from pathlib import Path

import instructions
import machine_code
import opcodes
import sass

WARP = 32
CODE_LINE = 128  # bytes of a line of the caches of instructions
LOCAL_BYTES = 1 << 14
UNSET = 0xFFFFFFFF  # marks memory that nothing has written

# Base addresses of memory that has no address in the recording. They are beyond all addresses of a host.
SHARED, LOCAL, PARAMETERS, GLOBALS = (which << 48 for which in (1, 2, 3, 4))

# Words of constant bank 0 that the driver writes, by GPU: their meanings and offsets. `bank`: the address of the bank
# itself; `memory`: how caches treat what is loaded.
OLD = dict(block=0x0, grid=0xC, shared=0x18, local=0x20, stack=0x28, bank=0x40, memory=0x118)
NEW = dict(local=0x2F8, parameters=0x348, memory=0x358, block=0x360, stack=0x37C)
DRIVER = {
    "sm_75": OLD,
    "sm_80": OLD,
    "sm_90": dict(block=0x0, grid=0xC, local=0x20, stack=0x28, parameters=0x198, memory=0x208),
    "sm_100": NEW,
    "sm_120": NEW,
}


# Instructions of a forestvm program that walk trees, and those that only control its flow. "" stands for code before
# the first instruction.
WALKS = ("walk", "leaves")
CONTROL = ("", "map", "for", "end", "slice", "when", "unless", "plan", "halt")


class Fault(Exception):
    """Raised for an operation that is an error on a GPU too, or that this machine cannot do."""


def offset_in(begin, end, address, size):
    if not begin <= address <= address + size <= end:
        raise Fault(f"{size} bytes at {address:#x} are not there")
    if address % size:
        raise Fault(f"{size} bytes at {address:#x} are not aligned")
    return address - begin


def load(data, address, size, begin=0):
    at = offset_in(begin, begin + len(data), address, size)
    return int.from_bytes(data[at : at + size], "little")


def store(data, address, size, number, begin=0):
    at = offset_in(begin, begin + len(data), address, size)
    if isinstance(data, bytes):
        raise Fault(f"{size} bytes at {address:#x} are constant")
    data[at : at + size] = number.to_bytes(size, "little")


class Memory:
    """The device's memory: regions of bytes by address."""

    def __init__(self):
        self.begins, self.regions, self.last = [], [], (0, b"")

    def add(self, begin, data):
        at = bisect.bisect(self.begins, begin)
        self.begins.insert(at, begin)
        self.regions.insert(at, (begin, data))

    def region(self, address):
        """Returns (begin, bytes) of the region that an address is in or behind."""
        begin, data = self.last
        if not begin <= address < begin + len(data):
            self.last = begin, data = self.regions[max(bisect.bisect(self.begins, address) - 1, 0)]
        return begin, data


class Thread:
    """A thread of the GPU, called `t` in the statements of opcodes.py."""

    def __init__(self, launch, shared, block, number):
        self.launch, self.shared, self.block, self.number = launch, shared, block, number
        width, height, depth = launch.block
        first = (number[2] * height + number[1]) * width + number[0] // WARP * WARP
        self.lanes = (1 << min(WARP, width * height * depth - first)) - 1
        self.special = dict(SR_SWINHI=SHARED >> 32, SR_CgaCtaId=0)
        for name, place in (("CTAID", block), ("TID", number)):
            self.special.update((f"SR_{name}.{axis}", place[d]) for d, axis in enumerate("XYZ"))
        self.local = bytearray(b"\xff") * LOCAL_BYTES
        self.r, self.u, self.p, self.q = [UNSET] * 256, [UNSET] * 64, [False] * 7, [False] * 7
        self.at, self.doing, self.counts = 0, None, Counter()

    def constant(self, bank, offset, size):
        launch = self.launch
        if bank == 0 and launch.code_begin <= offset < launch.code_end and (offset - launch.code_begin) % 16 == 0:
            self.doing = (offset - launch.code_begin) // 16
        return launch.constant(bank, offset, size)

    def global_load(self, address, size):
        begin, data = self.launch.memory.region(address)
        return load(data, address, size, begin)

    def global_store(self, address, size, number):
        begin, data = self.launch.memory.region(address)
        store(data, address, size, number, begin)

    def shared_load(self, address, size):
        return load(self.shared, address, size)

    def shared_store(self, address, size, number):
        store(self.shared, address, size, number)

    def local_load(self, address, size):
        return load(self.local, address, size)

    def local_store(self, address, size, number):
        store(self.local, address, size, number)

    def region(self, address):
        """Finds a region as Memory.region does, in all memory that has an address."""
        for begin, data in ((SHARED, self.shared), (LOCAL, self.local)):
            if address >> 48 == begin >> 48:
                return begin, data
        return self.launch.memory.region(address)

    def generic_load(self, address, size):
        begin, data = self.region(address)
        return load(data, address, size, begin)

    def generic_store(self, address, size, number):
        begin, data = self.region(address)
        store(data, address, size, number, begin)


def written_to_stack(text):
    """Returns the bytes of a thread's stack that an instruction writes. Words of neighbouring lanes lie side by side, so
    that less than a word is written as one."""
    found = re.search(r"\bSTL((?:\.\w+)*)", text)
    sizes = {"64": 8, "128": 16}
    return next((sizes[modifier] for modifier in found[1].split(".") if modifier in sizes), 4) if found else 0


class Block:
    """A basic block. `run(r, u, p, q, t)` returns the next block's address; behind a barrier, that address inverted;
    behind an instruction of the whole warp, that address plus opcodes.MEETING; None at the thread's end."""

    def __init__(self, begin, end, run, texts=()):
        self.begin, self.end, self.run = begin, end, run
        self.size = (end - begin) // 16
        self.stack_bytes = sum(written_to_stack(text) for text in texts)

    def lines(self):
        """Returns the numbers of the lines of code that the block lies in."""
        return range(self.begin // CODE_LINE, (self.end - 1) // CODE_LINE + 1)


class Launch:
    """A recorded launch of one kernel."""

    def __init__(self, folder, number, kernel):
        self.kernel = kernel
        description = json.loads((folder / f"{number}.json").read_text())
        self.grid, self.block = description["extent"][:3], description["extent"][3:]
        self.shared_bytes = description["shared_bytes"] + kernel.image.size(f".nv.shared.{kernel.name}")
        self.code = description["code"]
        before, self.expected = ((folder / f"{number}.{when}").read_bytes() for when in ("before", "after"))
        argument = (folder / f"{number}.argument").read_bytes()
        self.memory, self.allocations, at = Memory(), [], 0
        for begin, size in description["memory"]:
            self.allocations.append((begin, bytearray(before[at : at + size])))
            self.memory.add(*self.allocations[-1])
            at += size
        self.memory.add(PARAMETERS, argument)
        base, size = kernel.image.parameters(kernel.name)
        if size != len(argument):
            raise Fault(f"{kernel.name} takes {size} bytes, the recording has {len(argument)}")
        self.banks = {0: self.driver_words(base), **self.constant_sections()}
        self.banks[0].update(enumerate(argument, base))
        self.code_begin = base + description["code_offset"]
        self.code_end = self.code_begin + 16 * len(self.code)
        self.text = dict(kernel.instructions)
        self.leaders = set(kernel.labels.values())
        # A block begins where the interpreter reads an opcode, so that each block belongs to one instruction of the
        # program.
        self.leaders.update(address for address, text in kernel.instructions
                            if f"+{self.code_begin:#x}]" in text and re.search(r"\bU?LDCU?\b", text))
        self.blocks = {}

    def driver_words(self, base):
        """Returns constant bank 0 below the parameters: {offset: byte}."""
        if self.kernel.gpu not in DRIVER:
            raise Fault(f"what the driver gives kernels for {self.kernel.gpu} is not known")
        values = dict(block=self.block, grid=self.grid, stack=[LOCAL_BYTES], shared=[0, SHARED >> 32],
                      local=[0, LOCAL >> 32], parameters=[0, PARAMETERS >> 32], memory=[0, 0],
                      bank=[PARAMETERS - base & sass.M, PARAMETERS - base >> 32])
        known = {}
        for word, offset in DRIVER[self.kernel.gpu].items():
            known.update(enumerate(b"".join(number.to_bytes(4, "little") for number in values[word]), offset))
        return known

    def constant_sections(self):
        """Returns the other banks, {bank: {offset: byte}}, and the kernel's own variables in memory."""
        image, banks, places = self.kernel.image, {}, {}
        for section in (".nv.global", ".nv.global.init"):
            if image.size(section):
                places[section] = GLOBALS + (len(places) << 32)
                self.memory.add(places[section], bytearray(image.bytes(section)))
        for bank in (1, 2, 3, 4):
            for section in (f".nv.constant{bank}", f".nv.constant{bank}.{self.kernel.name}"):
                known = dict(enumerate(image.bytes(section)))
                for offset, kind, of, number in image.relocations(section):
                    if kind == 2 and of in places:  # R_CUDA_64
                        known.update(enumerate((places[of] + number).to_bytes(8, "little"), offset))
                    else:  # the address is not in the file: reading it is an error
                        known = {at: byte for at, byte in known.items() if not offset <= at < offset + 8}
                if known:
                    banks[bank] = known
        return banks

    def constant(self, bank, offset, size):
        known = self.banks.get(bank, {})
        try:
            return int.from_bytes(bytes(known[offset + i] for i in range(size)), "little")
        except KeyError:
            raise sass.Unknown(f"nobody knows what c[{bank:#x}][{offset:#x}] holds") from None

    def compile(self, begin):
        lines, at = ["def run(r, u, p, q, t):"], begin
        while True:
            if at not in self.text:
                raise Fault(f"there is no instruction at {at:#x}")
            text = self.text[at]
            lines += [f"  {line}" for line in opcodes.statements(at, text, self.kernel.labels, self.constant)]
            at += 16
            if opcodes.ends_block(text) or at in self.leaders:
                break
        lines.append(f"  return {at}")
        scope = dict(vars(sass))
        exec("\n".join(lines), scope)
        texts = [self.text[address] for address in range(begin, at, 16)]
        self.blocks[begin] = block = Block(begin, at, scope["run"], texts)
        return block

    def run_thread(self, thread):
        """Runs the thread to its next barrier (returns True), to its end (False), or to where its warp meets (an
        address)."""
        at, blocks, counts = thread.at, self.blocks, thread.counts
        r, u, p, q = thread.r, thread.u, thread.p, thread.q
        while True:
            block = blocks.get(at) or self.compile(at)
            try:
                at = block.run(r, u, p, q, thread)
            except (Fault, sass.Unknown) as why:
                raise Fault(f"{self.kernel.name} for {self.kernel.gpu}, thread {thread.number} of block "
                            f"{thread.block}, {block.begin:#x} to {block.end:#x}: {why}") from None
            counts[thread.doing, block.begin] += 1
            if at is None:
                return False
            if at < 0:
                thread.at = ~at
                return True
            if at >= opcodes.MEETING:
                thread.at = at - opcodes.MEETING
                return thread.at

    def run_warp(self, lanes):
        """Runs the threads; returns {True} if they are at a barrier, {False} if they have ended, or both."""
        while True:
            came = {self.run_thread(lane) for lane in lanes}
            if came <= {True, False}:
                return came
            if len(came) != 1:
                raise Fault(f"{self.kernel.name}: not all lanes of a warp come to {max(came) - 16:#x}")
            for lane, answer in zip(lanes, [answer_to(lanes, number) for number in range(len(lanes))]):
                _, _, registers, number = lane.asks
                registers[number] = answer

    def run(self):
        """Returns for each warp {(number of the program's instruction, block): times}, the times of all its lanes
        together, and how many lanes it has."""
        warps = []
        for block in points(self.grid):
            shared = bytearray(b"\xff") * self.shared_bytes
            threads = [Thread(self, shared, block, number) for number in points(self.block)]
            of_block = [threads[first : first + WARP] for first in range(0, len(threads), WARP)]
            waiting = True
            while waiting:
                came = set().union(*map(self.run_warp, of_block))
                if len(came) != 1:
                    raise Fault(f"{self.kernel.name}: threads of block {block} wait at a barrier, others have ended")
                waiting = came.pop()
            for lanes in of_block:
                most = Counter()
                for lane in lanes:
                    most |= lane.counts
                warps.append((most, sum((lane.counts for lane in lanes), Counter()), len(lanes)))
        self.check()
        return warps

    def check(self):
        """Checks that the memory is as the emulator left it."""
        at = 0
        for begin, data in self.allocations:
            expected = self.expected[at : at + len(data)]
            at += len(data)
            if data != expected:
                wrong = [i for i, (a, b) in enumerate(zip(data, expected)) if a != b]
                raise Fault(f"{self.kernel.name} for {self.kernel.gpu}: {len(wrong)} of the {len(data)} bytes at "
                            f"{begin:#x} differ from the emulator's, first number {wrong[0]}")


def answer_to(lanes, number):
    """Gives each lane its answer when all lanes of its warp have asked."""
    what, (word, *by), _, _ = lanes[number].asks
    words = [lane.asks[1][0] for lane in lanes]
    if what == "MATCH.ANY":
        return sum(1 << other for other, theirs in enumerate(words) if theirs == word)
    if what == "REDUX.OR":
        return functools.reduce(operator.or_, words)
    if number + by[0] >= WARP:
        return word
    if number + by[0] >= len(words):
        raise Fault(f"lane {number} shuffles with one that is not there")
    return words[number + by[0]]


def points(extent):
    return [(x, y, z) for z in range(extent[2]) for y in range(extent[1]) for x in range(extent[0])]


def walk_loops(kernel):
    """Returns (first address, last address, what a visit loads) of the inner loops that load and compare. A visit loads
    a value or code of a row from shared memory or, if there is none, a node; None if nodes look like values."""
    coded = kernel.name.endswith(instructions.NODES_OF_WORDS)
    value = instructions.CODE if coded else instructions.SHARED_WORD
    compares = r"\bISETP\.GT\.U32\b" if coded else r"\bFSETP\b"
    for first, last in kernel.inner_loops():
        loop = kernel.instructions[first : last + 1]
        loads = [text for _, text in loop if re.search(r"\bLD[SG]\b", text)]
        values = [text for text in loads if value.search(text)]
        if loads and any(re.search(compares, text) for _, text in loop):
            visit = value if values else instructions.WIDE
            yield loop[0][0], loop[-1][0], visit if len(loads) > len(values) else None


class Count:
    """The averages of a kernel's warps over all launches of a recording."""

    def __init__(self, folder, kernel):
        self.kernel, self.blocks = kernel, {}
        self.by_instruction, self.by_block, self.lines_by_instruction = Counter(), Counter(), Counter()
        self.visits, self.in_loops, self.lines, self.stack_bytes, self.parted = 0, 0, 0, 0, False
        walks, walking = 0, 0
        loops = list(walk_loops(kernel))
        for number in range(len(list(folder.glob("*.json")))):
            launch = Launch(folder, number, kernel)
            warps = launch.run()
            self.blocks.update(launch.blocks)
            for most, together, width in warps:
                lines = set()
                for (doing, begin), times in most.items():
                    lanes = together[doing, begin]
                    self.parted |= lanes != width * times
                    block, lanes, times = launch.blocks[begin], lanes / len(warps), times / len(warps)
                    place = number, -1 if doing is None else doing, "" if doing is None else launch.code[doing]
                    lines.update((place, line) for line in block.lines())
                    self.stack_bytes += times * WARP * block.stack_bytes
                    self.by_instruction[place] += times * block.size
                    if place[2] in WALKS:
                        walks, walking = walks + times * block.size, walking + lanes * block.size
                    self.by_block[place, begin] += times * block.size
                    for first, last, visit in loops:
                        if first <= begin <= last:
                            texts = (launch.text[at] for at in range(begin, block.end, 16))
                            self.in_loops += times * block.size
                            self.visits += times * sum(1 for text in texts if visit.search(text)) if visit else nan
                self.lines += len({line for _, line in lines}) / len(warps)
                for place, _ in lines:
                    self.lines_by_instruction[place] += 1 / len(warps)
        self.instructions = sum(self.by_instruction.values())
        self.walking_lanes = walking / walks if walks else 0

    def interpreting(self):
        """Returns the share of machine instructions that a kernel made for this program alone would not need. It counts
        all machine instructions before the program's first instruction, and those of its instructions for loops, slices
        and conditions. In each other instruction of the program it counts as many as `halt` takes, because `halt` is
        only fetched and recognized."""
        halt = max((count for (_, _, opcode), count in self.by_instruction.items() if opcode == "halt"), default=0)
        return sum(count if opcode in CONTROL else min(count, halt)
                   for (_, _, opcode), count in self.by_instruction.items()) / self.instructions

    def function(self, address):
        """Returns the name of the function that contains an address, as far as the compiler kept functions apart."""
        inside = [(at, name) for name, at in self.kernel.labels.items() if name[0] == "$" and at <= address]
        names = re.findall(r"(?=(\d+)([a-z]\w*))", max(inside)[1]) if inside else []
        names = [name[: int(length)] for length, name in names if 2 < int(length) <= len(name)]
        return next((name for name in reversed(names) if name not in ("forestvm", "kernels")), "")


def print_counts(counts):
    print(f"{'kernel':34} {'for':7} {'instructions of a warp':>22} {'lines':>5} {'stack':>6} {'in walk loops':>13} {'visits':>7} "
          f"{'per visit':>9}  lanes")
    for of in counts:
        visits, per_visit = "-", "-"
        if of.visits > 0:
            visits, per_visit = f"{of.visits:.0f}", f"{of.instructions / of.visits:.2f}"
        print(f"{of.kernel.name:34} {of.kernel.gpu:7} {of.instructions:22.0f} {of.lines:5.0f} {of.stack_bytes:6.0f} {of.in_loops:13.0f} "
              f"{visits:>7} {per_visit:>9}  {'part' if of.parted else 'together'}")


def print_profile(of, most):
    print(f"\n{of.kernel.name} for {of.kernel.gpu}, by instruction of the program: instructions, lines, launch, "
          "number, opcode")
    for (launch, number, opcode), count in sorted(of.by_instruction.items()):
        print(f"{count:9.0f} {of.lines_by_instruction[launch, number, opcode]:5.0f}  {launch} "
              f"{number if number >= 0 else '':>3} {opcode or 'before the first'}")
    print("by basic block: instructions, times, length, address")
    text = dict(of.kernel.instructions)
    for ((_, _, opcode), begin), count in of.by_block.most_common(most):
        size = of.blocks[begin].size
        print(f"{count:9.0f} {count / size:7.1f} {size:4} {begin:#07x} {opcode:14} {of.function(begin):14} "
              f"{text[begin]}")
    by_line = Counter()
    for ((_, _, opcode), begin), count in of.by_block.items():
        for at in range(begin, of.blocks[begin].end, 16):
            if at in of.kernel.lines:
                by_line[opcode, of.kernel.lines[at]] += count / of.blocks[begin].size
    if by_line:
        print("by line of the source")
    for (opcode, line), count in by_line.most_common(most):
        print(f"{count:9.0f} {opcode:14} {line}")


def print_comparison(ours, theirs, most):
    """Returns whether an overhead is more than `most`."""
    exceeded = False
    for our in ours:
        for other in (of for of in theirs if of.kernel.gpu == our.kernel.gpu):
            overhead = our.instructions / other.instructions - 1
            too_much = most is not None and overhead > most
            exceeded |= too_much
            print(f"{our.kernel.name} over {other.kernel.name} for {our.kernel.gpu}: {100 * overhead:.1f} % more "
                  f"instructions{f', more than {100 * most:g} %' if too_much else ''}")
    return exceeded


def is_for(kernel, folder):
    """Returns whether a kernel's name has the recording's layout."""
    layouts = {json.loads(file.read_text())["layout"] for file in folder.glob("*.json")} - {""}
    if not (folder / "0.json").exists():
        raise Fault(f"{folder} has no recording")
    return all(re.search(f"_{layout}(_|$)", kernel.name, re.IGNORECASE) for layout in layouts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, metavar="RECORDING")
    parser.add_argument("objects", nargs="+", metavar="OBJECT")
    parser.add_argument("--kernel", metavar="REGEX", default="^forestvm_phase_")
    parser.add_argument("--gpu", action="append", help="default: sm_90")
    parser.add_argument("--compare", metavar="REGEX")
    parser.add_argument("--most", type=float, metavar="X")
    parser.add_argument("--at-most", type=float, metavar="N")
    parser.add_argument("--interpreting", type=float, metavar="X")
    parser.add_argument("--profile", type=int, metavar="N")
    options = parser.parse_args()
    if not machine_code.tools_are_there():
        print(machine_code.NO_TOOLS)
        return 0
    ours, theirs = [], []
    try:
        for kernel in machine_code.kernels(options.objects, options.gpu or ["sm_90"]):
            for counts, pattern in ((ours, options.kernel), (theirs, options.compare)):
                if pattern and re.search(pattern, kernel.name) and is_for(kernel, options.recording):
                    counts.append(Count(options.recording, kernel))
    except (Fault, OSError) as why:
        print(f"machine.py: {why}", file=sys.stderr)
        return 1
    if not ours or options.compare and not theirs:
        print("machine.py: there is no such kernel", file=sys.stderr)
        return 1
    print_counts(ours + theirs)
    for of in ours + theirs if options.profile else []:
        print_profile(of, options.profile)
    too_much = bool(options.compare) and print_comparison(ours, theirs, options.most)
    for of in ours if options.interpreting is not None else []:
        print(f"{of.kernel.name} for {of.kernel.gpu}: {100 * of.interpreting():.1f} % of the instructions interpret")
        too_much |= of.interpreting() > options.interpreting
    for of in ours:
        if options.at_most is not None and of.instructions > options.at_most:
            print(f"{of.kernel.name} for {of.kernel.gpu} takes more than {options.at_most:g} instructions")
            too_much = True
    return int(too_much)


if __name__ == "__main__":
    sys.exit(main())
