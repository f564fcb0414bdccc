# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""All kernels of a library are one program here: no two may give one name to different things."""

import pytest

from tests.support.build_tree import ROOT
from tests.support.definitions import clashes, definitions

LIBRARIES = ["op_kernel", "tests/simulator/op_project/op_kernel", "tests/simulator/kernels"]


@pytest.mark.parametrize("folder", LIBRARIES)
def test_the_kernels_of_a_library_share_no_names(folder):
    kernels = sorted((ROOT / folder).glob("*.cpp"))
    assert len(kernels) >= 2
    assert clashes(kernels) == []


def test_the_scan_sees_the_kernels_classes():
    found = {}
    for file in (ROOT / "op_kernel").rglob("*.h"):
        for kind, name in definitions(file):
            found.setdefault(kind, set()).add(name)
    assert {"kda::bwd_finalize::Cube", "kda::FwdPrepareVector", "kda::WorkspaceRing"} <= found[
        "type"
    ]
    assert len(found["function"]) > 10


# What two kernels hold, and the name that clashes (None: nothing does).
CASES = {
    "class": ("namespace kda {\nclass Cube {};\n}", "type kda::Cube"),
    "nested namespace": ("namespace kda::x {\nstruct P { int a; };\n}", "type kda::x::P"),
    "template": ("template <typename T, int N = 2>\nclass Ring { T t[N]; };", "type Ring"),
    "specialisation": ("template <>\nstruct Size<float> { int n; };", "type Size<float>"),
    "derived": ("struct A : public Base<int> { int f() { return 1; } };", "type A"),
    "aligned": ("struct alignas(32) Slot { int a; };", "type Slot"),
    "enum class": ("enum class Kind : int { kA, kB };", "type Kind"),
    "in extern C": ('extern "C" {\nstruct Raw { int a; };\n}', "type Raw"),
    "inner class": ("namespace {\nint z;\n}\nstruct A { struct B {}; };", "type A::B"),
    "function": ("namespace kda {\ninline int Rows(int n) { return n; }\n}", "function kda::Rows"),
    "member": (
        "namespace kda {\nint Cube::Rows(int n) { return n; }\n}",
        "function kda::Cube::Rows",
    ),
    "unnamed namespace": ("namespace kda {\nnamespace {\nclass Cube {};\n}\n}", None),
    "static function": ("static int Rows(int n) { return n; }", None),
    "declaration": ("class Cube;\nstruct Slot *first;\nenum class Kind : int;", None),
    "local class": ("static void F() { struct Local { int a; }; }", None),
    "comment": ("// class Cube {\n/* struct Cube { */", None),
    "macro": ("TEST_KERNEL(first) { int a = 0; }", None),
    "variable": ("struct Slot slot = {1, 2};\nconstexpr int kList[] = {1, 2};", None),
}


@pytest.mark.parametrize("text, expected", CASES.values(), ids=CASES)
def test_clashes_are_found(tmp_path, text, expected):
    for name in ("one.cpp", "two.cpp"):
        (tmp_path / name).write_text(f"{text}\nstatic int {name[:3]};\n")
    found = clashes([tmp_path / "one.cpp", tmp_path / "two.cpp"])
    if expected is None:
        assert found == []
    else:
        assert f"{expected} is defined in one.cpp, two.cpp" in found


def test_headers(tmp_path):
    """A shared header is one definition; headers of different kernels are two; overloads that one
    kernel includes together are none."""

    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        return clashes([tmp_path / "one.cpp", tmp_path / "two.cpp"])

    shared = '#include "shared.h"\n'
    kernels = {"one_cpp": shared, "two_cpp": shared}
    assert write(shared_h="class Cube {};", **kernels) == []
    kernels = {"one_cpp": shared + '#include "own.h"\n', "two_cpp": shared}
    assert write(own_h="class Cube {};", **kernels) == ["type Cube is defined in own.h, shared.h"]
    both = shared + '#include "own.h"\n'
    overloads = {
        "shared_h": "int Min(int a) { return a; }",
        "own_h": "float Min(float a) { return a; }",
    }
    assert write(one_cpp=both, two_cpp=both, **overloads) == []
    kernels = {"one_cpp": shared, "two_cpp": '#include "own.h"\n'}
    assert write(**overloads, **kernels) == ["function Min is defined in own.h, shared.h"]
