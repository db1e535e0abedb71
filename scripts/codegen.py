#!/usr/bin/env python3
"""Reads the AMD machine code in a built library and tells, kernel by target, what the compiler made of the kernels.

    scripts/codegen.py targets FILE...                  the targets that there is code for
    scripts/codegen.py show FILE...                     every kernel on every target, tab-separated
    scripts/codegen.py check --limits LIMITS FILE...    names the kernels outside the limits; exit status 1 if any
    scripts/codegen.py page --page PAGE FILE...         rewrites the tables of docs/amd-codegen.md

FILE is the shared library, or a bundle (kernels/*.hipfb of the build tree). Metadata and instructions are read by
llvm-readelf and llvm-objdump, which have to be of the LLVM that built the code: --llvm names their folder, else they
are looked for by that version. Exit status 77 means that the files hold no AMD code, or that those tools are missing.

What the columns mean stands in docs/amd-codegen.md.
"""

import argparse
import fnmatch
import functools
import glob
import operator
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict

BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
BUNDLE_TARGET = re.compile(r"^hipv4-amdgcn-amd-amdhsa--(gfx[^:]+)$")
DTYPES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
MODES = ("vector", "rows_full", "pairs_full", "rows", "pairs", "element")
VECTOR_BYTES = 16
SKIPPED = 77

# Columns of a row that are numbers, in the order in which they are shown.
NUMBERS = (
    "vgprs",
    "agprs",
    "sgprs",
    "scratch",
    "vgpr-spills",
    "sgpr-spills",
    "lds",
    "waves",
    "kernarg",
    "max-threads",
    "wave-size",
    "wide-loads",
    "wide-stores",
    "per-element",
    "transcendental",
    "double",
    "flat",
)


class Unreadable(Exception):
    """The files hold no AMD code, or nothing here can read it."""


# The code objects ---------------------------------------------------------------------------------------------------


def bundled(data):
    """Yields (target, code object) of every offload bundle in the data, as clang's bundler lays them out."""
    start = data.find(BUNDLE_MAGIC)
    while start >= 0:
        place = start + len(BUNDLE_MAGIC)
        (count,) = struct.unpack_from("<Q", data, place)
        place += 8
        for _ in range(count):
            offset, size, length = struct.unpack_from("<3Q", data, place)
            place += 24
            name = data[place : place + length].decode()
            place += length
            target = BUNDLE_TARGET.match(name)
            if target:
                yield target.group(1), data[start + offset : start + offset + size]
            elif size:
                raise ValueError(f"the bundle entry {name!r} is of no known form")
        start = data.find(BUNDLE_MAGIC, place)


def compiler_version(code):
    """The LLVM that built a code object, by the compiler's mark in it: "19"."""
    mark = re.search(rb"clang version (\d+)", code)
    return mark.group(1).decode() if mark else ""


def find_tools(folder, version):
    """The paths of llvm-readelf and llvm-objdump of that LLVM version."""
    candidates = [folder] if folder else []
    if not folder:
        candidates += [
            f"/usr/lib/llvm-{version}/bin",
            os.path.join(os.environ.get("ROCM_PATH", "/opt/rocm"), "llvm", "bin"),
        ]
        candidates += sorted(glob.glob("/opt/rocm*/llvm/bin")) + os.environ.get("PATH", "").split(os.pathsep)
    for candidate in candidates:
        for suffix in ("", f"-{version}"):
            tools = [shutil.which(name + suffix, path=candidate) for name in ("llvm-readelf", "llvm-objdump")]
            if all(tools) and all(f"version {version}." in output_of([tool, "--version"]) for tool in tools):
                return tools
    raise Unreadable(f"no llvm-readelf and llvm-objdump of LLVM {version} found" + (f" in {folder}" if folder else ""))


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def by_file(text, names, heading):
    """Splits the output of a tool that was given several files into one text for each."""
    parts = re.split(heading, text, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2]))
    return [found.get(name, text if len(names) == 1 else "") for name in names]


# Metadata and instructions ------------------------------------------------------------------------------------------


def kernels_in_notes(text):
    """The kernels' metadata, by name: {".vgpr_count": "24", ...}."""
    kernels, kernel, inside = {}, {}, False
    for line in text.splitlines():
        if line.startswith("amdhsa."):
            inside = line.startswith("amdhsa.kernels:")
        elif inside and line[:4] in ("  - ", "    ") and line[4:5] == ".":
            key, _, value = line[4:].partition(":")
            if line[2] == "-":
                kernel = {}
            kernel[key] = value.strip()
            if key == ".name":
                kernels[kernel[key]] = kernel
    return kernels


class Instruction:
    __slots__ = ("address", "name", "target", "masks")

    def __init__(self, address, name, target, masks):
        self.address, self.name, self.target, self.masks = address, name, target, masks


LABEL = re.compile(r"^([0-9a-f]+) <\w+>:$")
# What sets the mask of active threads, such that none may be left.
MASKS = re.compile(r"^(s_\w+_saveexec_|v_cmpx_|s_(?!or_b)\w+ exec)")
JUMP_TARGET = re.compile(r"<\w+\+0x([0-9a-f]+)>\s*$")


def kernels_in_disassembly(text):
    """The kernels' instructions, by name. A branch carries the address that it leads to."""
    kernels, instructions, base = {}, [], 0
    for line in text.splitlines():
        if not line.startswith("\t"):
            label = LABEL.match(line)
            if label:
                base = int(label.group(1), 16)
                instructions = kernels.setdefault(line.split("<")[1][:-2], [])
            continue
        # "<tab>name operands // address: the instruction's words <where a branch leads to>"
        code, _, comment = line.partition("//")
        name, target = code.split(None, 1)[0], None
        if name == ".long" and instructions and instructions[-1].name != "s_endpgm":
            raise ValueError(f"not an instruction of this target: {line.strip()}")
        if name.startswith(("s_cbranch", "s_branch")):
            jump = JUMP_TARGET.search(comment)
            target = base + int(jump.group(1), 16) if jump else base
        masks = bool(MASKS.match(" ".join(code.split())))
        instructions.append(Instruction(int(comment.partition(":")[0], 16), name, target, masks))
    return kernels


WIDE_LOAD = re.compile(r"^global_load_(dwordx4|b128)$")
WIDE_STORE = re.compile(r"^global_store_(dwordx4|b128)$")
NARROW = re.compile(r"^(global|flat|buffer|scratch)_(load|store)_")
FLAT = re.compile(r"^flat_")
DOUBLE = re.compile(r"_f64")
TRANSCENDENTAL = re.compile(r"^v_(s_)?(exp|log|rcp|rsq|sqrt|sin|cos)_")
# What the division of a large index consists of.
DIVISION = re.compile(r"^[vs]_(cvt_f32_u32|mul_hi_u32)")
# What steers the issue of others, and does no work.
NO_WORK = re.compile(
    r"^s_(waitcnt|wait_|delay_alu|nop|clause|sendmsg|code_end|endpgm|set_inst_prefetch|inst_prefetch|setprio)"
)


def is_wide(instruction):
    return bool(WIDE_LOAD.match(instruction.name) or WIDE_STORE.match(instruction.name))


class Block:
    """Instructions that run one after the other, and the blocks that may follow."""

    def __init__(self, instructions):
        self.instructions = instructions
        self.following = []
        self.wide = sum(is_wide(i) for i in instructions)
        self.narrow = sum(bool(NARROW.match(i.name)) and not is_wide(i) for i in instructions)
        self.division = sum(bool(DIVISION.match(i.name)) for i in instructions)
        self.work = sum(not NO_WORK.match(i.name) for i in instructions)
        self.turns = any(ELSE.match(i.name) for i in instructions)


def blocks_of(instructions):
    """The basic blocks, in the order of their addresses, linked."""
    ends = [k for k, instruction in enumerate(instructions) if instruction.name in ("s_endpgm", "s_branch")]
    instructions = instructions[: ends[-1] + 1]  # what follows is padding
    starts = {instructions[0].address} | {i.target for i in instructions if i.target is not None}
    blocks, current = [], []
    for k, instruction in enumerate(instructions):
        if instruction.address in starts and current:
            blocks.append(Block(current))
            current = []
        current.append(instruction)
        if instruction.target is not None or instruction.name == "s_endpgm" or k + 1 == len(instructions):
            blocks.append(Block(current))
            current = []
    at = {block.instructions[0].address: k for k, block in enumerate(blocks)}
    for k, block in enumerate(blocks):
        last = block.instructions[-1]
        # Where no instruction before the branch takes threads away some are active, and it always goes the same way.
        some_active = not any(i.masks for i in block.instructions)
        ends = last.name in ("s_branch", "s_endpgm") or (last.name == "s_cbranch_execnz" and some_active)
        if not ends and k + 1 < len(blocks):
            block.following.append(k + 1)
        if last.target is None or (last.name == "s_cbranch_execz" and some_active):
            continue
        if at.get(last.target) not in block.following:
            block.following.append(at[last.target])
    return blocks


# How a wave whose threads go either way turns from the first alternative to the second.
ELSE = re.compile(r"^s_(or|andn2|and_not1)_saveexec_")


def alternatives(blocks):
    """{block before the second of two alternatives: block before the first, which leads there past it}."""
    skips = {}
    for k, block in enumerate(blocks):
        if block.instructions[-1].name == "s_cbranch_execz" and len(block.following) == 2:
            skips.setdefault(block.following[1], k)
    return {at: k for at, k in skips.items() if k < at and at in skips.values() and blocks[at].turns}


def vector_path(blocks):
    """The instructions of a wave whose threads all have whole vectors, and whose operands repeat no value.

    It is the way through the blocks, each at most once, that has most 16-byte accesses and no narrower one; of those
    the one that divides by multiplication, not as for an index beyond 32 bits; of those, as formulas may branch, the
    longest. Of two alternatives it takes one. None if no way has 16-byte accesses.
    """
    # The blocks are walked from the end in an order in which each comes after all that follow it, jumps back left out.
    order, state = [], {}
    stack = [(0, iter(blocks[0].following))]
    state[0] = 1
    while stack:
        at, following = stack[-1]
        for other in following:
            if other not in state:
                state[other] = 1
                stack.append((other, iter(blocks[other].following)))
                break
        else:
            stack.pop()
            state[at] = 2
            order.append(at)
    rank = {at: k for k, at in enumerate(order)}
    second = alternatives(blocks)
    best = {}  # by block, and whether the first of two alternatives was left out before it
    for at in order:
        block = blocks[at]
        if block.narrow:
            continue
        choices = {False: block.following}
        if at in second:
            choices = {True: block.following[:1], False: block.following[1:]}
        for left_out, following in choices.items():
            keys = [(other, second.get(other) == at) for other in following if rank[other] < rank[at]]
            ahead = [best[key] for key in keys if key in best]
            ends = block.instructions[-1].name == "s_endpgm" or any(rank[other] >= rank[at] for other in following)
            if not ahead and not ends:
                continue
            wide, division, work, path = max(ahead, default=(0, 0, 0, ()), key=lambda way: way[:3])
            best[at, left_out] = wide + block.wide, division - block.division, work + block.work, (at, path)
    if (0, False) not in best or not best[0, False][0]:
        return None
    instructions, step = [], best[0, False][3]
    while step:
        instructions += blocks[step[0]].instructions
        step = step[1]
    return instructions


def reduction_loop(blocks):
    """The instructions of the loop with most loads, and their number: what a reduction does for so many elements."""
    best = (0, None)
    for k, block in enumerate(blocks):
        for other in block.following:
            if other <= k:
                inside = [i for b in blocks[other : k + 1] for i in b.instructions]
                loads = sum(i.name.startswith("global_load_") for i in inside)
                # Of nested loops the inner one.
                if loads > best[0] or (loads == best[0] and best[1] and len(inside) < len(best[1])):
                    best = (loads, inside)
    return best


# Waves per SIMD -----------------------------------------------------------------------------------------------------


def register_file(target, wave_size):
    """(registers of a lane in a SIMD, granule of allocation, most waves).

    As LLVM's AMDGPUBaseInfo.cpp has them: getTotalNumVGPRs, getVGPRAllocGranule, getMaxWavesPerEU.
    """
    number = target[3:]
    if number in ("90a", "940", "941", "942", "950", "9-4-generic"):
        return 512, 8, 8
    if number.startswith("9"):
        return 256, 4, 10
    half = 2 if wave_size == 64 else 1
    if number.startswith("10"):
        is_first = number.startswith("101") or number == "10-1-generic"
        return 1024 // half, 8 // half if is_first else 16 // half, 20 if is_first else 16
    if number in ("1100", "1101", "1151") or number.startswith("12"):
        return 1536 // half, 24 // half, 16
    return 1024 // half, 16 // half, 16


def waves_per_simd(target, wave_size, vgprs, agprs, sgprs):
    total, granule, most = register_file(target, wave_size)
    # Where the accumulation registers are part of the same file, .vgpr_count is the sum of both.
    needed = vgprs if total == 512 else max(vgprs, agprs)
    waves = min(most, total // (max(needed, 1) + -max(needed, 1) % granule))
    if target[3:].startswith("9") and most == 10:  # 800 scalar registers; 10 waves to 80, 9 to 88, 8 to 100
        waves = min(waves, 10 if sgprs <= 80 else 9 if sgprs <= 88 else 8 if sgprs <= 100 else 7)
    return waves


# Rows ---------------------------------------------------------------------------------------------------------------


def parse_name(name):
    """Of "fl_swish_forward_bfloat16_float32_rows_full": ("swish_forward", "bfloat16", "float32", "rows_full")."""
    rest = name[len("fl_") :]
    mode = next(mode for mode in MODES if rest.endswith("_" + mode))
    kernel, found = rest[: -len(mode) - 1], []
    while kernel.rpartition("_")[2] in DTYPES:
        kernel, _, dtype = kernel.rpartition("_")
        found.insert(0, dtype)
    return kernel, found[0], found[-1], mode


TUNING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "gpu", "tuning.def")


@functools.cache
def tuning():
    """{target: (vectors on their way, the same of pairs)}; "" stands for AMD's targets that are not in the list."""
    with open(TUNING, encoding="utf-8") as opened:
        text = opened.read()
    rows = {
        family: (int(a), int(b)) for family, a, b in re.findall(r"^FL_TUNING\((\w+), (\d+), (\d+),", text, re.MULTILINE)
    }
    tuned = re.findall(r"^FL_TUNED\((\w+), (\w+)\)", text, re.MULTILINE)
    return {"": rows["gcn"], **{name.replace("_", "-"): rows[family] for name, family in tuned}}


def vectors_together(target, kernel, dtypes, mode):
    """How many vectors of each operand a thread has on their way at once: see lib/gpu/tuning.h."""
    has_eight_operands = "glu" in kernel and kernel.endswith("_double_backward")
    vectors, pairs = tuning().get(target, tuning()[""])
    if mode == "vector" and len(dtypes) == 1:
        return 1 if has_eight_operands else vectors
    return pairs if mode == "pairs" and not has_eight_operands else 1


def rounded(count, elements):
    return round(count / elements, 1)


def row_of(target, name, notes, instructions, compiler=""):
    kernel, operand, result, mode = parse_name(name)
    blocks = blocks_of(instructions)
    wave_size = int(notes[".wavefront_size"])
    agprs = int(notes.get(".agpr_count", 0))
    vgprs, sgprs = int(notes[".vgpr_count"]), int(notes[".sgpr_count"])
    path = vector_path(blocks) if mode != "element" else None
    elements = (
        VECTOR_BYTES // min(DTYPES[operand], DTYPES[result]) * vectors_together(target, kernel, {operand, result}, mode)
    )
    if int(notes[".group_segment_fixed_size"]) > 0:
        elements, path = reduction_loop(blocks)
    counted = path or []
    return {
        "target": target,
        "compiler": compiler,
        "name": name,
        "kernel": kernel,
        "dtypes": operand if operand == result else f"{operand}, {result}",
        "mode": mode,
        "vgprs": vgprs,
        "agprs": agprs,
        "sgprs": sgprs,
        "scratch": int(notes[".private_segment_fixed_size"]) + (notes.get(".uses_dynamic_stack") == "true"),
        "vgpr-spills": int(notes[".vgpr_spill_count"]),
        "sgpr-spills": int(notes[".sgpr_spill_count"]),
        "lds": int(notes[".group_segment_fixed_size"]),
        "waves": waves_per_simd(target, wave_size, vgprs, agprs, sgprs),
        "kernarg": int(notes[".kernarg_segment_size"]),
        "max-threads": int(notes[".max_flat_workgroup_size"]),
        "wave-size": wave_size,
        "wide-loads": sum(bool(WIDE_LOAD.match(i.name)) for i in counted),
        "wide-stores": sum(bool(WIDE_STORE.match(i.name)) for i in counted),
        "per-element": rounded(sum(not NO_WORK.match(i.name) for i in counted), elements) if path else None,
        "transcendental": rounded(sum(bool(TRANSCENDENTAL.match(i.name)) for i in counted), elements) if path else None,
        "double": 0 if "float64" in (operand, result) else sum(bool(DOUBLE.search(i.name)) for i in instructions),
        "flat": sum(bool(FLAT.match(i.name)) for i in instructions),
    }


FLAGS = re.compile(r"^  Flags: +(.*)$", re.MULTILINE)
ABI = re.compile(r"^  ABI Version: +(\d+)$", re.MULTILINE)


def code_objects(files):
    objects = []
    for file in files:
        with open(file, "rb") as opened:
            objects += bundled(opened.read())
    if not objects:
        raise Unreadable("no AMD code in " + ", ".join(files))
    return objects


def read(files, llvm):
    """All rows, and of each target the ELF header's flags and the code object's version."""
    objects = code_objects(files)
    versions = {compiler_version(code) for _, code in objects}
    if len(versions) != 1 or "" in versions:
        raise Unreadable(f"the code was built by {len(versions)} versions of clang, or by none that left its mark")
    (version,) = versions
    readelf, objdump = find_tools(llvm, version)
    rows, headers = [], {}
    with tempfile.TemporaryDirectory() as folder:
        paths = defaultdict(list)
        for k, (target, code) in enumerate(objects):
            paths[target].append(os.path.join(folder, f"{k}.co"))
            with open(paths[target][-1], "wb") as opened:
                opened.write(code)
        # One target at a time: llvm-objdump takes all files of a call for the first one's target.
        for target, some in paths.items():
            notes = by_file(output_of([readelf, "-h", "--notes", *some]), some, r"^File: (.*)$")
            code = by_file(output_of([objdump, "-d", *some]), some, r"^(\S+\.co):\tfile format .*$")
            for note, text in zip(notes, code):
                header = (FLAGS.search(note).group(1), int(ABI.search(note).group(1)) + 2)
                if headers.setdefault(target, header) != header:
                    raise ValueError(f"{target}: the code objects differ in flags or version")
                instructions = kernels_in_disassembly(text)
                rows += [
                    row_of(target, name, kept, instructions[name], version)
                    for name, kept in kernels_in_notes(note).items()
                ]
    return rows, headers


# Limits -------------------------------------------------------------------------------------------------------------

COMPARISONS = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}
UNLIMITED = "any"


def read_limits(path):
    limits = []
    with open(path, encoding="utf-8") as opened:
        for number, line in enumerate(opened, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) == 4 and words[2] in NUMBERS and words[3] == UNLIMITED:
                words.append("0")
            elif len(words) != 5 or words[2] not in NUMBERS or words[3] not in COMPARISONS:
                raise ValueError(f"{path}:{number}: expected TARGETS KERNELS COLUMN <=|>=|= NUMBER, or any")
            limits.append((words[0], words[1], words[2], words[3], float(words[4])))
    return limits


def violations(rows, limits):
    """What is wrong, a line each; of the limits that fit a row and a column the last one counts."""
    wrong = []
    targets = {row["target"] for row in rows}
    by_name = defaultdict(set)
    for row in rows:
        by_name[row["name"]].add(row["target"])
    wrong += [f"{target} {name}: is missing" for name, has in by_name.items() for target in sorted(targets - has)]
    for row in rows:
        counts = {}
        place = f"{row['target']}@{row['compiler']}"
        for k, (where, names, column, _, _) in enumerate(limits):
            where = where if "@" in where else where + "@*"
            if fnmatch.fnmatchcase(place, where) and fnmatch.fnmatchcase(row["name"], names):
                counts[column] = k
        for column, k in counts.items():
            _, _, _, comparison, limit = limits[k]
            if comparison == UNLIMITED:
                continue
            if row[column] is None or not COMPARISONS[comparison](row[column], limit):
                wrong.append(f"{row['target']} {row['name']}: {column} is {row[column]}, limit {comparison} {limit:g}")
        wrong += [
            f"{row['target']} {row['name']}: no limit for {column}"
            for column in ("scratch", "vgprs")
            if column not in counts
        ]
    return wrong


# The page -----------------------------------------------------------------------------------------------------------

FULL_TARGET = "gfx1151"


def table(head, lines):
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " ---: |" * (len(head) - 1)
    for line in lines:
        yield "| " + " | ".join("-" if cell is None else str(cell) for cell in line) + " |"


def in_order(targets):
    def key(target):
        generic = "-" in target  # gfx10-3-generic; of gfx1151 the last two digits are minor version and stepping
        return generic, int(target[3:].partition("-")[0] if generic else target[3:-2]), target

    return sorted(targets, key=key)


OVERVIEW = (  # heading, column, the worst of
    ("wave", "wave-size", max),
    ("VGPRs", "vgprs", max),
    ("AGPRs", "agprs", max),
    ("SGPRs", "sgprs", max),
    ("waves", "waves", min),
    ("scratch", "scratch", max),
    ("VGPR spills", "vgpr-spills", max),
    ("SGPR spills", "sgpr-spills", max),
    ("LDS", "lds", max),
    ("kernarg", "kernarg", max),
    ("threads", "max-threads", max),
    ("double", "double", max),
    ("flat", "flat", max),
)


def overview(rows, headers):
    """A line for each target: its code objects' header, and the worst of all its kernels."""
    by_target = defaultdict(list)
    for row in rows:
        by_target[row["target"]].append(row)
    lines = []
    for target in in_order(by_target):
        some = by_target[target]
        flags, version = headers[target]
        worst = [pick(row[column] for row in some) for _, column, pick in OVERVIEW]
        lines.append([target, len(some), f"V{version}", flags.replace(f", {target}", ""), *worst])
    yield from table(["target", "kernels", "code object", "flags", *(heading for heading, _, _ in OVERVIEW)], lines)


def matrix(rows, column, pick=max):
    """Kernels down, targets across; in each cell the worst of the rows."""
    cells = defaultdict(list)
    for row in rows:
        if row[column] is not None:
            cells[row["kernel"], row["target"]].append(row[column])
    targets = in_order({target for _, target in cells})
    lines = []
    for kernel in sorted({kernel for kernel, _ in cells}):
        found = [cells[kernel, target] for target in targets]
        lines.append([f"`{kernel}`", *(pick(cell) if cell else None for cell in found)])
    yield from table(["kernel", *(target[3:].replace("generic", "g") for target in targets)], lines)


FULL = (
    ("VGPRs", "vgprs"),
    ("SGPRs", "sgprs"),
    ("waves", "waves"),
    ("scratch", "scratch"),
    ("VGPR spills", "vgpr-spills"),
    ("SGPR spills", "sgpr-spills"),
    ("LDS", "lds"),
    ("kernarg", "kernarg"),
    ("16-byte loads", "wide-loads"),
    ("16-byte stores", "wide-stores"),
    ("per element", "per-element"),
    ("transcendental", "transcendental"),
)


def full(rows):
    """Every kernel on one target."""
    by_kernel = defaultdict(list)
    for row in rows:
        if row["target"] == FULL_TARGET:
            by_kernel[row["kernel"]].append(row)
    for kernel in sorted(by_kernel):
        some = sorted(by_kernel[kernel], key=lambda row: (row["dtypes"], MODES.index(row["mode"])))
        lines = [[f"{row['dtypes']}, {row['mode']}", *(row[column] for _, column in FULL)] for row in some]
        yield f"<details><summary><code>{kernel}</code>: {len(some)} kernels</summary>"
        yield ""
        yield from table(["dtypes, mode", *(heading for heading, _ in FULL)], lines)
        yield ""
        yield "</details>"


def sections(rows, headers):
    """What stands in the page between "<!-- NAME -->" and "<!-- end -->"."""
    fast = [row for row in rows if row["mode"] == "vector" or row["kernel"] == "column_sum"]

    def of(*dtypes):
        return [row for row in fast if row["dtypes"] in dtypes]

    return {
        "targets": overview(rows, headers),
        "registers": matrix(rows, "vgprs"),
        "waves": matrix(fast, "waves", min),
        "instructions 16": matrix(of("float16", "bfloat16"), "per-element"),
        "instructions 32": matrix(of("float32"), "per-element"),
        "instructions 64": matrix(of("float64"), "per-element"),
        "transcendental": matrix(of("float16", "bfloat16", "float32"), "transcendental"),
        "full": full(rows),
    }


def rewrite(page, parts):
    with open(page, encoding="utf-8") as opened:
        text = opened.read()
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        if text.count(begin) != 1:
            raise ValueError(f"{page}: expected one line {begin.strip()}")
        before, _, rest = text.partition(begin)
        text = before + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2]
    with open(page, "w", encoding="utf-8") as opened:
        opened.write(text)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Reads the AMD machine code in a built library.")
    parser.add_argument("action", choices=("targets", "show", "check", "page"))
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--llvm", help="the folder of llvm-readelf and llvm-objdump")
    parser.add_argument("--limits", help="the limits, for check")
    parser.add_argument("--page", help="the page to rewrite, for page")
    options = parser.parse_args(arguments)
    try:
        if options.action == "targets":
            print("\n".join(in_order({target for target, _ in code_objects(options.files)})))
            return 0
        rows, headers = read(options.files, options.llvm)
    except Unreadable as error:
        print(error, file=sys.stderr)
        return SKIPPED
    if options.action == "check":
        wrong = violations(rows, read_limits(options.limits))
        print("\n".join(wrong) or f"{len(rows)} kernels of {len(headers)} targets are within the limits")
        return 1 if wrong else 0
    if options.action == "page":
        rewrite(options.page, sections(rows, headers))
        return 0
    columns = ("target", "name", *NUMBERS)
    print("\t".join(columns))
    for row in rows:
        print("\t".join("-" if row[column] is None else str(row[column]) for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
