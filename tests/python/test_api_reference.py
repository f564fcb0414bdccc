# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""docs/api.md is what the tables say, its examples run, and it leaves out nothing."""

import inspect
import re

import pytest

import hyper_parallel_kda as kda
from tools import api_reference, api_text
from tools.api_examples import EXAMPLES

FUNCTIONS = {api_reference.function_name(stage): stage for stage in api_reference.FUNCTIONS}


def text():
    return api_reference.PAGE.read_text()


def section(function):
    page = text()
    start = page.index(f"\n## {function}\n")
    end = page.find("\n## ", start + 1)
    return page[start:] if end < 0 else page[start:end]


def test_the_page_is_current():
    assert text() == api_reference.page(), "run python -m tools.api_reference --write"


def test_the_check_says_so(monkeypatch, tmp_path):
    assert api_reference.main(["--check"]) is None
    monkeypatch.setattr(api_reference, "PAGE", tmp_path / "api.md")
    api_reference.PAGE.write_text(api_reference.page().replace("float16", "float8", 1))
    assert "is not what the tables say" in api_reference.main(["--check"])


@pytest.mark.parametrize("name", ["api", "stages"])
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(name):
    cells = 0
    for number, line in enumerate(
        (api_reference.PAGE.parent / f"{name}.md").read_text().split("\n"), 1
    ):
        here = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not cells or not here or here == cells, (number, line)
        cells = here


def test_every_public_function_is_there():
    assert set(FUNCTIONS) == set(kda.__all__)
    assert re.findall(r"^## (npu_\w+)$", text(), re.MULTILINE) == list(FUNCTIONS)


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_every_argument_and_default_is_there(function):
    rows = section(function).split("| output |")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (\S+) \| [^|]+ \|$", rows, re.MULTILINE))
    for name, parameter in inspect.signature(getattr(kda, function)).parameters.items():
        required = parameter.default is inspect.Parameter.empty
        assert rows[name] == ("required" if required else f"`{parameter.default!r}`"), name


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_docstrings_have_every_argument(function):
    text = getattr(kda, function).__doc__
    for name in inspect.signature(getattr(kda, function)).parameters:
        assert re.search(rf"(?<!\w){name}(?!\w)", text), name


def test_no_meaning_is_left_over():
    used = set()
    for stage in api_reference.FUNCTIONS:
        for name, _, _ in api_reference.arguments(stage):
            own = (stage.name, name)
            used.add(own if own in api_text.MEANING else name)
    assert used == set(api_text.MEANING)


def test_examples_run(monkeypatch):
    """On the packaged library, in the order of the page, in one namespace."""
    monkeypatch.delenv("HYPER_PARALLEL_KDA_OPAPI", raising=False)
    blocks = re.findall(r"```python\n(.*?)```", text(), re.DOTALL)
    assert len(blocks) == len(EXAMPLES) and all("assert" in block for block in blocks)
    namespace = {}
    for block in blocks:
        exec(compile(block, "docs/api.md", "exec"), namespace)
    called = set(re.findall(r"\b(npu_chunk_kda\w*)\(", "".join(blocks)))
    assert called == set(kda.__all__)
