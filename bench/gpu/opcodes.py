"""NVIDIA's GPU instructions in Python: translates a line of nvdisasm's listing into statements that do the same for one
thread. The thread is t; its registers are the lists r (vector), u (uniform), p and q (their predicates). An unknown
opcode, modifier or operand becomes a statement that raises Unknown: nothing is guessed."""

import re
import struct

from sass import CONSTANT, LINE, PREDICATE, REGISTER, Instruction, M, Unknown, bits, predicate

NEEDS_WARP = "what it needs of its warp is not known"
MEETING = 1 << 40  # added to the address behind an instruction that all lanes of a warp must reach

# --- Instruction -> statements ---


def nothing(i):
    """Does nothing, in place of instructions that wait for other threads of the warp."""
    if "COLLECTIVE" in i.modifiers:
        raise i.unknown(NEEDS_WARP)
    return i.to(i.operands[0], "0") if i.opcode == "BMOV" and REGISTER.match(i.operands[0]) else []


def vote(i):
    """Returns the active lanes for VOTE.ANY of a true predicate. Other votes need the whole warp."""
    if i.modifiers != ["ANY"] or len(i.operands) != 3 or i.operands[-1] != "PT" or not i.operands[1].endswith("PT"):
        raise i.unknown(NEEDS_WARP)
    return i.to(i.operands[0], "t.lanes")


def sum_of(i):
    if "64" in i.modifiers:
        return wide_sum(i)
    i.only("X")
    carries = i.predicates_behind(1)
    carries = [out for out in carries if not out.endswith("PT")]
    terms = [i.number(text) for text in i.operands[1:] if not PREDICATE.match(text)]
    inward = [predicate(text) for text in i.operands[1:] if PREDICATE.match(text)]
    if inward and "X" not in i.modifiers:
        raise i.unknown()
    lines = [f"x = {' + '.join(terms + inward)}"]
    for least, carry in enumerate(carries, 1):
        lines += i.to_predicate(carry, f"x >> 32 >= {least}")
    return lines + i.to(i.operands[0], "x & M")


def product(i):
    how = i.only("MOV", "SHL", "IADD", "U32", "X", "WIDE", "HI")
    carries = [out for out in i.predicates_behind(1) if not out.endswith("PT")]
    into, a, b, c, *inward = i.operands
    if inward and "X" not in how or len(inward) > 1:
        raise i.unknown()
    if not how & {"WIDE", "HI"}:
        if carries:
            raise i.unknown("what it carries is not known")
        terms = [f"{i.number(a)} * {i.number(b)}", i.number(c), *map(predicate, inward)]
        return i.to(into, f"({' + '.join(terms)}) & M")
    read = i.word if "U32" in how else i.signed
    lines = [f"y = ({read(a)} * {read(b)} & 0xFFFFFFFFFFFFFFFF) + {' + '.join([i.pair(c), *map(predicate, inward)])}"]
    for carry in carries:
        lines += i.to_predicate(carry, "y >> 64 != 0")
    return lines + (i.to(into, "y >> 32 & M") if "HI" in how else i.to_pair(into, "y"))


def integer_test(i):
    how = i.only("EQ", "NE", "LT", "LE", "GT", "GE", "U32", "S64", "U64", "AND", "OR", "XOR", "EX")
    sign = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}[i.modifiers[0]]
    into, inverse, a, b, with_that, *below = i.operands
    read = {"U32": i.word, "U64": i.pair, "S64": lambda text: f"signed64{i.pair(text)}"}
    a, b = (next((read[size] for size in read if size in how), i.signed)(text) for text in (a, b))
    test = f"{a} {sign} {b}"
    if "EX" in how:  # the upper word of 64 bits
        join = {"==": f"{test} and", "!=": f"{test} or"}.get(sign, f"{a} {sign[0]} {b} or {a} == {b} and")
        test = f"{join} {predicate(below[0])}"
    return joined_test(i, test, into, inverse, with_that, how)


def joined_test(i, test, into, inverse, with_that, how):
    join = {"AND": "and", "OR": "or", "XOR": "!="}[next(iter(how & {"AND", "OR", "XOR"}))]
    lines = [f"x, y = bool({test}), {predicate(with_that)}"]
    return lines + i.to_predicate(into, f"x {join} y") + i.to_predicate(inverse, f"(not x) {join} y")


WAYS = [way + unordered for way in ("EQ", "NE", "LT", "LE", "GT", "GE") for unordered in ("", "U")] + ["NAN", "NUM"]


def float_test(read):
    def make(i):
        how = i.only(*WAYS, "AND", "OR", "XOR")
        into, inverse, a, b, with_that = i.operands
        test = f"compare('{i.modifiers[0]}', {read(i, a)}, {read(i, b)})"
        return joined_test(i, test, into, inverse, with_that, how)

    return make


def bitwise(i):
    join = "and" if "PAND" in i.only("LUT", "PAND") else "or"
    out = i.predicates_behind(0)
    into, a, b, c, table, inward = i.operands
    table = int(table, 16)
    short = {0xC0: "{0} & {1}", 0xFC: "{0} | {1}", 0x3C: "{0} ^ {1}"}
    form = short.get(table, f"by_table({table}, {{0}}, {{1}}, {{2}}, M)")
    lines = [f"x = {form.format(*map(i.number, (a, b, c)))}"]
    for text in out:
        lines += i.to_predicate(text, f"x != 0 {join} {predicate(inward)}")
    return lines + i.to(into, "x")


def predicate_bitwise(i):
    i.only("LUT")
    into, other, a, b, c, table, other_table = i.operands
    read = ", ".join(predicate(text) for text in (a, b, c))
    lines = [f"x, y = (bool(by_table(table, {read}, True)) for table in ({table}, {other_table}))"]
    return lines + i.to_predicate(into, "x") + i.to_predicate(other, "y")


def choice(read):
    def make(i):
        i.only()
        into, a, b, which = i.operands
        return i.to(into, f"{read(i, a)} if {predicate(which)} else {read(i, b)}")

    return make


def sign_changed(i, text):
    """Returns the expression of a float operand as a word. Only its sign may be changed."""
    if re.match(r"[-+]?(\d|INF|QNAN)", text) and not text.startswith("0x"):
        return str(bits(float(text.replace("QNAN", "nan"))))
    sign, inside = ("- ", text[1:]) if text[0] == "-" else ("", text)
    read = i.word(inside.strip("|"))
    if inside[0] == "|":
        read = f"({read} & 0x7FFFFFFF)"
    return f"{read} ^ 0x80000000" if sign else read


def shift(i):
    how = i.only("L", "R", "W", "U32", "S32", "U64", "S64", "HI")
    into, a, by, c = i.operands
    most = 31 if "W" in how else 63 if how & {"U64", "S64"} else 32
    by = f"({i.word(by)} & 31)" if "W" in how else f"min({i.word(by)}, {most})"
    whole_text = f"({i.word(a)} | {i.word(c)} << 32)"
    if how & {"S32", "S64"}:
        whole_text = f"signed64{whole_text}"
    shifted = f"({whole_text} {'<<' if 'L' in how else '>>'} {by})"
    return i.to(into, f"{shifted} >> 32 & M" if "HI" in how else f"{shifted} & M")


def scaled_sum(i):
    how = i.only("HI", "X", "SX32")
    carries = [out for out in i.predicates_behind(1) if not out.endswith("PT")]
    into, a, b, *rest = i.operands
    inward = [rest.pop()] if "X" in how else []
    by = int(rest.pop(), 16)
    if "HI" in how:
        upper = f"({i.word(a)} >> 31) * M" if "SX32" in how else i.word(rest.pop())
        scaled = f"(({i.number(a)} & M | ({upper}) << 32) >> {32 - by} & M)"
    else:
        scaled = f"(({i.number(a)} & M) << {by} & M)"
    if rest or "SX32" in how and "HI" not in how:
        raise i.unknown()
    lines = [f"x = {' + '.join([scaled, i.number(b), *map(predicate, inward)])}"]
    for carry in carries:
        lines += i.to_predicate(carry, "x >> 32 != 0")
    return lines + i.to(into, "x & M")


def least_or_most(i):
    how = i.only("U32")
    into, *terms, is_least = i.operands
    terms = [text for text in terms if text != "PT"]
    read = i.number if "U32" in how else i.signed
    first, last = [f"{i.number(text)}" for text in terms[:-1]], read(terms[-1])
    left = f"({' + '.join(first)} & M)"
    left = left if "U32" in how else f"signed{left}"
    return i.to(into, f"(min if {predicate(is_least)} else max)({left}, {last}) & M")


def moved(i):
    i.only("U32", "64")
    if len(i.operands) != 2:
        raise i.unknown()
    into, a = i.operands
    return i.to_pair(into, i.pair(a)) if "64" in i.modifiers else i.to(into, f"{i.number(a)} & M")


def special(i):
    i.only("32")
    into, name = i.operands
    if name == "SRZ":
        return i.to_pair(into, "0") if (i.opcode, i.modifiers) == ("CS2R", []) else i.to(into, "0")
    return i.to(into, f"t.special['{name}']")


def to_predicates(i):
    i.only()
    _, a, mask = i.operands
    return [f"x = {i.word(a)}"] + [f"p[{bit}] = bool(x >> {bit} & 1)" for bit in range(7) if int(mask, 16) >> bit & 1]


def from_predicates(i):
    i.only()
    into, _, a, mask = i.operands
    mask = int(mask, 16)
    taken = " | ".join(f"p[{bit}] << {bit}" for bit in range(7) if mask >> bit & 1)
    return i.to(into, f"{i.word(a)} & {M ^ mask} | {taken or 0}")


def sign_extension(i):
    i.only()
    into, a, size = i.operands
    low = f"({i.word(a)} & {(1 << int(size, 16)) - 1})"
    return i.to(into, f"{low} - ({low} >> {int(size, 16) - 1} << {int(size, 16)}) & M")


def bits_that_are_set(i):
    i.only()
    into, a = i.operands
    return i.to(into, f"({i.number(a)} & M).bit_count()")


def wide_sum(i):
    i.only("64")
    into, *terms = [text for text in i.operands if not text.endswith("PT")]
    return i.to_pair(into, " + ".join(map(i.pair, terms)))


def half_constant(i):
    """Multiplies zeros and adds two half floats, by which compilers set a register to a constant."""
    i.only("MMA")
    into, *factors, high, low = i.operands
    if factors != ["-RZ", "RZ"]:
        raise i.unknown()
    return i.to(into, str(struct.unpack("<I", struct.pack("<ee", float(low), float(high)))[0]))


def permutation(i):
    i.only()
    into, a, selector, c = i.operands
    return i.to(into, f"permuted({i.word(a)}, {i.word(selector)}, {i.word(c)})")


def float_sum(i):
    i.only()
    into, a, b = i.operands
    return i.to(into, f"bits({i.float(a)} + {i.float(b)})")


def float_product(i):
    i.only()
    into, a, b = i.operands
    return i.to(into, f"bits({i.float(a)} * {i.float(b)})")


def fused_product(i):
    i.only()
    into, *terms = i.operands
    return i.to(into, f"fused({', '.join(map(i.float, terms))})")


def wide_float_sum(i):
    i.only()
    into, a, b = i.operands
    return i.to_pair(into, f"wide_bits({i.wide_float(a)} + {i.wide_float(b)})")


def wide_float_product(i):
    i.only()
    into, a, b = i.operands
    return i.to_pair(into, f"wide_bits({i.wide_float(a)} * {i.wide_float(b)})")


def float_to_float(i):
    into, a = i.operands
    if i.modifiers == ["F32", "F64"]:
        return i.to(into, f"bits({i.wide_float(a)})")
    if i.modifiers == ["F64", "F32"]:
        return i.to_pair(into, f"wide_bits({i.float(a)})")
    raise i.unknown()


def integer_to_float(i):
    how = i.only("U32", "S32", "U64", "S64", "F32", "F64", "RP")
    into, a = i.operands
    wide = bool(how & {"U64", "S64"})
    read = i.pair(a) if wide else i.word(a)
    if not how & {"U32", "U64"}:
        read = f"signed64{read}" if wide else f"signed({read})"
    if "F64" in how:
        return i.to_pair(into, f"wide_bits(float({read}))")
    return i.to(into, f"bits({read}, True)" if "RP" in how else f"rounded(Fraction({read}))")


def float_to_integer(i):
    how = i.only("FTZ", "U32", "S32", "U64", "S64", "F64", "TRUNC", "NTZ")
    if "TRUNC" not in how:
        raise i.unknown("this conversion is not known")
    into, a = i.operands
    size = 64 if how & {"U64", "S64"} else 32
    low, high = (0, (1 << size) - 1) if how & {"U32", "U64"} else (-(1 << size - 1), (1 << size - 1) - 1)
    read = i.wide_float(a) if "F64" in how else i.float(a)
    cut = f"whole({read}, {low}, {high})"
    return i.to_pair(into, cut) if size == 64 else i.to(into, f"{cut} & M")


def by_approximation(i):
    i.only("RCP")
    into, a = i.operands
    return i.to(into, f"reciprocal({sign_changed(i, a)})")


ACCESS = ("E", "SYS", "CONSTANT", "U", "EF", "EL", "LU", "EU", "STRONG", "SM", "GPU", "BYPASS", "LTC64B", "LTC128B",
          "LTC256B")
SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
SPACES = {"G": "global", "L": "local", "S": "shared", "": "generic"}


def access(i):
    """Returns (bytes, space) of a load or store."""
    sizes = [modifier for modifier in i.modifiers if modifier in SIZES]
    i.only(*ACCESS, *SIZES)
    return SIZES[sizes[0]] if sizes else 4, SPACES[i.opcode[2:]]


def load(i):
    size, space = access(i)
    into, at = i.operands
    lines = [f"x = t.{space}_load({i.operand_address(at, space in ('global', 'generic'))}, {size})"]
    if "S8" in i.modifiers or "S16" in i.modifiers:
        lines.append(f"x = (x - (x >> {8 * size - 1} << {8 * size})) & M")
    if not i.register(into):
        return lines
    words = max(size // 4, 1)
    return lines + [f"{i.register(into, word)} = x >> {32 * word} & M" for word in range(words)]


def store(i):
    size, space = access(i)
    at, source = i.operands
    words = [f"{i.word(source, word)} << {32 * word}" for word in range(max(size // 4, 1))]
    text = " | ".join(words)
    if size < 4:
        text = f"{i.word(source)} & {(1 << 8 * size) - 1}"
    return [f"t.{space}_store({i.operand_address(at, space in ('global', 'generic'))}, {size}, {text})"]


def add_atomically(i):
    """Adds in two steps, between which no other thread can come: threads run one after the other."""
    i.only("ADD", "STRONG", "GPU", "E")
    done, into, at, more = i.operands
    if "ADD" not in i.modifiers or done != "PT":
        raise i.unknown()
    space, address = SPACES[i.opcode[4:]], i.operand_address(at, True)
    lines = [f"a = {address}", f"x = t.{space}_load(a, 4)", f"t.{space}_store(a, 4, x + {i.word(more)} & M)"]
    return lines + i.to(into, "x")


def copy(i):
    """Copies to shared memory at once. This is right because no thread may read the copy before it has waited."""
    sizes = [modifier for modifier in i.modifiers if modifier in SIZES]
    i.only(*ACCESS, *SIZES)
    size = SIZES[sizes[0]] if sizes else 4
    to, at = i.operands
    return [f"t.shared_store({i.operand_address(to, False)}, {size}, t.global_load({i.operand_address(at, True)}, {size}))"]


def load_constant(i):
    i.only("U8", "S8", "U16", "S16", "64")
    into, at = i.operands
    found = CONSTANT.match(at)
    if not found or set(i.modifiers) & {"S8", "S16"}:
        raise i.unknown()
    bank, offset, name = int(found[1], 16), int(found[3] or "0", 16), found[2] and i.register(found[2])
    size = SIZES[i.modifiers[0]] if i.modifiers else 4
    read = f"t.constant({bank}, {name} + {offset}, {size})" if name else str(i.constants(bank, offset, size))
    return i.to_pair(into, read) if size == 8 else i.to(into, read)


# --- Instruction -> statements that return what comes next ---


def branch(i):
    i.only("DIV", "U", "CONV")
    if "DIV" in i.modifiers:  # a single thread agrees with its warp
        return []
    if "CONV" in i.modifiers:
        raise i.unknown()
    jump = f"return {i.target()}"
    conditions = [predicate(text) for text in i.operands[:-1] if PREDICATE.match(text)]
    if len(conditions) != len(i.operands) - 1:
        raise i.unknown()
    return [f"if {' and '.join(conditions)}: {jump}"] if conditions else [jump]


def branch_by_register(i):
    i.only()
    found = re.match(r"(U?R\d+)\s+(-?0x[0-9a-f]+)\b", i.operands[0])
    if not found:
        raise i.unknown()
    return [f"return {i.word(found[1])} + {int(found[2], 16)} + {i.address + 16} & M"]


def call(i):
    i.only("REL", "NOINC")
    return [f"return {i.target()}"]


def if_they_hold(i, lines):
    """Returns the lines for an instruction whose first operands are predicates that must hold, too."""
    held = [predicate(text) for text in i.predicates_behind(0)]
    return [f"if {' and '.join(held)}:", *(f"  {line}" for line in lines)] if held else lines


def back(i):
    i.only("REL", "NODEC")
    name = i.operands[-1].split()[0]
    return if_they_hold(i, [f"return {i.word(name)}"])


def leave(i):
    i.only()
    return if_they_hold(i, ["return None"])


def barrier(i):
    i.only("SYNC", "DEFER_BLOCKING")
    if i.operands != ["0x0"]:
        raise i.unknown()
    return [f"return ~{i.address + 16}"]


def meeting(i):
    """Stops the thread until all lanes of its warp are there. Sets t.asks to the operation, its words, and the register
    for the answer."""
    what = ".".join([i.opcode, *i.modifiers])
    if what == "SHFL.DOWN" and i.operands[0] == "PT" and i.operands[4] == "0x1f":
        _, into, *words, _ = i.operands
    elif what in ("MATCH.ANY", "REDUX.OR"):
        into, *words = i.operands
    else:
        raise i.unknown(NEEDS_WARP)
    found = REGISTER.match(into)
    to = f"{'u' if found[1] == 'UR' else 'r'}, {found[2]}" if found[2] != "Z" else "[0], 0"
    return [f"t.asks = '{what}', [{', '.join(map(i.word, words))}], {to}", f"return {MEETING + i.address + 16}"]


CONTROL = {"BRA": branch, "BRX": branch_by_register, "BRXU": branch_by_register, "CALL": call, "RET": back,
           "EXIT": leave, "BAR": barrier, "SHFL": meeting, "MATCH": meeting, "REDUX": meeting}

OPCODES = {
    **dict.fromkeys(("BSSY", "BSYNC", "BREAK", "BMOV", "WARPSYNC", "YIELD", "NOP", "LDGDEPBAR", "DEPBAR", "MEMBAR",
                     "ERRBAR", "CGAERRBAR", "CCTL"), nothing),
    **dict.fromkeys(("VOTE", "VOTEU"), vote),
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD", "IADD"), sum_of),
    **dict.fromkeys(("IMAD", "UIMAD"), product),
    **dict.fromkeys(("ISETP", "UISETP"), integer_test),
    **dict.fromkeys(("LOP3", "ULOP3"), bitwise),
    **dict.fromkeys(("PLOP3", "UPLOP3"), predicate_bitwise),
    **dict.fromkeys(("SEL", "USEL"), choice(Instruction.word)),
    "FSEL": choice(sign_changed),
    **dict.fromkeys(("SHF", "USHF"), shift),
    **dict.fromkeys(("LEA", "ULEA"), scaled_sum),
    **dict.fromkeys(("VIMNMX", "IMNMX", "UIMNMX", "VIADDMNMX"), least_or_most),
    **dict.fromkeys(("MOV", "UMOV", "R2UR"), moved),
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), special),
    "SGXT": sign_extension,
    "POPC": bits_that_are_set,
    "HFMA2": half_constant,
    "R2P": to_predicates,
    "P2R": from_predicates,
    **dict.fromkeys(("PRMT", "UPRMT"), permutation),
    "FADD": float_sum,
    "FMUL": float_product,
    "FFMA": fused_product,
    "FSETP": float_test(Instruction.float),
    "DADD": wide_float_sum,
    "DMUL": wide_float_product,
    "DSETP": float_test(Instruction.wide_float),
    "F2F": float_to_float,
    **dict.fromkeys(("I2F", "I2FP"), integer_to_float),
    "F2I": float_to_integer,
    "MUFU": by_approximation,
    **dict.fromkeys(("LD", "LDG", "LDL", "LDS"), load),
    **dict.fromkeys(("ST", "STG", "STL", "STS"), store),
    **dict.fromkeys(("ATOM", "ATOMG"), add_atomically),
    "LDGSTS": copy,
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), load_constant),
    **CONTROL,
}


def ends_block(text):
    found = LINE.match(text)
    return bool(found) and found[2] in CONTROL


def statements(address, text, labels, constants):
    """Returns the function that does what one instruction does."""
    try:
        instruction = Instruction(address, text, labels, constants)
        if instruction.opcode not in OPCODES:
            raise instruction.unknown()
        guard, lines = instruction.guard, OPCODES[instruction.opcode](instruction)
    except Unknown as why:
        guard, lines = re.match(r"(?:@(!?U?P[0-6T]))?", text)[1], [f"raise Unknown({str(why)!r})"]
    if not guard or not lines:
        return lines
    return [f"if {predicate(guard)}:"] + [f"  {line}" for line in lines]
