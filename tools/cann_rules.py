# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Rules for op_kernel and op_host that a compiler with CANN's CPU headers cannot see.

Each rule is a function (source) -> iterable of (line, message). KERNEL_RULES look at kernels and
their headers, HOST_RULES at op_host, PAIR_RULES at a kernel beside its op_host file.
"""

import re

from cpp_source import loop_ranges

_ELEMENT = (
    r"(?:float|half|bfloat16_t|double|char|short|int|long|unsigned|bool|void|T"
    r"|u?int(?:8|16|32|64)_t)"
)
_STD_HEADERS_ALLOWED = {"cstdint", "stdint.h"}

# Names of CANN's advanced API (lib/*): not in this project, whatever the header that gives them.
ADVANCED = """
    Acos Acosh AscendAntiQuant AscendDequant AscendQuant Asin Asinh Atan Atanh BatchNorm Broadcast
    BroadCast Ceil Clamp ClampMax ClampMin ConfusionTranspose Cos Cosh CumSum DeepNorm Digamma
    DropOut Erf Erfc FasterGelu FasterGeluV2 Floor Fmod Frac GeGLU Gelu GroupNorm Hccl
    InitGlobalMemory LayerNorm LayerNormGrad LayerNormGradBeta Lgamma Log Log10 Log2 LogSoftMax
    Matmul MatmulImpl Mean Normalize Pad Power ReGlu ReduceXorSum RmsNorm Round
    SelectWithBytesMask Sigmoid Sign Silu SimpleSoftMax Sin Sinh SoftMax SoftmaxFlash
    SoftmaxFlashV2 SoftmaxGrad SoftmaxGradFront Sort Sum SwiGLU Swish Tan Tanh TopK Trunc UnPad
    WelfordFinalize Xor
""".split()

# What documentation of later releases has and 8.1 does not.
NEWER = {
    r"\bLocalMemAllocator\b": "LocalMemAllocator",
    r"\bLocalTensor\s*<[^<>;]*>\s*\w*\s*[({]\s*(?:AscendC\s*::\s*)?TPosition\b": (
        "LocalTensor(TPosition, addr, size)"
    ),
    r"\bReduceRepeat\b": "ReduceRepeat",
    r"\bReduceDataBlock\b": "ReduceDataBlock",
    r"\bREGISTER_NONE_TILING\b": "REGISTER_NONE_TILING",
    r"\bGET_TILING_DATA_PTR_WITH_STRUCT\b": "GET_TILING_DATA_PTR_WITH_STRUCT",
    r"\bCOPY_TILING_\w+": "COPY_TILING_*",
}


def aic_parens(source):
    """ASCEND_IS_AIC expands to constexpr(...) on the NPU: only `if ASCEND_IS_AIC {` compiles."""
    for line, match in source.find(r"(\w+|[^\s\w])?\s*\bASCEND_IS_(AIC|AIV)\b"):
        if match.group(1) != "if":
            name = f"ASCEND_IS_{match.group(2)}"
            line += match.group().count("\n")
            yield (
                line,
                f"write `if {name} {{`, without parentheses and alone, not `{_at(source, line)}`",
            )


def gm_pointer(source):
    """A pointer to elements in a kernel is a GM pointer; without __gm__ it means UB on the NPU."""
    pattern = rf"(__\w+__\s+)?(?:const\s+)?\b({_ELEMENT})(\s*)(?:const\s*)?\*(\s?)(?!\s*[\d=])"
    for line, match in source.find(pattern):
        before = source.code[: match.start()].rstrip()
        # `half` and `T` are also variables' names: with spaces on both sides it is a product.
        product = match.group(2) in {"half", "T"} and match.group(3) and match.group(4)
        if match.group(1) or product or before.endswith(("sizeof(", "#define")):
            continue
        yield line, f"pointer `{match.group().strip()}` without __gm__"


def no_std(source):
    for line, _ in source.find(r"\bstd\s*::"):
        yield line, "std:: does not exist on the device"
    for line, match in source.find(r"^\s*#\s*include\s*<([^>]+)>"):
        if match.group(1) not in _STD_HEADERS_ALLOWED:
            yield line, f"<{match.group(1)}> does not exist on the device"


def no_double(source):
    for line, _ in source.find(r"\bdouble\b"):
        yield line, "double does not exist on the device"


def double_literal(source):
    pattern = r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(?![\w.])"
    for line, match in source.find(pattern):
        yield line, f"{match.group()} is a double: write {match.group()}f"


def no_dynamic(source):
    words = r"\b(new|delete|malloc|free|virtual|dynamic_cast|typeid|throw|try|catch)\b(?!\s*=)"
    for line, match in source.find(words):
        if match.group(1) == "delete" and re.search(r"=\s*delete", source.lines[line - 1]):
            continue
        yield line, f"{match.group(1)} does not exist on the device"


def no_print(source):
    for line, match in source.find(r"\b(printf|PRINTF|DumpTensor|DumpAccChkPoint|assert)\s*\("):
        yield line, f"{match.group(1)} must not stay in a kernel"


def aicore(source):
    """g++ calls any function; the device compiler only those marked __aicore__."""
    for function in source.functions:
        if "__aicore__" not in [t.text for t in function.head]:
            yield function.line, f"function {function.name} lacks __aicore__"


def scalar_in_loop(source):
    """GetValue and SetValue stall the vector pipe; once a task is fine, once a row is not."""
    for function in source.functions:
        seen = set()
        for first, last in loop_ranges(function.body):
            for token in function.body[first : last + 1]:
                if token.text in {"GetValue", "SetValue"} and token not in seen:
                    seen.add(token)
                    if not source.comment_near(token.line, "scalar:"):
                        message = (
                            f"{token.text} in a loop of {function.name} (a comment "
                            "`scalar: why` on the line or above it allows one a task)"
                        )
                        yield token.line, message


def barrier_all_in_loop(source):
    for function in source.functions:
        seen = set()
        for first, last in loop_ranges(function.body):
            body = function.body[first : last + 1]
            for token, after in zip(body, body[2:], strict=False):
                if token.text == "PipeBarrier" and after.text == "PIPE_ALL" and token not in seen:
                    seen.add(token)
                    yield token.line, f"PipeBarrier<PIPE_ALL> in a loop of {function.name}"


def barrier_scalar(source):
    for line, _ in source.find(r"\bPipeBarrier\s*<\s*PIPE_S\s*>"):
        yield line, "PipeBarrier<PIPE_S> is not allowed: the scalar pipe needs none"


def cross_core(source):
    for line, match in source.find(r"\bCrossCoreSetFlag\s*<([^<>]*)>\s*\(\s*([^()]*)\)"):
        pipe = match.group(1).split(",")[-1].strip()
        if pipe in {"PIPE_S", "PIPE_ALL"}:
            yield line, f"CrossCoreSetFlag on {pipe}: name the pipe whose work must be done"
        yield from _flag_id(line, match.group(2))
    for line, match in source.find(r"\bCrossCoreWaitFlag\s*(?:<[^<>]*>)?\s*\(\s*([^()]*)\)"):
        yield from _flag_id(line, match.group(1))


def sync_all(source):
    """The op compiler finds a launch-wide barrier by this text and then reserves its flags."""
    for line, match in source.find(r"\bSyncAll\b([^;\n]*)"):
        if not re.fullmatch(r"\s*<\s*\w+\s*>\s*\(\s*\)", match.group(1)):
            yield line, f"write SyncAll<false>(); on one line, not `{_at(source, line)}`"


def _flag_id(line, text):
    if text.strip().isdigit() and int(text) > 10:
        yield line, f"cross-core flag id {text.strip()}: 11..14 are SyncAll's, 0..10 are free"


def event_id(source):
    for line, match in source.find(r"\b(SetFlag|WaitFlag)\s*<[^<>]*>\s*\(\s*(\w+)\s*\)"):
        if match.group(2).isdigit() or match.group(2).startswith("EVENT_ID"):
            message = (
                f"{match.group(1)} with the fixed id {match.group(2)}: take ids from "
                "AllocEventID or FetchEventID"
            )
            yield line, message


def advanced_api(source):
    for line, match in source.find(r"#\s*include\s*\"[^\"\n]*"):
        name = source.raw_lines[line - 1]
        if re.search(r"\"(lib/|tiling/|adv_api/)", name):
            yield line, f"header of the advanced API: {name.strip()}"
        del match
    names = "|".join(ADVANCED)
    prefix = r"\bAscendC\s*::\s*"
    if re.search(r"using\s+namespace\s+AscendC\b", source.code):
        prefix = r"(?:(?<![\w.>:])|\bAscendC\s*::\s*)"
    for line, match in source.find(rf"{prefix}({names})\s*[<(]"):
        yield line, f"{match.group(1)} is advanced API"
    for line, match in source.find(r"\b(REGIST_MATMUL_OBJ|matmul\s*::)"):
        yield line, f"{match.group(1)} is advanced API"


def newer_than_8_1(source):
    for pattern, name in NEWER.items():
        for line, _ in source.find(pattern):
            yield line, f"{name} does not exist in CANN 8.1"


def tiling_key(source):
    for line, match in source.find(r"\bTILING_KEY_IS\s*\(\s*([^()]*)\)"):
        if not re.fullmatch(r"\d+(?:[uUlL]*)", match.group(1).strip()):
            yield line, f"TILING_KEY_IS({match.group(1).strip()}) takes a literal only"
    for line, _ in source.find(r"\b(?:BEGIN_TILING_DATA_DEF|REGISTER_TILING_DATA_CLASS)\b"):
        yield line, "BEGIN_TILING_DATA_DEF must not be mixed with plain tiling structs"


def null_pointer_test(source):
    for line, _ in source.find(r"[=!]=\s*nullptr\b|\bnullptr\s*[=!]="):
        yield line, "a kernel must not test pointers: carry presence in the tiling data"


def simulator_ifdef(source):
    pattern = r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*"
    macros = r"ASCEND_?SIM|SIMULATOR|__CCE_KT_TEST__|ASCENDC_CPU_DEBUG|__CCE_AICORE__|KDA_SIM"
    for line, match in source.find(pattern):
        if re.search(macros, match.group()):
            yield line, "one source for NPU and simulator: no conditional compilation on either"


def _entries(source):
    return [f for f in source.functions if "__global__" in [t.text for t in f.head]]


def entry(source):
    """CANN compiles each kernel file for the operator whose snake case name it bears."""
    if source.path.suffix != ".cpp":
        return
    entries = _entries(source)
    if len(entries) != 1:
        yield 1, f'{len(entries)} kernel entries (extern "C" __global__ __aicore__), expected 1'
        return
    function = entries[0]
    if function.name != source.path.stem:
        yield function.line, f"entry {function.name}, expected {source.path.stem} (the file's name)"
    words = [t.text for t in function.head]
    if "extern" not in words:
        yield function.line, f'entry {function.name} lacks extern "C"'
    names = _entry_params(function)
    if names[-2:] != ["workspace", "tiling"]:
        message = (
            f"entry {function.name} ends in ({', '.join(names[-2:])}), expected (workspace, tiling)"
        )
        yield function.line, message


def _entry_params(function):
    words = [t.text for t in function.head]
    inside = words[words.index("(") + 1 :]
    names = [w for w, after in zip(inside, inside[1:], strict=False) if after in {",", ")"}]
    return names


def tiling_first(source):
    """GET_TILING_DATA copies through UB address 0: anything before it may be overwritten."""
    for function in _entries(source):
        statements = _statements(function.body)
        names = [s[0].text for s in statements if s]
        if names and names[0].startswith("REGISTER_TILING"):
            statements, names = statements[1:], names[1:]
        if not names or not names[0].startswith("GET_TILING_DATA"):
            line = statements[0][0].line if statements and statements[0] else function.line
            yield line, "GET_TILING_DATA_WITH_STRUCT must be the entry's first statement"


def _statements(body):
    statements, current = [], []
    for token in body:
        if token.text in {";", "{", "}"}:
            if current:
                statements.append(current)
            current = []
        else:
            current.append(token)
    return statements + ([current] if current else [])


def snake_case(name):
    """CANN's rule from an operator's type to its kernel's name."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def aclnn_names(source):
    """File, class and registration agree, and operand names survive the C interface's rule."""
    for line, match in source.find(r"\bOP_ADD\s*\(\s*(\w+)"):
        name = match.group(1)
        if snake_case(name) != source.path.stem:
            yield (
                line,
                (f"OP_ADD({name}) in {source.path.name}, expected the file {snake_case(name)}.cpp"),
            )
        if not re.search(rf"\bclass\s+{name}\b", source.code):
            yield line, f"OP_ADD({name}) without a class of that name"
    for line, text in enumerate(source.raw_lines, 1):
        for name in re.findall(r"\b(?:Input|Output|Attr)\(\"([^\"]*)\"\)", text):
            if not re.fullmatch(r"[A-Za-z][a-z0-9]*(?:_[a-z0-9]+)*", name):
                yield line, f"operand {name} is not snake case: its C name would not be unique"


def entry_operands(kernel, host):
    """The entry takes every input, then every output, then workspace and tiling."""
    text = "\n".join(host.raw_lines)
    declared = [set(re.findall(rf"\b{kind}\(\"(\w+)\"\)", text)) for kind in ("Input", "Output")]
    expected = sum(len(names) for names in declared) + 2
    for function in _entries(kernel):
        count = len(_entry_params(function))
        if count != expected:
            message = (
                f"entry {function.name} has {count} parameters, {host.path.name} makes it "
                f"{expected} (inputs, outputs, workspace, tiling)"
            )
            yield function.line, message


def _at(source, line):
    return source.lines[line - 1].strip()


KERNEL_RULES = {
    "aic-parens": aic_parens,
    "gm-pointer": gm_pointer,
    "no-std": no_std,
    "no-double": no_double,
    "double-literal": double_literal,
    "no-dynamic": no_dynamic,
    "no-print": no_print,
    "aicore": aicore,
    "scalar-in-loop": scalar_in_loop,
    "barrier-all-in-loop": barrier_all_in_loop,
    "barrier-scalar": barrier_scalar,
    "cross-core": cross_core,
    "sync-all": sync_all,
    "event-id": event_id,
    "advanced-api": advanced_api,
    "newer-api": newer_than_8_1,
    "tiling-key": tiling_key,
    "null-pointer": null_pointer_test,
    "simulator-ifdef": simulator_ifdef,
    "entry": entry,
    "tiling-first": tiling_first,
}
HOST_RULES = {
    "aclnn-names": aclnn_names,
    "newer-api": newer_than_8_1,
    "tiling-key": tiling_key,
    "simulator-ifdef": simulator_ifdef,
}
PAIR_RULES = {"entry-operands": entry_operands}
