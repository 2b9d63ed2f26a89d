"""Kernels in object files and libraries with CUDA machine code: their instructions, as nvdisasm prints them, and their
other sections. cuobjdump and nvdisasm (CUDA's, or PyPI's nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm) are looked for
in PATH and, both together, in the folder that CUDA_TOOLS names."""

import os
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

NO_TOOLS = "skipped: cuobjdump and nvdisasm are not there (PyPI: nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm)"
SECTION = re.compile(r"^\s*\.section\s+\.text\.(\w+),")
LABEL = re.compile(r"^([.$\w]+):")
LINE = re.compile(r'^\s*//## File "([^"]+)", line (\d+)')
NOTE = re.compile(r'\s*\(\*".*?"\*\)')  # says something about an instruction, such as SpillRefill
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,6})\*/\s+(.*?)\s*;")
TARGET = re.compile(r"`\(([^)]+)\)")


def tool(name):
    folder = os.environ.get("CUDA_TOOLS")
    return shutil.which(name, path=folder) if folder else shutil.which(name)


def tools_are_there():
    return bool(tool("cuobjdump") and tool("nvdisasm"))


class Kernel:
    """`instructions`: (address, text), from address 0 on; `labels`: their addresses; `lines`: {address: "file:line"},
    if the file was compiled with -lineinfo; `image`: the ELF file."""

    def __init__(self, name, gpu, image=None):
        self.name, self.gpu, self.image = name, gpu, image
        self.instructions, self.labels, self.lines = [], {}, {}

    def inner_loops(self):
        """Returns (first, last) of each loop that contains no other, as indices of `instructions`."""
        places = {address: place for place, (address, _) in enumerate(self.instructions)}
        loops = []
        for last, (_, text) in enumerate(self.instructions):
            found = TARGET.search(text)
            if found and re.search(r"\bBRA\b", text):
                first = places.get(self.labels.get(found[1]), len(places))
                if first <= last:
                    loops.append((first, last))
        for first, last in loops:
            if not any((f, l) != (first, last) and first <= f and l <= last for f, l in loops):
                yield first, last


def parse(listing, gpu, image=None):
    """Returns the kernels of nvdisasm's listing."""
    found_kernels, waiting, source = [], [], None
    for line in listing.splitlines():
        if found := SECTION.match(line):
            found_kernels.append(Kernel(found[1], gpu, image))
            source = None
        elif found := LABEL.match(line):
            waiting.append(found[1])
        elif found := LINE.match(line):
            source = f"{Path(found[1]).name}:{found[2]}"
        elif (found := INSTRUCTION.match(line)) and found_kernels:
            kernel, address = found_kernels[-1], int(found[1], 16)
            kernel.labels.update((label, address) for label in waiting)
            waiting.clear()
            kernel.instructions.append((address, NOTE.sub("", found[2])))
            if source:
                kernel.lines[address] = source
    return found_kernels


def gpus(path):
    """Returns the GPUs for which a file has machine code, as numbers: {80, 90}. Reads the headers that nvcc writes
    before each GPU's code, so that no tool is needed."""
    data, found, at = Path(path).read_bytes(), set(), 0
    while (at := data.find(struct.pack("<IHH", 0xBA55ED50, 1, 16), at)) >= 0:
        end = at + 16 + struct.unpack_from("<Q", data, at + 8)[0]
        at += 16
        while at < end:
            kind, _, header, size = struct.unpack_from("<HHIQ", data, at)
            if kind == 2:  # machine code; 1 is PTX
                found.add(struct.unpack_from("<I", data, at + 28)[0])
            at += header + size
    return found


def kernels(objects, gpus=None):
    """Yields every kernel of the objects, or the kernels for some GPUs."""
    for path in objects:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([tool("cuobjdump"), "-xelf", "all", str(Path(path).resolve())], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)
            for code in sorted(Path(folder).iterdir()):
                gpu = re.search(r"sm_\d+", code.name)
                if not gpu or (gpus and gpu[0] not in gpus):
                    continue
                disassemble = [tool("nvdisasm"), "-c", "-g", str(code)]
                listing = subprocess.run(disassemble, check=True, capture_output=True, text=True).stdout
                yield from parse(listing, gpu[0], Image(code.read_bytes()))


class Image:
    """An ELF file for one GPU."""

    def __init__(self, data):
        self.data = data
        offset, = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
        text = headers[names][4]
        self.order = [self.text(text + header[0]) for header in headers]
        self.sections = dict(zip(self.order, headers))

    def text(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def size(self, section):
        return self.sections[section][5] if section in self.sections else 0

    def bytes(self, section):
        """Returns a section's bytes; zeros for a section without bytes in the file."""
        if section not in self.sections:
            return b""
        _, kind, _, _, offset, size = self.sections[section][:6]
        return bytes(size) if kind == 8 else self.data[offset : offset + size]

    def parameters(self, kernel):
        """Returns (offset in constant bank 0, bytes) of the kernel's parameters."""
        notes, at = self.bytes(f".nv.info.{kernel}"), 0
        while at < len(notes):
            kind, attribute, size = struct.unpack_from("<BBH", notes, at)
            if (kind, attribute) == (4, 0x0A):  # EIATTR_PARAM_CBANK
                return struct.unpack_from("<HH", notes, at + 8)
            at += 4 + (size if kind == 4 else 0)
        raise ValueError(f"{kernel} does not say where its parameters are")

    def relocations(self, section):
        """Returns (offset, kind, symbol's section, symbol's value + addend)."""
        for name in (f".rela{section}", f".rel{section}"):
            records, added = self.bytes(name), name.startswith(".rela")
            for at in range(0, len(records), 24 if added else 16):
                offset, info = struct.unpack_from("<QQ", records, at)
                _, _, _, index, value, _ = struct.unpack_from(
                    "<IBBHQQ", self.data, self.sections[".symtab"][4] + 24 * (info >> 32))
                addend = struct.unpack_from("<q", records, at + 16)[0] if added else 0
                yield offset, info & 0xFFFFFFFF, self.order[index], value + addend
