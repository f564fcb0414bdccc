# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Writes the typed C signatures of the nine stages from the stage table.

usage: generate_signatures.py stage_table.py output.cpp
"""

import importlib.util
import sys
from pathlib import Path

C_TYPES = {
    "t": "aclTensor*",
    "a": "aclIntArray*",
    "d": "double",
    "i": "int64_t",
    "b": "bool",
    "s": "char*",
}
ATTR_KINDS = {"float": "d", "int": "i", "bool": "b", "str": "s"}


def load_table(path):
    spec = importlib.util.spec_from_file_location("stage_table", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["stage_table"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def kinds(table, stage):
    inputs = ["a" if isinstance(spec, table.HostArraySpec) else "t" for spec in stage.inputs]
    attrs = [ATTR_KINDS[attr.kind] for attr in stage.attrs]
    outputs = ["t" for spec in stage.outputs if spec.name != stage.in_place]
    return "".join(inputs + attrs + outputs)


def render(table):
    lines = [
        "// Generated from hyper_parallel_kda/stage_table.py by bridge/generate_signatures.py.",
        '#include "stage_signature.h"',
        "",
        "namespace kda::bridge {",
        "namespace {",
        "",
        "const StageSignature kSignatures[] = {",
    ]
    for stage in table.STAGES:
        letters = kinds(table, stage)
        types = ", ".join(C_TYPES[letter] for letter in letters)
        lines.append(f'    {{"{stage.op}", "{letters}", &Invoker<{types}>::Invoke}},')
    lines += [
        "};",
        "",
        "}  // namespace",
        "",
        "const StageSignature* FindSignature(const std::string& op) {",
        "    for (const StageSignature& signature : kSignatures) {",
        "        if (op == signature.op) {",
        "            return &signature;",
        "        }",
        "    }",
        "    return nullptr;",
        "}",
        "",
        "}  // namespace kda::bridge",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    output = Path(sys.argv[2])
    text = render(load_table(sys.argv[1]))
    if not output.exists() or output.read_text() != text:
        output.write_text(text)
