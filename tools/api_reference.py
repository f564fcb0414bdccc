# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""docs/api.md from the tables of the package.

python -m tools.api_reference            prints the page
python -m tools.api_reference --write    writes docs/api.md
python -m tools.api_reference --check    says whether docs/api.md is that page
"""

import argparse
import inspect
import sys
from pathlib import Path

import hyper_parallel_kda as kda
from hyper_parallel_kda import rules
from hyper_parallel_kda import stage_table as table
from hyper_parallel_kda.chunk_kda import OP
from tools.api_examples import EXAMPLES
from tools.api_text import INTRODUCTION, MEANING, OP_OUTPUTS, OUTPUT_NAMES, PURPOSE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
FUNCTIONS = (OP, *table.STAGES)


def function_name(stage):
    return "npu_chunk_kda" if stage is OP else stage.function


def arguments(stage):
    """(name, spec, parameter) in the order of the Python signature."""
    known = {spec.name: spec for spec in (*stage.inputs, *stage.attrs, *stage.python_attrs)}
    parameters = inspect.signature(getattr(kda, function_name(stage))).parameters
    return [(name, known[name], p) for name, p in parameters.items()]


def dims_text(dims):
    return "`[" + ", ".join(dims) + "]`"


def shape_text(spec):
    """The shape for every layout, on one line each."""
    if spec.layout:
        return "<br>".join(
            f"{layout} {dims_text(table.ordered_dims(spec.dims, layout))}"
            for layout in table.LAYOUTS
        )
    text = dims_text(spec.dims)
    if "T" in spec.dims:
        text += f"<br>rank 3: {dims_text(spec.dims[1:])}"
    if spec.flat:
        text += " or `[" + "*".join(spec.dims) + "]`"
    if spec.state:
        text += f"<br>V first: {dims_text(table.ordered_dims(spec.dims, v_first=True))}"
    return text


def dtype_text(spec):
    if spec.dtype.startswith("="):
        return f"that of {spec.dtype[1:]}"
    return spec.dtype.replace("fp32", "float32").replace("|", " or ")


def default_text(parameter):
    if parameter.default is inspect.Parameter.empty:
        return "required"
    return f"`{parameter.default!r}`"


def argument_row(stage, name, spec, parameter):
    if isinstance(spec, table.TensorSpec):
        shape, kind = shape_text(spec), dtype_text(spec)
    elif isinstance(spec, table.HostArraySpec):
        shape, kind = "ints", "int"
    else:
        shape = "one of " + ", ".join(spec.choices) if spec.choices else ""
        kind = spec.kind
    meaning = MEANING.get((stage.name, name)) or MEANING[name]
    return f"| `{name}` | {shape} | {kind} | {default_text(parameter)} | {meaning} |"


def outputs(stage):
    if stage is OP:
        return [OP_OUTPUTS]
    lines = ["| output | shape | dtype | |", "|---|---|---|---|"]
    for spec in stage.outputs:
        notes = [f"only with {spec.when}"] if spec.when else []
        notes += [spec.note.replace("|", "\\|")] if spec.note else []
        notes += ["the input itself"] if stage.in_place == spec.name else []
        name = OUTPUT_NAMES.get(spec.name, spec.name)
        lines.append(f"| `{name}` | {shape_text(spec)} | {dtype_text(spec)} | {'; '.join(notes)} |")
    return lines


def symbols(stage):
    return {dim for spec in stage.inputs for dim in getattr(spec, "dims", ())}


def rules_of(stage):
    available = {spec.name for spec in (*stage.inputs, *stage.attrs)} | symbols(stage)
    return rules.of(stage.name, available)


def rules_table():
    lines = ["| argument | expected | when | functions |", "|---|---|---|---|"]
    for rule in rules.RULES:
        named = [stage.name for stage in FUNCTIONS if rule in rules_of(stage)]
        functions = "all that have it" if not rule.only else ", ".join(named)
        lines.append(f"| {rule.argument} | {rule.text} | {rule.when or 'always'} | {functions} |")
    return "\n".join(lines)


def signature(stage):
    """The signature, wrapped at 100 columns."""
    parts, lines, line = [], [], f"{function_name(stage)}("
    for name, _, p in arguments(stage):
        if p.kind is p.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(name if p.default is p.empty else f"{name}={p.default!r}")
    for part in parts:
        if len(line) + len(part) + 2 > 98:
            lines.append(line.rstrip())
            line = "    "
        line += part + ", "
    return "\n".join([*lines, line.rstrip(", ") + ")"])


def section(stage):
    lines = [
        f"## {function_name(stage)}",
        "",
        PURPOSE[stage.name],
        "",
        "```",
        signature(stage),
        "```",
        "",
    ]
    lines += ["| argument | shape | dtype | default | meaning |", "|---|---|---|---|---|"]
    lines += [argument_row(stage, *argument) for argument in arguments(stage)]
    lines += ["", *outputs(stage), ""]
    if stage.name in EXAMPLES:
        lines += ["```python", EXAMPLES[stage.name].rstrip(), "```", ""]
    return "\n".join(lines)


def page():
    head = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
    head += "<!-- Copyright 2026 The hyper_parallel_kda authors -->\n"
    body = "\n".join(section(stage) for stage in FUNCTIONS)
    return head + INTRODUCTION.format(rules=rules_table()) + "\n" + body.rstrip() + "\n"


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--write", action="store_true")
    does.add_argument("--check", action="store_true")
    args = parser.parse_args(given)
    if args.write:
        PAGE.write_text(page())
    elif args.check:
        if PAGE.read_text() != page():
            return f"{PAGE} is not what the tables say: run python -m tools.api_reference --write"
    else:
        print(page(), end="")


if __name__ == "__main__":
    sys.exit(main())
