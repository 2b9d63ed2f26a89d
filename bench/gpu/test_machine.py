"""Tests of machine.py and its parts, without a GPU or CUDA's tools: test_machine.py. Where these tools are installed,
two more tests can be run: test_machine.py FORESTVM RECORD ARRAY ARRAY4 STRAIGHT. They compile a forest of 100 trees of
depth 8 and record a call with 64 rows; the kernels of both layouts must give the emulator's bits in the machine, and
take no more instructions than before, nor many more than straight.cu's."""

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import machine
import machine_code
import opcodes
import sass
import synthetic

HERE = Path(__file__).resolve().parent
# Limits of instructions per warp, for 32 rows through 100 trees of depth 8: "array" compares values, "array4" codes,
# which take half of the instructions to encode.
MOST_INSTRUCTIONS = {"array": 10100, "array4": 16000}
WITH_KERNELS = len(sys.argv) == 6
NO_KERNELS = "no kernels were given (nvcc compiles them for the test gpu.machine)"
MOST_INTERPRETING = 0.03
# The limit of the overhead over kernels without an interpreter. These kernels do not know the number of steps at
# compile time either.
MOST_OVERHEAD = 0.05
SCHEDULE = """{codes}
tile(batch, b0, b1, 32)
tile(tree, t0, t1, 4)
reorder(b0, b1, t0, t1)
gpuDimension(b0, grid.x)
gpuDimension(b1, block.x)
layout(t0, array)
interleave(t1)
cache(b0)
unrollWalk(t1)
"""

LISTING = """
	.section	.text.forestvm_phase_Test,"ax",@progbits
forestvm_phase_Test:
.text.forestvm_phase_Test:
	//## File "/somewhere/walk.hpp", line 7
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   LDC.64 R2, c[0x0][0x210] ;
        /*0020*/                   IMAD.SHL.U32 R1, R0, 0x4, RZ ;
        /*0030*/                   IMAD.WIDE.U32 R2, R0, 0x4, R2 ;
        /*0040*/                   STS [R1], R0                              (*"SpillRefill"*) ;
        /*0050*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0060*/                   LOP3.LUT R1, R1, 0x4, RZ, 0x3c, !PT ;
        /*0070*/                   LDS R4, [R1] ;
        /*0080*/                   MOV R5, RZ ;
        /*0090*/                   LDC.U8 R6, c[0x0][R5+0x218] ;
        /*00a0*/                   IADD3 R6, R6, R4, RZ ;
.L_x_0:
        /*00b0*/                   ISETP.NE.AND P0, PT, R4, RZ, PT ;
        /*00c0*/               @P0 IADD3 R4, R4, -0x1, RZ ;
        /*00d0*/               @P0 BRA `(.L_x_0) ;
        /*00e0*/                   REDUX.OR UR4, R6 ;
        /*00f0*/                   IADD3 R6, R6, UR4, RZ ;
        /*0100*/                   STG.E desc[UR6][R2.64], R6 ;
        /*0110*/                   EXIT ;
"""


class Image:
    """Makes a kernel that takes a pointer and one instruction of a program."""

    def parameters(self, _):
        return 0x210, 24

    def size(self, _):
        return 0

    def bytes(self, _):
        return b""

    def relocations(self, _):
        return []


def kernel():
    return machine_code.parse(LISTING, "sm_90", Image())[0]


class OfCode(unittest.TestCase):
    def run_one(self, text, **registers):
        """Returns the registers that one instruction leaves: r by number, p by number."""
        r, p = [0] * 256, [False] * 7
        for name, number in registers.items():
            {"r": r, "p": p}[name[0]][int(name[1:])] = number
        lines = opcodes.statements(0, text, {}, None)
        scope = dict(vars(sass), r=r, p=p)
        exec("\n".join(lines), scope)
        return r, p

    def expect(self, text, register, number, **registers):
        self.assertEqual(self.run_one(text, **registers)[0][register], number, text)

    def expect_predicate(self, text, number, **registers):
        self.assertEqual(self.run_one(text, **registers)[1][0], number, text)

    def test_sums_carry(self):
        self.assertTrue(self.run_one("IADD3 R1, P0, R2, R3, RZ", r2=0xFFFFFFFF, r3=1)[1][0])
        # A 64-bit difference: carry means no borrow, and 0 - 0 borrows nothing.
        self.assertTrue(self.run_one("IADD3 R1, P0, R2, -R3, RZ")[1][0])
        self.assertFalse(self.run_one("IADD3 R1, P0, R2, -R3, RZ", r3=1)[1][0])
        self.expect("IADD3.X R1, R2, ~R3, RZ, P0, !PT", 1, 6, r2=9, r3=3, p0=True)
        self.expect("IMAD.X R1, RZ, RZ, R2.reuse, P0", 1, 8, r2=7, p0=True)

    def test_products(self):
        self.expect("IMAD.HI.U32 R1, R2, R3, R4", 1, 3, r2=0xFFFFFFFF, r3=0xFFFFFFFF, r4=0, r5=5)
        r, _ = self.run_one("IMAD.WIDE R2, R4, 0x8, R6", r4=0xFFFFFFFF, r6=0x10, r7=1)
        self.assertEqual((r[2], r[3]), (8, 1))
        self.expect("@!P0 IMAD R1, R2, R3, -R4", 1, 2, r2=3, r3=4, r4=10)
        self.expect("@P0 IMAD R1, R2, R3, -R4", 1, 7, r1=7)

    def test_bits(self):
        self.expect("LOP3.LUT R1, R2, R3, R4, 0xca, !PT", 1, 0xF0, r2=0xFF, r3=0xF0, r4=0x0F)
        r, p = self.run_one("LOP3.LUT.PAND P0, R1, R2, 0x3, RZ, 0xc0, P0", r2=5, p0=True)
        self.assertEqual((r[1], p[0]), (1, True))
        r, p = self.run_one("LOP3.LUT.PAND P0, R1, R2, 0x3, RZ, 0xc0, P0", r2=5, p0=False)
        self.assertEqual((r[1], p[0]), (1, False))
        self.expect("SHF.R.U32.HI R1, RZ, 0x14, R2", 1, 0xFFF, r2=0xFFF00000)
        self.expect("SHF.R.S32.HI R1, RZ, 0x1, R2", 1, 0xC0000000, r2=0x80000000)
        self.expect("SHF.L.W.U32.HI R1, R2, R3, 0xfffffffe", 1, 0xFFFFFFFB, r2=0xFFFFFFFE, r3=2)
        self.expect("PRMT R1, R2, 0x9910, RZ", 1, 0xFFFF8001, r2=0x8001)
        self.expect("LEA.HI.X R1, R2, R3, R4, 0x2, P0", 1, 4 * 5 + 3 + 7 + 1, r2=0xC0000000, r3=7, r4=5, p0=True)
        self.expect("VIADDMNMX.U32 R1, R2, 0x2, R3, PT", 1, 1, r2=0xFFFFFFFF, r3=3)
        self.expect("VIMNMX R1, R2, R3, !PT", 1, 3, r2=0xFFFFFFFF, r3=3)

    def test_floats(self):
        one, nan = sass.bits(1.0), sass.NAN
        self.expect_predicate("FSETP.GEU.AND P0, PT, R1, R2, PT", True, r1=nan, r2=one)
        self.expect_predicate("FSETP.GE.OR P0, PT, R1, R2, !PT", False, r1=nan, r2=one)
        self.expect_predicate("FSETP.GT.AND P0, PT, |R1|, 0.5, PT", True, r1=sass.bits(-1.0))
        self.expect("FADD R1, R2, -R3", 1, sass.bits(0.1) ^ 1 << 31, r2=0, r3=sass.bits(0.1))
        # Rounded once: by way of float64 it would be 1.
        self.expect("FFMA R1, R2, R3, R4", 1, one + 1, r2=0x33800001, r3=one, r4=one)
        self.expect("I2F.U32.RP R1, R2", 1, sass.bits(2.0**24 + 2), r2=2**24 + 1)
        self.expect("F2I.FTZ.U32.TRUNC.NTZ R1, R2", 1, 0xFFFFFFFF, r2=sass.bits(1e20))

    def test_threads_end_and_return_where_a_predicate_says(self):
        for text, here in (("EXIT P0", None), ("EXIT", None), ("RET.REL.NODEC P0, R4 `(forestvm_phase_Test)", 0x70),
                           ("RET.REL.NODEC R4 `(forestvm_phase_Test)", 0x70)):
            for holds in (True, False):
                lines = opcodes.statements(0, text, {}, None)
                scope = dict(vars(sass), r=[0x70] * 256, p=[holds] * 7)
                exec("\n".join(["def run():", *(f"  {line}" for line in lines), "  return 'goes on'"]), scope)
                self.assertEqual(scope["run"](), here if holds or "P0" not in text else "goes on", text)

    def test_what_is_not_known_says_so(self):
        for text in ("SHFL.UP PT, R1, R2, 0x1, RZ", "IMAD.NEW R1, R2, R3, R4", "FROBNICATE R1", "MOV R1, foo"):
            with self.assertRaisesRegex(sass.Unknown, f"^0x0: {text.split(' ')[0]}"):
                self.run_one(text)
        self.run_one("@P0 FROBNICATE R1")  # the predicate is false: it is not executed


class OfLaunches(unittest.TestCase):
    def recording(self, folder, *after):
        description = dict(extent=[1, 1, 1, 2, 1, 1], shared_bytes=8, layout="test", code_offset=8, code=["halt"],
                           memory=[[4096, 8]])
        (folder / "0.json").write_text(json.dumps(description))
        (folder / "0.argument").write_bytes(struct.pack("<Q", 4096) + bytes(range(16, 32)))
        (folder / "0.before").write_bytes(bytes(8))
        (folder / "0.after").write_bytes(struct.pack("<II", *after))

    def test_threads_meet_at_barriers_and_are_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            self.recording(Path(folder), 17 + 17, 16 + 17)
            of = machine.Count(Path(folder), kernel())
        # One thread runs the loop once, the other twice; the interpreter's first instruction is read before it.
        self.assertEqual(dict(of.by_instruction), {(0, -1, ""): 6 + 3, (0, 0, "halt"): 2 + 2 * 3 + 4})
        self.assertEqual(of.instructions, 21)
        # The code has 18 instructions of 16 bytes. The loop and what follows it lie in the second and third line.
        self.assertEqual(of.lines, 3)
        self.assertEqual(dict(of.lines_by_instruction), {(0, -1, ""): 2, (0, 0, "halt"): 2})
        self.assertEqual(of.kernel.lines[0xF0], "walk.hpp:7")
        self.assertTrue(of.parted)

    def test_bytes_that_are_written_to_the_stack(self):
        texts = ["STL [R1], R2 ;", "@P0 STL.64 [R1+0x8], R2 ;", "STL.128 [R4+0x10], R8 ;", "STL.U8 [R1+0x3], R2 ;",
                 "LDL.64 R2, [R1] ;", "STS.64 [R1], R2 ;"]
        self.assertEqual(list(map(machine.written_to_stack, texts)), [4, 8, 16, 4, 0, 0])

    def test_other_memory_than_the_emulators_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            self.recording(Path(folder), 17 + 17, 0)
            with self.assertRaisesRegex(machine.Fault, "1 of the 8 bytes at 0x1000 differ .* first number 4"):
                machine.Count(Path(folder), kernel())

    def test_lanes_answer_each_other(self):
        def answers(what, *asked):
            lanes = [SimpleNamespace(asks=(what, words, None, None)) for words in asked]
            return [machine.answer_to(lanes, number) for number in range(len(lanes))]

        self.assertEqual(answers("MATCH.ANY", [5], [6], [5]), [0b101, 0b010, 0b101])
        self.assertEqual(answers("SHFL.DOWN", [5, 2], [6, 1], [7, 0]), [7, 7, 7])
        self.assertEqual(answers("SHFL.DOWN", [5, 31], *[[6, 31]] * 31), [6] * 32)
        with self.assertRaisesRegex(machine.Fault, "lane 1 shuffles with one that is not there"):
            answers("SHFL.DOWN", [5, 0], [6, 1])

    def test_what_is_beside_the_memory_is_an_error(self):
        memory = machine.Memory()
        memory.add(4096, bytearray(8))
        for address in (4092, 4104, 4098):
            begin, data = memory.region(address)
            with self.assertRaises(machine.Fault):
                machine.load(data, address, 4, begin)


class OfTheKernel(unittest.TestCase):
    def run_it(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check(self, layout, codes):
        program, record, *objects = sys.argv[1:6]
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(folder, 28, 8, 100, rows=64)
            Path(folder, "loops.txt").write_text(SCHEDULE.format(codes=codes))
            self.run_it(program, "compile", f"{folder}/model.json", "-o", f"{folder}/gpu.fvm", "--schedule",
                        f"{folder}/loops.txt")
            self.run_it(record, f"{folder}/gpu.fvm", f"{folder}/rows.npy", f"{folder}/calls", "--rows", 64)
            print(self.run_it(sys.executable, "-B", HERE / "machine.py", f"{folder}/calls", *objects, "--compare",
                              "^forestvm_straight_.*_staged_any", "--most", MOST_OVERHEAD, "--interpreting",
                              MOST_INTERPRETING, "--at-most", MOST_INSTRUCTIONS[layout]))

    @unittest.skipUnless(WITH_KERNELS, NO_KERNELS)
    def test_walks_of_values(self):
        self.check("array", "")

    @unittest.skipUnless(WITH_KERNELS, NO_KERNELS)
    def test_walks_of_codes(self):
        self.check("array4", "encode(u8)")


if __name__ == "__main__":
    if WITH_KERNELS and not machine_code.tools_are_there():
        print(machine_code.NO_TOOLS)
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
