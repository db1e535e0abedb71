"""The reader of AMD machine code, on code objects and instructions written by hand."""

import importlib.util
import os
import struct

import pytest


@pytest.fixture(scope="module")
def codegen():
    path = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "codegen.py")
    spec = importlib.util.spec_from_file_location("codegen", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bundle(entries):
    """An offload bundle, as clang's bundler lays it out."""
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    place = len(header) + sum(24 + len(name) for name in entries)
    body = b""
    for name, code in entries.items():
        header += struct.pack("<3Q", place + len(body), len(code), len(name)) + name.encode()
        body += code
    return header + body


def test_bundles_are_found_wherever_they_lie(codegen):
    first = bundle({"host-x86_64-unknown-linux--": b"", "hipv4-amdgcn-amd-amdhsa--gfx1151": b"one"})
    second = bundle({"hipv4-amdgcn-amd-amdhsa--gfx10-3-generic": b"two", "hipv4-amdgcn-amd-amdhsa--gfx942": b"three"})
    found = list(codegen.bundled(b"\x7fELF" + first + b"\0" * 100 + second))
    assert found == [("gfx1151", b"one"), ("gfx10-3-generic", b"two"), ("gfx942", b"three")]
    with pytest.raises(ValueError, match="no known form"):
        list(codegen.bundled(bundle({"openmp-amdgcn-amd-amdhsa--gfx942": b"code"})))


@pytest.mark.parametrize(
    "name, parts",
    [
        ("fl_swish_forward_float32_vector", ("swish_forward", "float32", "float32", "vector")),
        (
            "fl_geglu_tanh_backward_bfloat16_float32_rows_full",
            ("geglu_tanh_backward", "bfloat16", "float32", "rows_full"),
        ),
        ("fl_column_sum_float64_element", ("column_sum", "float64", "float64", "element")),
    ],
)
def test_names(codegen, name, parts):
    assert codegen.parse_name(name) == parts


def disassembly(lines):
    """What llvm-objdump prints of a kernel; a branch names the number of the line that it leads to."""
    text = "0000000000001000 <kernel>:\n"
    for k, line in enumerate(lines):
        name, _, to = line.partition(" ")
        jump = f" <kernel+0x{4 * int(to):x}>" if to else ""
        text += f"\t{name}{' 7' if to else ''}      // {0x1000 + 4 * k:012X}: BF800000{jump}\n"
    return text


VECTOR_AND_TAIL = [
    "v_cmpx_lt_u32_e32",  # 0
    "s_cbranch_execz 10",
    "s_waitcnt",
    "global_load_b128",
    "v_exp_f32_e32",
    "s_cbranch_vccz 7",  # a formula's own branch
    "v_mul_f32_e32",
    "v_dual_add_f32",  # 7
    "global_store_b128",
    "s_endpgm",
    "global_load_b32",  # 10: the tail
    "v_rcp_f32_e32",
    "v_rcp_f32_e32",
    "global_store_b32",
    "s_endpgm",
    "s_code_end",
]


def test_vector_path_leaves_out_the_tail_and_takes_a_formulas_branches(codegen):
    instructions = codegen.kernels_in_disassembly(disassembly(VECTOR_AND_TAIL))["kernel"]
    path = codegen.vector_path(codegen.blocks_of(instructions))
    assert [i.name for i in path] == [line.split()[0] for line in VECTOR_AND_TAIL[:10]]


# Threads of a wave that have two vectors left, and those that have one: the two alternatives stand one after the other.
TWO_VECTORS_OR_ONE = [
    "s_and_saveexec_b64",  # 0
    "s_xor_b64",
    "s_cbranch_execz 7",
    "global_load_b128",  # 3: one vector of two operands
    "global_load_b128",
    "v_exp_f32_e32",
    "global_store_b128",
    "s_andn2_saveexec_b64",  # 7
    "s_cbranch_execz 16",
    "global_load_b128",  # 9: two of them
    "global_load_b128",
    "global_load_b128",
    "global_load_b128",
    "v_exp_f32_e32",
    "v_exp_f32_e32",
    "global_store_b128",
    "global_store_b128",  # 16: the last one's
    "s_endpgm",
]


@pytest.mark.parametrize("turn", ["s_andn2_saveexec_b64", "s_and_not1_saveexec_b32", "s_or_saveexec_b64"])
def test_vector_path_takes_one_of_two_alternatives(codegen, turn):
    lines = [turn if "andn2" in line else line for line in TWO_VECTORS_OR_ONE]
    instructions = codegen.kernels_in_disassembly(disassembly(lines))["kernel"]
    path = codegen.vector_path(codegen.blocks_of(instructions))
    taken = [line.split()[0] for line in lines[:3] + lines[7:]]
    assert [i.name for i in path] == taken
    # In the other order the first alternative is the one, and the second is left out.
    swapped = [*lines[:2], "s_cbranch_execz 10", *lines[9:16], turn, "s_cbranch_execz 16", *lines[3:7], *lines[16:]]
    instructions = codegen.kernels_in_disassembly(disassembly(swapped))["kernel"]
    path = codegen.vector_path(codegen.blocks_of(instructions))
    assert [i.name for i in path] == [line.split()[0] for line in swapped[:12] + swapped[16:]]


# Blocks that have two vectors a thread, and those that take what is left over. The end of these leads past the former
# by a branch that depends on the mask of active threads, of which there always are some.
TWO_VECTORS_IN_FULL_BLOCKS = [
    "s_cmp_ge_u32",  # 0
    "s_cbranch_scc0 8",
    "s_and_saveexec_b64",  # 2: what is left over
    "s_cbranch_execz 6",
    "global_load_dwordx4",
    "global_store_dwordx4",
    "s_or_b64",  # 6
    "s_cbranch_execnz 12",
    "global_load_dwordx4",  # 8: two vectors
    "global_load_dwordx4",
    "global_store_dwordx4",
    "global_store_dwordx4",
    "s_endpgm",  # 12
]


def test_vector_path_knows_that_some_threads_are_active(codegen):
    lines = TWO_VECTORS_IN_FULL_BLOCKS
    swapped = [*lines[:7], "s_cbranch_execz 9", "s_endpgm", *lines[8:]]
    swapped[1] = "s_cbranch_scc0 9"
    for some in (lines, swapped):
        instructions = codegen.kernels_in_disassembly(disassembly(some))["kernel"]
        path = codegen.vector_path(codegen.blocks_of(instructions))
        assert [i.name for i in path] == ["s_cmp_ge_u32", "s_cbranch_scc0", *lines[8:]]


@pytest.mark.parametrize(
    "target, name, elements",
    [
        ("gfx906", "fl_swiglu_forward_float32_pairs", 8),  # two vectors together: lib/gpu/tuning.def
        ("gfx906", "fl_swiglu_forward_bfloat16_pairs", 16),
        ("gfx906", "fl_swiglu_backward_float32_float16_pairs", 16),
        ("gfx906", "fl_swiglu_double_backward_float32_pairs", 4),  # eight operands: one
        ("gfx906", "fl_swiglu_forward_float32_pairs_full", 4),
        ("gfx906", "fl_swiglu_forward_float32_rows", 4),
        ("gfx906", "fl_swiglu_forward_float32_vector", 4),
        ("gfx942", "fl_swiglu_forward_float32_vector", 8),
        ("gfx9-4-generic", "fl_swiglu_forward_float32_vector", 8),
        ("gfx942", "fl_swiglu_forward_float32_rows", 4),
        ("gfx942", "fl_swiglu_forward_float16_float32_vector", 8),  # of two dtypes: one, as long as the narrower one's
        ("gfx942", "fl_swish_double_backward_float32_vector", 8),
        ("gfx942", "fl_swiglu_double_backward_float32_vector", 4),
    ],
)
def test_elements_that_are_divided_by(codegen, target, name, elements):
    instructions = codegen.kernels_in_disassembly(disassembly(TWO_VECTORS_OR_ONE))["kernel"]
    row = codegen.row_of(target, name, {**NOTES, ".wavefront_size": "64"}, instructions)
    assert (row["wide-loads"], row["wide-stores"]) == (4, 2)
    assert row["per-element"] == round(13 / elements, 1) and row["transcendental"] == round(2 / elements, 1)


def test_no_vector_path(codegen):
    lines = [line.replace("b128", "b64") for line in VECTOR_AND_TAIL]
    instructions = codegen.kernels_in_disassembly(disassembly(lines))["kernel"]
    assert codegen.vector_path(codegen.blocks_of(instructions)) is None


def test_code_of_another_target_is_no_instruction(codegen):
    with pytest.raises(ValueError, match="not an instruction"):
        codegen.kernels_in_disassembly(disassembly(["s_load_b64", ".long", "s_endpgm"]))


NOTES = {
    ".wavefront_size": "32",
    ".vgpr_count": "24",
    ".sgpr_count": "18",
    ".private_segment_fixed_size": "0",
    ".vgpr_spill_count": "0",
    ".sgpr_spill_count": "0",
    ".group_segment_fixed_size": "0",
    ".kernarg_segment_size": "200",
    ".max_flat_workgroup_size": "256",
}
LIMITS = """
*      *            scratch      =  0   # a comment
*      *            vgpr-spills  =  0
*      *            vgprs        <= 32
gfx11* *_vector     vgprs        <= 24
*      *            flat         =  0
*      *            double       =  0
*      *_vector     wide-loads   >= 1
*      *_vector     per-element  <= 2
"""


@pytest.mark.parametrize(
    "notes, lines, complaint",
    [
        ({}, {}, None),
        ({".vgpr_count": "25"}, {}, "vgprs is 25, limit <= 24"),
        ({".private_segment_fixed_size": "4"}, {}, "scratch is 4, limit = 0"),
        ({".uses_dynamic_stack": "true"}, {}, "scratch is 1, limit = 0"),
        ({".vgpr_spill_count": "1"}, {}, "vgpr-spills is 1, limit = 0"),
        ({}, {6: "v_mul_f64_e32"}, "double is 1, limit = 0"),
        ({}, {11: "flat_load_b32"}, "flat is 1, limit = 0"),
        ({}, {3: "global_load_b96", 8: "global_store_b96"}, "wide-loads is 0, limit >= 1"),
    ],
)
def test_limits(codegen, tmp_path, notes, lines, complaint):
    (tmp_path / "limits.txt").write_text(LIMITS)
    code = [lines.get(k, line) for k, line in enumerate(VECTOR_AND_TAIL)]
    instructions = codegen.kernels_in_disassembly(disassembly(code))["kernel"]
    row = codegen.row_of("gfx1151", "fl_swish_forward_float32_vector", {**NOTES, **notes}, instructions)
    wrong = codegen.violations([row], codegen.read_limits(str(tmp_path / "limits.txt")))
    if complaint is None:
        assert wrong == []
    else:
        assert f"gfx1151 fl_swish_forward_float32_vector: {complaint}" in wrong
    other = {**row, "target": "gfx1201"}
    assert len(codegen.violations([other], [])) == 2  # columns that need a limit


@pytest.mark.parametrize(
    "more, complaint",
    [
        ({}, None),
        ({9: "v_mul_f32_e32", 10: "v_mul_f32_e32"}, "wide-loads is 2, limit >= 4"),  # one vector at a time
        ({13: "\n".join(["v_mul_f32_e32"] * 500)}, "per-element is 64.0, limit <= 58"),
    ],
)
def test_the_kernels_limits_for_pairs(codegen, more, complaint):
    limits = codegen.read_limits(os.path.join(os.path.dirname(__file__), "..", "..", "kernels", "codegen-limits.txt"))
    code = "\n".join(more.get(k, line) for k, line in enumerate(TWO_VECTORS_OR_ONE)).splitlines()
    grown = len(code) - len(TWO_VECTORS_OR_ONE)
    code = [line.replace(" 16", f" {16 + grown}") for line in code]
    instructions = codegen.kernels_in_disassembly(disassembly(code))["kernel"]
    notes = {**NOTES, ".wavefront_size": "64"}
    row = codegen.row_of("gfx906", "fl_swiglu_forward_float32_pairs", notes, instructions, "19")
    wrong = codegen.violations([row], limits)
    assert wrong == ([] if complaint is None else [f"gfx906 fl_swiglu_forward_float32_pairs: {complaint}"])


def test_limits_of_one_compilers_code(codegen, tmp_path):
    instructions = codegen.kernels_in_disassembly(disassembly(VECTOR_AND_TAIL))["kernel"]
    (tmp_path / "limits.txt").write_text(
        "* * scratch = 0\n* * vgprs <= 9\n*@15 *_vector vgprs any\ngfx11*@16 * vgprs <= 30\n"
    )
    limits = codegen.read_limits(str(tmp_path / "limits.txt"))
    for compiler, wrong in ("15", 0), ("16", 0), ("19", 1):
        row = codegen.row_of("gfx1151", "fl_swish_forward_float32_vector", NOTES, instructions, compiler)
        assert len(codegen.violations([row], limits)) == wrong


def test_a_kernel_that_a_target_lacks(codegen):
    instructions = codegen.kernels_in_disassembly(disassembly(VECTOR_AND_TAIL))["kernel"]
    names = "fl_swish_forward_float32_vector", "fl_swish_backward_float32_vector"
    rows = [codegen.row_of("gfx1151", name, NOTES, instructions) for name in names]
    rows.append(codegen.row_of("gfx1201", names[0], NOTES, instructions))
    wrong = codegen.violations(rows, [("*", "*", "scratch", "=", 0.0), ("*", "*", "vgprs", "<=", 99.0)])
    assert wrong == ["gfx1201 fl_swish_backward_float32_vector: is missing"]


@pytest.mark.parametrize(
    "target, wave, vgprs, waves",  # of LLVM's tables
    [
        ("gfx906", 64, 24, 10),
        ("gfx906", 64, 25, 9),
        ("gfx906", 64, 84, 3),
        ("gfx942", 64, 64, 8),
        ("gfx942", 64, 65, 7),
        ("gfx1010", 32, 48, 20),
        ("gfx1030", 32, 65, 12),
        ("gfx1103", 32, 65, 12),
        ("gfx1151", 32, 96, 16),
        ("gfx1151", 32, 97, 12),
        ("gfx1201", 32, 97, 12),
        ("gfx11-generic", 32, 65, 12),
    ],
)
def test_waves(codegen, target, wave, vgprs, waves):
    assert codegen.waves_per_simd(target, wave, vgprs, 0, 20) == waves
