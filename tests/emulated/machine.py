"""Runs kernels of AMD code objects on the CPU, instruction by instruction.

What one instruction does is tinygrad's to say: the RDNA3 emulator of its repository compiles each to a small function
on the registers of a wave. What surrounds them is here, and none of it is taken from there: the code object as a loader
maps it, the state that the processor gives a wave, the order in which waves run, LDS.

So the emulator is not asked for its own way of running a wave, which takes subnormal floats for 0, writes over one of
the constants that instructions may name, and lets lanes without work touch LDS at addresses that mean nothing. What it
reads as an instruction is compared with LLVM's disassembly, by name and length, and its fused multiply-adds with right
values. A fault ends in `Fault`, which shows the instruction.
"""

import concurrent.futures
import ctypes
import importlib
import mmap
import os
import random
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "scripts"))

import codegen  # noqa: E402

LANES = 32
VECTOR_REGISTERS = 256
# In the emulator's file of scalar registers, which holds the constants that an instruction can name too.
CONSTANTS, VCC, EXEC, PC, SCALARS = 128, 106, 126, 256, 260
INLINE_FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0}
RECIPROCAL_OF_2_PI = 248, 0x3E22F983
END = (1 << 64) - 1
UNDEFINED = 0xFFA5A5A5  # what registers and LDS hold before anything is written there: a nan
INSTRUCTIONS_MOST = 20_000_000  # of a wave


class Fault(Exception):
    """The emulator cannot run the code, or the code does what no processor allows."""


# --- code objects ---


class Place(ctypes.Structure):
    """struct place of walk.c."""

    _fields_ = ("run", ctypes.c_void_p), ("taken", ctypes.c_ubyte * 6), ("is_barrier", ctypes.c_ubyte)


AT_END, AT_BARRIER, AT_UNKNOWN, TOO_LONG = range(4)


class CodeObject:
    """A code object in memory, as a loader maps it, with its kernels' descriptors and its disassembly."""

    def __init__(self, elf):
        if elf[:4] != b"\x7fELF" or struct.unpack_from("<H", elf, 18)[0] != 224:
            raise Fault("not an ELF file for AMD's GPUs")
        segments_at, sections_at = struct.unpack_from("<QQ", elf, 32)
        segments, _, sections = struct.unpack_from("<HHH", elf, 56)
        loaded = []
        for k in range(segments):
            kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from(
                "<IIQQQQQQ", elf, segments_at + 56 * k
            )
            if kind == 1:
                loaded.append((offset, address, in_file, in_memory))
        self.size = max(address + in_memory for _, address, _, in_memory in loaded)
        self._memory = mmap.mmap(-1, self.size + mmap.PAGESIZE)
        for offset, address, in_file, _ in loaded:
            self._memory[address : address + in_file] = elf[offset : offset + in_file]
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.kernels = {}
        for k in range(sections):
            _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", elf, sections_at + 64 * k)
            if kind in (4, 9) and size:  # SHT_RELA, SHT_REL
                raise Fault("the code object has relocations")
            if kind == 11:  # SHT_DYNSYM
                (names,) = struct.unpack_from("<Q", elf, sections_at + 64 * link + 24)
                for at in range(offset, offset + size, 24):
                    name, _, _, _, value = struct.unpack_from("<IBBHQ", elf, at)
                    name = elf[names + name : elf.index(b"\0", names + name)].decode()
                    if name.endswith(".kd"):
                        self.kernels[name[:-3]] = Descriptor(self, value)
        self._elf = elf
        self._text = None
        self.places = (Place * (self.size // 4 + 1))()

    def text(self):
        """LLVM's disassembly: by address in memory, (kernel, instruction, length)."""
        if self._text is None:
            _, objdump = codegen.find_tools(os.environ.get("LLVM_TOOLS"), codegen.compiler_version(self._elf))
            with tempfile.NamedTemporaryFile(suffix=".co") as file:
                file.write(self._elf)
                file.flush()
                self._text = self._parsed(codegen.output_of([objdump, "-d", file.name]))
        return self._text

    def _parsed(self, output):
        lines, kernel = [], None
        for line in output.splitlines():
            label = codegen.LABEL.match(line)
            if label:
                kernel = line.split("<")[1][:-2]
            elif line.startswith("\t") and kernel:
                text, _, comment = line.strip().partition("//")
                lines.append((int(comment.partition(":")[0], 16), kernel, " ".join(text.split())))
        found, padding = {}, False
        for k, (address, kernel, text) in enumerate(lines):
            if k and lines[k - 1][1] != kernel:
                padding = False
            if not padding:
                following = lines[k + 1][0] if k + 1 < len(lines) else address + 4
                found[self.base + address] = kernel, text, following - address
            padding = padding or text.startswith("s_endpgm")
            if padding and not text.startswith(("s_endpgm", "s_code_end", "s_nop", ".long", "v_illegal")):
                padding = False  # a kernel may end in several places
                found[self.base + address] = kernel, text, lines[k + 1][0] - address
        return found

    def around(self, address, count=6):
        """The disassembly about an address, with an arrow at it."""
        text = self.text()
        places = sorted(text)
        try:
            at = places.index(address)
        except ValueError:
            return f"{address - self.base:#x}: not in the disassembly"
        shown = [p for p in places[max(0, at - count) : at + count + 1] if text[p][0] == text[address][0]]
        return "\n".join(f"{'->' if p == address else '  '} {p - self.base:6x}: {text[p][1]}" for p in shown)

    def coverage(self):
        """By kernel, (the places of instructions that ran, the number of all)."""
        found = {}
        for address, (kernel, _, _) in self.text().items():
            ran, every = found.get(kernel, ([], 0))
            if self.places[(address - self.base) // 4].run:
                ran.append(address - self.base)
            found[kernel] = ran, every + 1
        return found


class Descriptor:
    """What the processor is told of a kernel ("Kernel Descriptor", User Guide for AMDGPU Backend), checked."""

    def __init__(self, code, at):
        self.address = code.base + at
        raw = ctypes.string_at(self.address, 64)
        self.lds, self.private, self.kernarg, _, entry = struct.unpack_from("<IIIIq", raw)
        _, rsrc1, rsrc2, self.properties = struct.unpack_from("<IIIH", raw, 44)
        self.entry = self.address + entry
        self.mode = rsrc1 >> 12 & 0xFF  # two bits each: rounding of 32 bits, of 16 and 64, their subnormals
        self.user_registers = rsrc2 >> 1 & 31
        self.has_block = [rsrc2 >> bit & 1 for bit in (7, 8, 9)]

    def check(self, name):
        if not self.properties >> 10 & 1:
            raise Fault(f"{name}: is for waves of 64 lanes")
        if self.private or self.properties & 0b1100001:
            raise Fault(f"{name}: uses scratch memory")
        if self.mode != 0xF0:
            raise Fault(f"{name}: floating-point mode {self.mode:#x}: not to nearest with subnormal numbers")

    def registers(self, packet, arguments):
        """The scalar registers that a wave begins with, but for its block's number."""
        found = []
        for bit, value in ((1, packet), (2, 0), (3, arguments), (4, 0)):  # packet, queue, arguments, dispatch number
            if self.properties >> bit & 1:
                found += value & 0xFFFFFFFF, value >> 32
        return (found + [UNDEFINED] * self.user_registers)[: self.user_registers]


# --- the emulator ---


class Emulator:
    """tinygrad's, with what is corrected in it."""

    def __init__(self, repository):
        if not os.path.exists(os.path.join(repository, "test", "mockgpu", "amd", "emu.py")):
            raise Fault(f"{repository} is no checkout of tinygrad's repository with test/mockgpu/amd/emu.py")
        sys.path.insert(0, repository)
        self._kept = []
        self._emu = importlib.import_module("test.mockgpu.amd.emu")
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._check_fused()

    def _decoded(self, address):
        """((program, runtime), instruction) at an address. tinygrad's cache of programs is for one thread alone."""
        return self._thread.submit(self._emu._decode_at, address, "rdna3").result()

    def _check_fused(self):
        """Whether multiply-adds round once, which is the host compiler's to do, on (1 + 2^-k)^2 - (1 + 2^(1-k))."""
        for name, code, half, type, width in (
            ("v_fma_f32", "000013d601050e04", 12, ctypes.c_float, 1),  # v0 = v1 * v2 + v3
            ("v_fma_f64", "000014d602091a04", 27, ctypes.c_double, 2),  # v[0:1] = v[2:3] * v[4:5] + v[6:7]
        ):
            scalars, vectors = (ctypes.c_uint32 * SCALARS)(), (ctypes.c_uint32 * (VECTOR_REGISTERS * LANES))()
            scalars[EXEC] = 1
            values = 1 + 2.0**-half, 1 + 2.0**-half, -1 - 2.0 ** (1 - half)
            for k, value in enumerate(values, 1):
                words = (ctypes.c_uint32 * width).from_buffer_copy(type(value))
                for word in range(width):
                    vectors[(k * width + word) * LANES] = words[word]
            instruction = ctypes.create_string_buffer(bytes.fromhex(code) + bytes(16))
            ctypes.c_uint64.from_buffer(scalars, 4 * PC).value = ctypes.addressof(instruction)
            (program, runtime), _ = self._decoded(ctypes.addressof(instruction))
            buffers = ctypes.addressof(scalars), ctypes.addressof(vectors), 0, 0, 0, 0
            runtime.fxn(*(ctypes.c_uint64(buffers[taken]) for taken in program.arg.globals))
            words = (ctypes.c_uint32 * width)(*(vectors[word * LANES] for word in range(width)))
            found = type.from_buffer_copy(words).value
            if found != 2.0 ** (-2 * half):
                raise Fault(
                    f"the emulator's {name} is wrong on this machine: {found} where {2.0 ** (-2 * half)} is right"
                )

    def place(self, code, address):
        """What the instruction at an address does, as walk.c wants it."""
        if address not in code.text():
            raise Fault("the program counter leaves the code")
        kernel, text, length = code.text()[address]
        name = text.split()[0]
        if name == "buffer_gl0_inv":  # there are no caches
            return self._place(self._step_over(length), (0,), name)
        try:
            (program, runtime), instruction = self._decoded(address)
        except Exception as error:
            raise Fault(f"the emulator does not know the instruction: {error}") from error
        right, read = [_plain(part.split()[0]) for part in text.split("::")], _names_of(instruction)
        if read != right or instruction.size() != length:
            raise Fault(f"the emulator reads {read} of {instruction.size()} bytes where LLVM reads {right} of {length}")
        return self._place(runtime.fxn, tuple(program.arg.globals), name)

    def _place(self, function, taken, name):
        self._kept.append(function)
        place = Place(ctypes.cast(function, ctypes.c_void_p).value)
        place.taken[: len(taken)] = taken
        place.is_barrier = name == "s_barrier"
        return place

    @staticmethod
    def _step_over(length):
        @ctypes.CFUNCTYPE(None, ctypes.c_uint64)
        def step(scalars):
            ctypes.c_uint64.from_address(scalars + 4 * PC).value += length

        return step


def _plain(name):
    """An instruction's name without its encoding."""
    return re.sub(r"_e(32|64)$", "", name)


def _names_of(instruction):
    """The name of an instruction as the emulator reads it; both names of a pair."""
    both = (instruction.opx, instruction.opy) if hasattr(instruction, "opx") else (instruction.op,)
    return [_plain(op.name.lower()) for op in both]


# --- running ---

# The buffer that another process may watch: the code object's place or 0, the wave that runs, which of the kernel's
# launches it is, and the kernel's name; then the scalar registers of all waves.
STATE = struct.Struct("<QII64s")
WAVES_MOST = 1024 // LANES
WATCHED = STATE.size + WAVES_MOST * 4 * SCALARS


def last_launch(watched):
    """(kernel, which of its launches, the place in the code object where it is; None if it ended)."""
    base, wave, count, name = STATE.unpack_from(watched)
    (counter,) = struct.unpack_from("<Q", watched, STATE.size + 4 * SCALARS * wave + 4 * PC)
    return name.rstrip(b"\0").decode(), count, counter - base if base else None


class Machine:
    """Runs launches; keeps what ran.

    Attributes:
        launches: by kernel, how many; and of how many threads.
    """

    def __init__(self, repository, walk, watched, trace=None):
        """
        Args:
            walk: the file that walk.c was built to.
            watched: a writable buffer of WATCHED bytes that the state is kept in, for another process to see where this
                one crashed: see `crash`.
            trace: (kernel, which of its launches): the one whose first wave is shown, instruction by instruction.
        """
        self._emulator = Emulator(repository)
        self._walk = ctypes.CDLL(walk).walk
        self._walk.argtypes = 2 * [ctypes.c_void_p] + [ctypes.c_uint64] + 2 * [ctypes.c_void_p] + [ctypes.c_uint64]
        self._objects = {}
        self.launches = {}
        self._trace = trace
        self._random = random.Random(0)
        # An LDS address that a lane without work holds is still formed, and what lies there is read and written back.
        self._lds = mmap.mmap(-1, (1 << 32) + (1 << 16), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
        self._lds_at = ctypes.addressof(ctypes.c_char.from_buffer(self._lds))
        self._watched = watched
        self._waves = [_Wave(watched, STATE.size + _Wave.SIZE * k, self._lds_at) for k in range(WAVES_MOST)]

    def code_object(self, address, size):
        if address not in self._objects:
            self._objects[address] = CodeObject(ctypes.string_at(address, size))
        return self._objects[address]

    @property
    def objects(self):
        return list(self._objects.values())

    def launch(self, name, code, blocks, threads, arguments):
        """Runs a kernel over its grid.

        Args:
            code: a CodeObject.
            arguments: the bytes of its arguments, laid out as the code has them.
        """
        if name not in code.kernels:
            raise Fault(f"{name}: the code object has no such kernel")
        kernel = code.kernels[name]
        kernel.check(name)
        count = self.launches[name] = self.launches.get(name, 0) + 1
        block = ctypes.create_string_buffer(
            bytes(arguments[: kernel.kernarg]).ljust(kernel.kernarg, b"\xa5") + b"\xa5" * 256
        )
        at = ctypes.addressof(block)
        packet = ctypes.create_string_buffer(  # "Architected Queuing Language", HSA
            struct.pack(
                "<HHHHHHIIIIIQQQQ",
                *(2, 1, threads, 1, 1, 0, blocks * threads, 1, 1, kernel.private, kernel.lds, kernel.address, at, 0, 0),
            )
        )
        begin = kernel.registers(ctypes.addressof(packet), at)
        STATE.pack_into(self._watched, 0, code.base, 0, count, name.encode())
        shows = self._trace is not None and self._trace == (name, count)
        for number in range(blocks):
            self._run_block(code, kernel, begin, number, threads, shows)
        STATE.pack_into(self._watched, 0, 0, 0, count, name.encode())

    def _run_block(self, code, kernel, begin, number, threads, shows):
        waves = self._waves[: -(-threads // LANES)]
        for k, wave in enumerate(waves):
            wave.begin(kernel, begin, number, k * LANES, min(LANES, threads - k * LANES))
        ctypes.memset(self._lds_at, 0xA5, kernel.lds)
        left = list(waves)
        while left:
            self._random.shuffle(left)
            waiting = []
            for wave in left:
                if self._run_wave(code, wave, shows and wave is waves[0]):
                    waiting.append(wave)
            if waiting and len(waiting) != len(left):
                raise Fault("some waves of a block wait at a barrier that others do not reach")
            left = waiting
        if any(ctypes.string_at(self._lds_at + kernel.lds, 1 << 12)):
            raise Fault(f"writes beyond its {kernel.lds} bytes of LDS")
        ctypes.memset(self._lds_at, 0, kernel.lds)

    def _run_wave(self, code, wave, shows):
        """Runs to the next barrier, and returns True; or to the end, and returns False."""
        struct.pack_into("<I", self._watched, 8, self._waves.index(wave))
        while True:
            before = self._before(wave) if shows else None
            most = 1 if shows else INSTRUCTIONS_MOST
            stop = self._walk(
                code.places,
                code.base,
                len(code.places),
                ctypes.byref(wave.counter),
                wave.buffers,
                ctypes.c_uint64(most),
            )
            at = wave.counter.value
            if stop == AT_UNKNOWN:
                try:
                    code.places[(at - code.base) // 4] = self._emulator.place(code, at)
                except Fault as fault:
                    raise Fault(f"{fault}\n{code.around(at)}") from None
            elif shows:
                self._show(code, wave, *before)
            if stop in (AT_END, AT_BARRIER):
                return stop == AT_BARRIER
            if stop == TOO_LONG and not shows:
                raise Fault(f"runs for {INSTRUCTIONS_MOST} instructions\n{code.around(at)}")

    @staticmethod
    def _before(wave):
        return wave.counter.value, bytes(wave.scalars), bytes(wave.vectors)

    def _show(self, code, wave, at, before_scalars, before_vectors):
        """Prints an instruction that ran, and what it changed."""
        if at not in code.text():
            return
        _, text, _ = code.text()[at]
        changes = []
        for k in range(PC):
            (old,) = struct.unpack_from("<I", before_scalars, 4 * k)
            if wave.scalars[k] != old:
                changes.append(f"{_scalar_name(k)}={wave.scalars[k]:x}")
        after = bytes(wave.vectors)
        for k in range(VECTOR_REGISTERS):
            part = slice(4 * LANES * k, 4 * LANES * (k + 1))
            if after[part] != before_vectors[part]:
                (bits,), (number,) = (
                    struct.unpack_from("<I", after, part.start),
                    struct.unpack_from("<f", after, part.start),
                )
                changes.append(f"v{k}[0]={bits:x} ({number!r})")
        print(f"{at - code.base:6x}: {text:56} {' '.join(changes)}", file=sys.stderr)


def _scalar_name(k):
    return {VCC: "vcc", EXEC: "exec", 253: "scc"}.get(k, f"s{k}")


class _Wave:
    """The registers of one wave, the scalar ones in a part of a buffer."""

    SIZE = 4 * SCALARS

    def __init__(self, buffer, at, lds):
        self.scalars = (ctypes.c_uint32 * SCALARS).from_buffer(buffer, at)
        self.vectors = (ctypes.c_uint32 * (VECTOR_REGISTERS * LANES))()
        self.counter = ctypes.c_uint64.from_buffer(buffer, at + 4 * PC)
        self._fresh = (ctypes.c_uint32 * len(self.scalars))(*[UNDEFINED] * len(self.scalars))
        for k in range(65):
            self._fresh[CONSTANTS + k] = k
        for k in range(1, 17):
            self._fresh[CONSTANTS + 64 + k] = -k & 0xFFFFFFFF
        for k, value in INLINE_FLOATS.items():
            (self._fresh[k],) = struct.unpack("<I", struct.pack("<f", value))
        self._fresh[RECIPROCAL_OF_2_PI[0]] = RECIPROCAL_OF_2_PI[1]
        self._fresh[124] = 0  # null
        self._fresh[253] = 0  # scc
        self._undefined = struct.pack("<I", UNDEFINED) * (VECTOR_REGISTERS * LANES)
        memory = 0  # addresses are the process's own
        addresses = ctypes.addressof(self.scalars), ctypes.addressof(self.vectors), memory, lds, 0, 0
        self.buffers = (ctypes.c_uint64 * 6)(*addresses)

    def begin(self, kernel, registers, block, first_thread, lanes):
        ctypes.memmove(self.scalars, self._fresh, ctypes.sizeof(self.scalars))
        ctypes.memmove(self.vectors, self._undefined, len(self._undefined))
        at = 0
        for value in (*registers, *(value for value, has in zip((block, 0, 0), kernel.has_block) if has)):
            self.scalars[at] = value
            at += 1
        self.scalars[EXEC] = (1 << lanes) - 1
        self.counter.value = kernel.entry
        for lane in range(lanes):
            self.vectors[lane] = first_thread + lane  # 10 bits each for x, y, z
