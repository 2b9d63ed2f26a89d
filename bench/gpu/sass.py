"""The operands of NVIDIA's GPU instructions: translates nvdisasm's text into Python expressions with the names of
opcodes.py, and defines the functions that these expressions use. 32-bit words are numbers from 0 to 2^32 - 1; 64-bit
values are a word and the next one. Arithmetic is exact, as IEEE 754 requires. MUFU.RCP, which may be wrong by a bit on
a GPU, is rounded correctly here: divisions that use it correct its error anyway."""

import re
import struct
from fractions import Fraction

M = 0xFFFFFFFF
NAN = 0x7FFFFFFF


class Unknown(Exception):
    """Raised for an instruction that is not known."""


# --- numbers ---


def bits(number, round_up=False):
    """Returns as a word the float32 nearest to a number or, with `round_up`, the least that is not below it."""
    if isinstance(number, float) and number != number:
        return NAN
    try:
        word, = struct.unpack("<I", struct.pack("<f", number))
    except OverflowError:
        return 0x7F800000 if number > 0 else 0xFF800000
    if round_up and value(word) < number:
        word += 1 if number >= 0 else -1
    return word


def value(word):
    return struct.unpack("<f", struct.pack("<I", word))[0]


def wide_value(low, high):
    return struct.unpack("<d", struct.pack("<II", low, high))[0]


def wide_bits(number):
    return struct.unpack("<Q", struct.pack("<d", number))[0] if number == number else 0xFFF8000000000000


def signed(word):
    return word - (word >> 31 << 32)


def signed64(number):
    return number - (number >> 63 << 64)


def rounded(exact):
    """Returns as a word the float32 nearest to a fraction. Rounding to odd in between prevents double rounding."""
    near = float(exact)
    if Fraction(near) != exact:
        word = wide_bits(near)
        if not word & 1:
            away = (Fraction(near) < exact) == (exact > 0)
            near = struct.unpack("<d", struct.pack("<Q", word + (1 if away else -1)))[0]
    return bits(near)


def fused(a, b, c):
    if any(x != x or x in (float("inf"), float("-inf")) for x in (a, b, c)):
        return bits(a * b + c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return rounded(exact) if exact else bits(a * b + c)


def reciprocal(word):
    x = value(word)
    return bits(1 / x) if x else 0x7F800000 | word & 0x80000000


def whole(number, low, high):
    """Returns a float, truncated to an integer and clamped to a range."""
    if number != number:
        return 0
    return int(min(max(number, low), high)) & ((1 << 64) - 1)


def compare(way, a, b):
    """Compares floats; a comparison that ends in U is also true for NaN."""
    unordered = a != a or b != b
    if way in ("NAN", "NUM"):
        return unordered == (way == "NAN")
    if unordered:
        return way[-1] == "U"
    return {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}[way[:2]]


def permuted(a, selector, c):
    chosen, source = 0, a | c << 32
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = source >> 8 * (nibble & 7) & 0xFF
        chosen |= (0xFF * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return chosen


def by_table(table, a, b, c, full):
    """Applies the bitwise function of three words that a table of eight bits defines."""
    result = 0
    for i in range(8):
        if table >> i & 1:
            result |= (a if i & 4 else a ^ full) & (b if i & 2 else b ^ full) & (c if i & 1 else c ^ full)
    return result


# --- operands ---

PREDICATE = re.compile(r"!?U?P[0-6T]$")
REGISTER = re.compile(r"(U?R)(Z|\d+)$")
CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(?:(U?R(?:Z|\d+)))?\+?(-?0x[0-9a-f]+)?\]$")
ADDRESS = re.compile(
    r"(?:desc\[UR\d+\])?\[(U?R(?:Z|\d+))?(\.64|\.U32|\.X4|\.X8|\.X16)?(?:\+(UR(?:Z|\d+)))?(?:\+?(-?0x[0-9a-f]+))?\]$")
LINE = re.compile(r"(?:@(!?U?P[0-6T])\s+)?([A-Z0-9_]+)((?:\.\w+)*)\s*(.*)$")


def predicate(text):
    name = text.lstrip("!")
    read = "True" if name.endswith("PT") else f"{'q' if name[0] == 'U' else 'p'}[{name[-1]}]"
    return f"(not {read})" if text[0] == "!" else read


class Instruction:
    """An instruction. `constants(bank, offset, bytes)` returns a constant; it raises Unknown if the constant is
    unknown."""

    def __init__(self, address, text, labels, constants):
        self.address, self.text, self.labels, self.constants = address, text, labels, constants
        found = LINE.match(text)
        if not found:
            raise self.unknown()
        self.guard, self.opcode, modifiers, operands = found.groups()
        self.modifiers = modifiers.split(".")[1:]
        operands = re.sub(r"\.reuse\b", "", operands).split(",")
        self.operands = [operand.strip() for operand in operands if operand.strip()]

    def unknown(self, what=None):
        return Unknown(f"{self.address:#x}: {self.text}: {what or 'this instruction is not known'}")

    def only(self, *allowed):
        for modifier in self.modifiers:
            if modifier not in allowed:
                raise self.unknown(f".{modifier} is not known")
        return set(self.modifiers)

    def predicates_behind(self, place):
        """Removes the predicates at an index from the operands."""
        taken = []
        while place < len(self.operands) and PREDICATE.match(self.operands[place]):
            taken.append(self.operands.pop(place))
        return taken

    def register(self, text, pair=0):
        """Returns the name of a register, or with `pair` of the next one."""
        found = REGISTER.match(text)
        if not found:
            raise self.unknown(f"{text} is not a register")
        return None if found[2] == "Z" else f"{'u' if found[1] == 'UR' else 'r'}[{int(found[2]) + pair}]"

    def word(self, text, pair=0):
        """Returns a 32-bit word, or with `pair` the upper word of 64 bits."""
        if found := CONSTANT.match(text):
            bank, index, offset = int(found[1], 16), found[2], int(found[3] or "0", 16) + 4 * pair
            if index and (name := self.register(index)):
                return f"t.constant({bank}, {name} + {offset}, 4)"
            return str(self.constants(bank, offset, 4))
        if re.match(r"-?0x[0-9a-f]+$", text):
            return str(int(text, 16) & M if not pair else (0 if text[0] != "-" else M))
        return self.register(text, pair) or "0"

    def number(self, text):
        """Returns a term of a sum modulo 2^32. It is never negative, so that sums carry as on the GPU."""
        if text[0] == "-" and text[1] != "0":
            return f"(0x100000000 - {self.word(text[1:])})"
        if text[0] == "~":
            return f"({self.word(text[1:])} ^ M)"
        return self.word(text)

    def signed(self, text):
        return f"signed({self.number(text)} & M)"

    def pair(self, text):
        """Returns a 64-bit value."""
        if re.match(r"-?0x[0-9a-f]+$", text):
            return str(int(text, 16) & (1 << 64) - 1)
        if text[0] == "-":
            return f"(0x10000000000000000 - {self.pair(text[1:])})"
        return f"({self.word(text)} | {self.word(text, 1)} << 32)"

    def signed_float(self, text, read):
        sign, inside = ("-", text[1:]) if text[0] == "-" else ("", text)
        if inside[0] == "|":
            return f"{sign}abs({read(inside.strip('|'))})"
        return f"{sign}{read(inside)}"

    def float(self, text):
        if re.match(r"[-+]?(\d[\d.]*(e[-+]\d+)?|INF|QNAN)\s*$", text):
            return f"value({bits(float(text.replace('QNAN', 'nan')))})"
        return self.signed_float(text, lambda inside: f"value({self.word(inside)})")

    def wide_float(self, text):
        if re.match(r"[-+]?(\d[\d.]*(e[-+]\d+)?|INF|QNAN)\s*$", text):
            return f"float('{text.strip().replace('QNAN', 'nan')}')"
        return self.signed_float(text, lambda inside: f"wide_value({self.word(inside)}, {self.word(inside, 1)})")

    def to(self, text, expression):
        """Returns the statement that sets a register."""
        name = self.register(text)
        return [f"{name} = {expression}"] if name else []

    def to_pair(self, text, expression):
        if not self.register(text):
            return []
        return [f"x = {expression}", f"{self.register(text)} = x & M", f"{self.register(text, 1)} = x >> 32 & M"]

    def to_predicate(self, text, expression):
        return [] if text.endswith("PT") else [f"{predicate(text)} = {expression}"]

    def operand_address(self, text, wide):
        """Returns the address in brackets: 64 bits in two registers, or 32 bits."""
        found = ADDRESS.match(text)
        if not found:
            raise self.unknown(f"the address {text} is not known")
        name, how, uniform, offset = found.groups()
        terms = [str(int(offset or "0", 16))]
        if how and how.startswith(".X"):
            terms.append(f"{self.word(name)} * {how[2:]}")
        elif name and self.register(name):
            terms.append(self.pair(name) if wide and how != ".U32" else self.word(name))
        if uniform and self.register(uniform):
            terms.append(self.pair(uniform) if wide else self.word(uniform))
        return f"({' + '.join(terms)}) & {'0xFFFFFFFFFFFFFFFF' if wide else 'M'}"

    def target(self):
        found = re.match(r"`\(([^)]+)\)$", self.operands[-1])
        if not found or found[1] not in self.labels:
            raise self.unknown("the target is not known")
        return self.labels[found[1]]
