#!/usr/bin/env python3
"""Runs kernels' machine code without a GPU, and counts the instructions that it takes: machine.py RECORDING OBJECT… -> a
table. RECORDING is a folder that record.cpp wrote (a call on the emulator), OBJECT an object file or library with CUDA
machine code; see machine_code.py for the tools that read it.

Each thread of a launch runs by itself, from barrier to barrier, on the recorded memory; what the memory holds afterwards
must be what the emulator left there, bit for bit. A thread that reads or writes beside the memory that is there, or where
its address is not aligned, ends the run, as does an instruction that sass.py does not know. Instructions that need a warp
(shuffles, votes) are such.

A warp's count is, for each basic block, the most that one of its lanes ran it, added up: the instructions that a GPU issues
for the warp, whether a predicate keeps them from doing anything or not. That is exact where all lanes take the same way
(`lanes` says whether they do), and where lanes that part meet again before they run a block twice. A warp's count below is
the mean of all warps'.

--compare REGEX: kernels whose names match it are compared with those that match --kernel: overhead = instructions of these /
of those - 1. --most X: fails if an overhead is more, or if there is none.
--profile N: prints the N basic blocks that take the most, by the opcode of the interpreter that they ran for.
"""

import argparse
import bisect
import json
import re
import sys
from collections import Counter
from pathlib import Path

import instructions
import machine_code
import sass

WARP = 32
POISON = 0xFF
LOCAL_BYTES = 1 << 14

# Where memory lies that has no address of the recording: in upper halves of addresses that no host has.
SHARED, LOCAL, PARAMETERS, GLOBALS = (which << 48 for which in (1, 2, 3, 4))

# Words of constant bank 0 below the parameters, by GPU: what the driver puts there, and where. `bank`: the address that the
# bank itself has, `memory`: how caches treat what is loaded.
OLD = dict(block=0x0, grid=0xC, shared=0x18, local=0x20, stack=0x28, bank=0x40, memory=0x118)
NEW = dict(local=0x2F8, parameters=0x348, memory=0x358, block=0x360, stack=0x37C)
DRIVER = {
    "sm_75": OLD,
    "sm_80": OLD,
    "sm_90": dict(block=0x0, grid=0xC, local=0x20, stack=0x28, parameters=0x198, memory=0x208),
    "sm_100": NEW,
    "sm_120": NEW,
}


class Fault(Exception):
    """What a GPU does not do either, or what this machine cannot do."""


class Memory:
    """Regions of bytes by their addresses."""

    def __init__(self):
        self.begins, self.regions, self.last = [], [], (0, 0, b"")

    def add(self, begin, data):
        at = bisect.bisect(self.begins, begin)
        self.begins.insert(at, begin)
        self.regions.insert(at, (begin, begin + len(data), data))

    def find(self, address, size):
        begin, end, data = self.last
        if not begin <= address <= address + size <= end:
            at = bisect.bisect(self.begins, address) - 1
            begin, end, data = self.regions[at] if at >= 0 else (0, 0, b"")
            if not begin <= address <= address + size <= end:
                raise Fault(f"{size} bytes at {address:#x} are not in the device's memory")
            self.last = begin, end, data
        if address % size:
            raise Fault(f"{size} bytes at {address:#x} are not aligned")
        return data, address - begin


def load(data, at, size):
    if at + size > len(data) or at < 0:
        raise Fault(f"{size} bytes at {at:#x} of {len(data)}")
    if at % size:
        raise Fault(f"{size} bytes at {at:#x} are not aligned")
    return int.from_bytes(data[at : at + size], "little")


def store(data, at, size, number):
    if at + size > len(data) or at < 0:
        raise Fault(f"{size} bytes at {at:#x} of {len(data)}")
    if at % size:
        raise Fault(f"{size} bytes at {at:#x} are not aligned")
    data[at : at + size] = number.to_bytes(size, "little")


class Thread:
    """What statements of sass.py name `t`."""

    def __init__(self, launch, shared, block, number):
        self.launch, self.shared, self.block, self.number = launch, shared, block, number
        self.special = dict(SR_SWINHI=SHARED >> 32, SR_CgaCtaId=0)
        for name, place in (("CTAID", block), ("TID", number)):
            self.special.update((f"SR_{name}.{axis}", place[d]) for d, axis in enumerate("XYZ"))
        self.local = bytearray([POISON]) * LOCAL_BYTES
        self.r, self.u, self.p, self.q = [0xFFFFFFFF] * 256, [0xFFFFFFFF] * 64, [False] * 7, [False] * 7
        self.at, self.doing, self.counts = 0, None, Counter()

    def constant(self, bank, offset, size):
        launch = self.launch
        if bank == 0 and offset >= launch.first_op and not (offset - launch.first_op) % 16 and offset < launch.last_op:
            self.doing = (offset - launch.first_op) // 16
        return launch.constant(bank, offset, size)

    def global_load(self, address, size):
        data, at = self.launch.memory.find(address, size)
        return int.from_bytes(data[at : at + size], "little")

    def global_store(self, address, size, number):
        data, at = self.launch.memory.find(address, size)
        if isinstance(data, bytes):
            raise Fault(f"{address:#x} is written to and constant")
        data[at : at + size] = number.to_bytes(size, "little")

    def shared_load(self, at, size):
        return load(self.shared, at, size)

    def shared_store(self, at, size, number):
        store(self.shared, at, size, number)

    def local_load(self, at, size):
        return load(self.local, at, size)

    def local_store(self, at, size, number):
        store(self.local, at, size, number)

    def window(self, address):
        """-> the memory that a generic address is in, if it has none of its own."""
        return {SHARED >> 32: self.shared, LOCAL >> 32: self.local}.get(address >> 32)

    def generic_load(self, address, size):
        data = self.window(address)
        return self.global_load(address, size) if data is None else load(data, address & sass.M, size)

    def generic_store(self, address, size, number):
        data = self.window(address)
        if data is None:
            self.global_store(address, size, number)
        else:
            store(data, address & sass.M, size, number)


class Block:
    """A basic block, compiled: `run(r, u, p, q, t)` returns the address of the next one, that of a barrier's next inverted, or
    None at the thread's end."""

    def __init__(self, begin, end, run):
        self.begin, self.end, self.run = begin, end, run
        self.size = (end - begin) // 16


class Launch:
    """One recorded launch of one kernel."""

    def __init__(self, folder, number, kernel):
        self.kernel = kernel
        description = json.loads((folder / f"{number}.json").read_text())
        self.grid, self.block = description["extent"][:3], description["extent"][3:]
        self.shared_bytes = description["shared_bytes"]
        self.code = description["code"]
        before, self.expected = ((folder / f"{number}.{when}").read_bytes() for when in ("before", "after"))
        argument = (folder / f"{number}.argument").read_bytes()
        self.memory = Memory()
        self.allocations = []
        for begin, size in description["memory"]:
            self.allocations.append((begin, bytearray(before[:size])))
            before = before[size:]
            self.memory.add(*self.allocations[-1])
        self.memory.add(PARAMETERS, argument)
        self.banks = self.constant_banks(argument)
        base, _ = kernel.image.parameters(kernel.name)
        self.first_op = base + description["code_offset"]
        self.last_op = self.first_op + 16 * len(self.code)
        self.text = dict(kernel.instructions)
        self.leaders = set(kernel.labels.values())
        # The interpreter reads an opcode where a block begins, so that blocks belong to instructions of the program.
        self.leaders.update(address for address, text in kernel.instructions
                            if f"+{self.first_op:#x}]" in text and re.search(r"\bU?LDCU?\b", text))
        self.blocks = {}

    def constant_banks(self, argument):
        image, name = self.kernel.image, self.kernel.name
        if self.kernel.gpu not in DRIVER:
            raise Fault(f"the constants that the driver gives kernels of {self.kernel.gpu} are not known")
        driver = DRIVER[self.kernel.gpu]
        base, size = image.parameters(name)
        if size != len(argument):
            raise Fault(f"{name} takes {size} bytes, the recording has {len(argument)}")
        known = {base + i: byte for i, byte in enumerate(argument)}
        values = dict(block=self.block, grid=self.grid, stack=[LOCAL_BYTES], shared=[0, SHARED >> 32], local=[0, LOCAL >> 32],
                      parameters=[0, PARAMETERS >> 32], bank=[PARAMETERS - base & sass.M, PARAMETERS - base >> 32],
                      memory=[0, 0])
        for word, offset in driver.items():
            known.update(enumerate(b"".join(number.to_bytes(4, "little") for number in values[word]), offset))
        banks = {0: known}
        places = {}
        for section in (".nv.global", ".nv.global.init"):
            if image.size(section):
                places[section] = GLOBALS + (len(places) << 32)
                self.memory.add(places[section], bytearray(image.bytes(section)))
        for bank in (1, 2, 3, 4):
            for section in (f".nv.constant{bank}", f".nv.constant{bank}.{name}"):
                data = bytearray(image.bytes(section))
                for offset, kind, of, number in image.relocations(section):
                    if kind != 2 or of not in places:  # R_CUDA_64
                        raise Fault(f"{section} has a relocation of kind {kind} into {of}")
                    data[offset : offset + 8] = (places[of] + number).to_bytes(8, "little")
                if data:
                    banks[bank] = dict(enumerate(data))
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
            lines += [f"  {line}" for line in sass.statements(at, text, self.kernel.labels, self.constant)]
            at += 16
            if sass.ends_block(text) or at in self.leaders:
                break
        lines.append(f"  return {at}")
        scope = dict(vars(sass))
        exec("\n".join(lines), scope)
        block = self.blocks[begin] = Block(begin, at, scope["run"])
        return block

    def run_thread(self, thread):
        """To its next barrier; -> whether there is one."""
        at, blocks, counts = thread.at, self.blocks, thread.counts
        r, u, p, q = thread.r, thread.u, thread.p, thread.q
        while True:
            block = blocks.get(at) or self.compile(at)
            try:
                at = block.run(r, u, p, q, thread)
            except (Fault, sass.Unknown) as why:
                raise Fault(f"{self.kernel.name} for {self.kernel.gpu}, thread {thread.number} of block {thread.block}, "
                            f"{block.begin:#x} to {block.end:#x}: {why}") from None
            counts[thread.doing, block.begin] += 1
            if at is None:
                return False
            if at < 0:
                thread.at = ~at
                return True

    def run(self):
        """-> the counts of each warp: {(instruction of the program, block): times}, and whether its lanes differ."""
        static = self.kernel.image.size(f".nv.shared.{self.kernel.name}")
        warps = []
        for block in points(self.grid):
            shared = bytearray([POISON]) * (static + self.shared_bytes)
            threads = [Thread(self, shared, block, number) for number in points(self.block)]
            waiting = threads
            while waiting:
                came = [self.run_thread(thread) for thread in waiting]
                if any(came) and not all(came):
                    raise Fault("a thread ended and others wait for it at a barrier")
                waiting = waiting if came[0] else []
            for first in range(0, len(threads), WARP):
                lanes = [thread.counts for thread in threads[first : first + WARP]]
                most = Counter()
                for lane in lanes:
                    most |= lane
                warps.append((most, any(lane != most for lane in lanes)))
        self.check()
        return warps

    def check(self):
        """That the memory is as the emulator left it."""
        at = 0
        for begin, data in self.allocations:
            expected = self.expected[at : at + len(data)]
            at += len(data)
            wrong = [i for i, (a, b) in enumerate(zip(data, expected)) if a != b] if data != expected else []
            if wrong:
                raise Fault(f"{self.kernel.name} for {self.kernel.gpu}: {len(wrong)} of the {len(data)} bytes at {begin:#x} "
                            f"differ from the emulator's, first number {wrong[0]}")


def points(extent):
    return [(x, y, z) for z in range(extent[2]) for y in range(extent[1]) for x in range(extent[0])]


class Count:
    """Of a kernel: means of its warps, of all launches of a recording."""

    def __init__(self, kernel, launches):
        self.kernel = kernel
        self.by_block = Counter()  # (opcode that it ran for, block) -> instructions
        self.visits, self.in_loops, self.parted = 0, 0, False
        loops = list(walk_loops(kernel))
        for launch, warps in launches:
            for most, parted in warps:
                self.parted |= parted
                for (doing, begin), times in most.items():
                    block = launch.blocks[begin]
                    opcode = launch.code[doing] if doing is not None else "-"
                    self.by_block[opcode, doing, block.begin, block.end] += times * block.size / len(warps)
                    for first, last, visit in loops:
                        if first <= begin <= last:
                            self.in_loops += times * block.size / len(warps)
                            self.visits += times / len(warps) * sum(
                                1 for at in range(block.begin, block.end, 16) if visit.search(launch.text[at]))
        self.instructions = sum(self.by_block.values())


def walk_loops(kernel):
    """-> (first address, last address, what its visits load) of the inner loops that compare what they load: a value of a row
    from shared memory, or, where rows lie elsewhere, a node."""
    for first, last in kernel.inner_loops():
        loop = kernel.instructions[first : last + 1]
        loads = [text for _, text in loop if re.search(r"\bLD[SG]\b", text)]
        values = [text for text in loads if instructions.VALUE.search(text)]
        if len(loads) > len(values) and any(re.search(r"\bFSETP\b", text) for _, text in loop):
            yield loop[0][0], loop[-1][0], instructions.VALUE if values else instructions.NODE


def is_for(kernel, folder):
    """Whether a kernel's name has the recording's layout."""
    layouts = {json.loads(file.read_text())["layout"] for file in folder.glob("*.json")} - {""}
    return all(re.search(f"_{layout}(_|$)", kernel.name, re.IGNORECASE) for layout in layouts)


def count(folder, kernel):
    launches = [Launch(folder, number, kernel) for number in range(len(list(folder.glob("*.json"))))]
    return Count(kernel, [(launch, launch.run()) for launch in launches])


def print_counts(counts):
    print(f"{'kernel':32} {'for':7} {'instructions of a warp':>22} {'in walk loops':>14} {'visits':>7} {'per visit':>10} lanes")
    for of in counts:
        per_visit = f"{of.instructions / of.visits:.2f}" if of.visits else "-"
        print(f"{of.kernel.name:32} {of.kernel.gpu:7} {of.instructions:22.0f} {of.in_loops:14.0f} {of.visits:7.0f} "
              f"{per_visit:>10} {'part' if of.parted else 'together'}")


def print_profile(of, most):
    opcodes = Counter()
    for (opcode, doing, _, _), number in of.by_block.items():
        opcodes[doing if doing is not None else -1, opcode] += number
    print(f"\n{of.kernel.name} for {of.kernel.gpu}: instructions of a warp by instruction of the program")
    for (doing, opcode), number in sorted(opcodes.items()):
        print(f"  {doing if doing >= 0 else '':>3} {opcode:14} {number:10.0f}")
    print("by basic block")
    text = dict(of.kernel.instructions)
    for (opcode, doing, begin, end), number in of.by_block.most_common(most):
        length = (end - begin) // 16
        print(f"  {number:8.0f} = {number / length:6.1f} x {length:3} {begin:#07x} {opcode:14} {text[begin]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("objects", nargs="+", metavar="OBJECT")
    parser.add_argument("--kernel", default="forestvm_phase_")
    parser.add_argument("--gpu", action="append", help="default: sm_90")
    parser.add_argument("--compare", metavar="REGEX")
    parser.add_argument("--most", type=float)
    parser.add_argument("--profile", type=int, metavar="N")
    options = parser.parse_args()
    if not machine_code.tools_are_there():
        print(machine_code.NO_TOOLS)
        return 0
    ours, theirs = [], []
    try:
        for kernel in machine_code.kernels(options.objects, options.gpu or ["sm_90"]):
            for into, pattern in ((ours, options.kernel), (theirs, options.compare)):
                if pattern and re.search(pattern, kernel.name) and is_for(kernel, options.recording):
                    into.append(count(options.recording, kernel))
    except (Fault, OSError) as why:
        print(f"machine.py: {why}", file=sys.stderr)
        return 1
    if not ours or options.compare and not theirs:
        print("machine.py: there is no such kernel", file=sys.stderr)
        return 1
    print_counts(ours + theirs)
    for of in (ours + theirs) if options.profile else []:
        print_profile(of, options.profile)
    return compared(ours, theirs, options.most) if options.compare else 0


def compared(ours, theirs, most):
    """-> the exit code: whether an overhead is more than `most`."""
    exceeded = False
    for our in ours:
        for other in (of for of in theirs if of.kernel.gpu == our.kernel.gpu):
            overhead = our.instructions / other.instructions - 1
            too_much = most is not None and overhead > most
            exceeded |= too_much
            print(f"{our.kernel.name} over {other.kernel.name} for {our.kernel.gpu}: {100 * overhead:.1f} % more instructions"
                  + (f", more than {100 * most:g} %" if too_much else ""))
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
