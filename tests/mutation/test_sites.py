# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Finding mutants in C++ text, and that a mutant is the change that its name says."""

import pytest

from tests.mutation import build, sites
from tests.mutation.source import Source, apply


@pytest.fixture(scope="module")
def sources():
    return sites.load(build.KERNELS)


@pytest.fixture(scope="module")
def mutants(sources):
    return sites.find(sources)


def found(kind, text):
    """{what: mutated text} of one made-up file."""
    source = Source("x.h", text)
    tree = {"x.h": source}
    return {m.what: m.texts(tree)["x.h"] for m in sites.find(tree, (kind,))}


def test_comments_strings_and_directives_are_not_code():
    text = '#define A f(\n// f(1)\n/* f(2)\n f(3) */ g("f(4) \\" //", \'(\'); f(5);\n'
    source = Source("x", text)
    (call,) = source.calls("f")
    assert source.slice(call.span) == "f(5)" and source.line(call.start) == 4
    assert len(source.code) == len(text)


def test_calls_have_receivers_templates_and_balanced_arguments():
    source = Source("x", "a = q_.template DeQue<Local<T>>(); AscendC::F<1, P>(g(a, b), c[i, 2]);")
    take, call = source.calls("DeQue|F")
    assert (take.receiver, source.slice(take.template)) == ("q_.", "Local<T>")
    assert not source.is_statement(take)
    assert call.receiver == "AscendC::" and source.is_statement(call)
    assert [source.slice(span) for span in call.arguments] == ["g(a, b)", "c[i, 2]"]
    assert [source.slice(span) for span in source.split(*call.template)] == ["1", "P"]


def test_comparisons_are_not_templates():
    source = Source("x", "for (i = 0; F < n; ++i) { F(i > 2, j->k); }")
    (call,) = source.calls("F")
    assert [source.slice(span) for span in call.arguments] == ["i > 2", "j->k"]


def test_functions_are_known_by_their_bodies():
    text = "__aicore__ inline A() : a_(b) {}\n__aicore__ static inline int Get(int i) const { x; }"
    source = Source("x", text)
    assert source.function_at(text.index("x;")) == "Get"
    assert source.function_at(3) == ""


def test_edits_keep_line_numbers():
    text = "a;\nf(1,\n  2);\nb;\n"
    assert apply(text, [(3, 12, "")]) == "a;\n\n;\nb;\n"
    with pytest.raises(ValueError, match="overlapping"):
        apply(text, [(0, 5, ""), (4, 6, "")])
    with pytest.raises(ValueError, match="adds lines"):
        apply(text, [(0, 1, "\n")])


def test_a_flag_goes_with_its_wait():
    text = "SetFlag<E::V_MTE3>(a); g(); WaitFlag<E::V_MTE3>(a); WaitFlag<E::V_MTE3>(other);"
    got = found("flag", text)
    assert got["V_MTE3 removed"] == "; g(); ; WaitFlag<E::V_MTE3>(other);"
    weak = got["V_MTE3 with another destination: V_MTE2"]
    assert weak == "SetFlag<E::V_MTE2>(a); g(); WaitFlag<E::V_MTE2>(a); WaitFlag<E::V_MTE3>(other);"


def test_hand_overs_come_too_early():
    text = (
        "__aicore__ void f() { t = q_.AllocTensor<int>(); g(t); q_.EnQue(t);"
        " t = q_.template DeQue<int>(); g(t); if (x) { q_.FreeTensor(t); } q_.FreeTensor(t); }"
    )
    enque, free = found("queue", text).values()
    assert "t = ::weaken::AllocEnQue<int>(q_); g(t); ;" in enque and "DeQue<int>(); g" in enque
    assert "t = ::weaken::DeQueFree<int>(q_); g(t); if (x) { ; } ; }" in free


def test_hand_overs_of_helpers_are_one_mutant():
    text = (
        "__aicore__ T Alloc() { return q_.AllocTensor<int>(); }\n"
        "__aicore__ void Put(T t) { q_.EnQue(t); }\n__aicore__ void Put2(T t) { q_.EnQue(t); }\n"
    )
    (mutated,) = found("queue", text).values()
    assert mutated.count("weaken") == 1 and "EnQue(t)" not in mutated


def test_an_edge_goes_everywhere():
    both = {
        "a.h": Source("a.h", "using Ready = CubeToVectorFlag<3>;\nvoid f() { Ready::Set(); }"),
        "b.h": Source("b.h", "void g() { Ready::Wait(); VectorToCubeFlag<kX>::Set(); }"),
    }
    removed, moved, *_ = sites.find(both, ("cross",))
    assert removed.what == "Ready removed" and removed.place == "a.h:2"
    texts = removed.texts(both)
    assert "f() { ; }" in texts["a.h"] and "g() { ; VectorToCubeFlag<kX>::Set(); }" in texts["b.h"]
    weak = "AscendC::CrossCoreSetFlag<::kda::kBlockScope, PIPE_MTE2>(3);"
    assert weak in moved.texts(both)["a.h"] and moved.files == ["a.h"]


def test_rings_are_counted_modulo_one_less_on_both_sides():
    text = "void f() { a = p % kDepth; }\nvoid g() { b = c % kDepth; }"
    (mutated,) = found("buffer", text).values()
    assert mutated.count("% (kDepth - 1)") == 2


def test_offsets_move_tensors_not_arrays():
    text = (
        "__aicore__ void f() { held_[lane] = a[i]; mask[0] = 1; g([&](int j) { return x[j]; }); }\n"
        "Tile held_[2];\nuint64_t mask[2] = {1, 0};\n"
    )
    assert set(found("offset", text)) == {"a[i] in f", "x[j] in f"}


def test_scalar_reads_move_by_one():
    got = found("offset", "__aicore__ int f() { return list_.GetValue(2 * slot); }")
    assert list(got) == ["GetValue(2 * slot) in f"]
    assert "GetValue((2 * slot) + 1)" in got["GetValue(2 * slot) in f"]


def test_clears_are_duplicates_of_zero():
    got = found("padding", "Duplicate(a, 0.0f, n); Duplicate(b, 1.0f, n);")
    assert list(got.values()) == ["; Duplicate(b, 1.0f, n);"]


def test_every_kind_is_found_in_the_kernels(mutants):
    count = {kind: sum(m.kind == kind for m in mutants) for kind in sites.KINDS}
    print(count)
    assert all(count[kind] >= 15 for kind in sites.KINDS), count
    assert len({m.name for m in mutants}) == len(mutants)


def test_every_synchronising_call_of_the_kernels_is_in_a_mutant(sources, mutants):
    """A site that the finder does not understand would be missing from the table without a word."""
    touched = {(file, start) for m in mutants for file, start, _, _ in m.edits}
    names = "SetFlag|WaitFlag|PipeBarrier|EnQue|FreeTensor|CrossCore(?:Set|Wait)Flag|SyncAll"
    missing = []
    for source in sources.values():
        for call in source.calls(names):
            defined = source.code[: call.start].rstrip().endswith("void")
            if not defined and (source.name, call.start) not in touched:
                missing.append(f"{source.name}:{source.line(call.start)} {call.name}")
    assert not missing


def test_mutants_keep_brackets_and_lines(sources, mutants):
    for mutant in mutants:
        for name, text in mutant.texts(sources).items():
            assert text != sources[name].text
            assert text.count("\n") == sources[name].text.count("\n"), mutant.name
            code = Source(name, text).code
            assert all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}")), mutant.name


def test_only_kernels_that_include_a_file_are_rebuilt():
    tree = {
        "one.cpp": Source("one.cpp", '#include "common/a.h"\n'),
        "two.cpp": Source("two.cpp", '#include "common/b.h"\n'),
        "common/a.h": Source("common/a.h", ""),
        "common/b.h": Source("common/b.h", '#include "a.h"\n'),
    }
    assert sites.translation_units(tree, ["common/a.h"]) == ["one.cpp", "two.cpp"]
    assert sites.translation_units(tree, ["common/b.h"]) == ["two.cpp"]
