"""The form of values from files: what is accepted, and how a wrong value is named."""

from __future__ import annotations

import re

import pytest

from ghost.errors import GhostError
from ghost.forms import COUNT, NAME, SHA256, has_form, require


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (0, int),
        (2**63 - 1, int),
        (3, float),
        (0.5, float),
        (None, (str, None)),
        ({"a": 1, "more": []}, {"a": int}),
        ({}, {str: int}),
        ([], [str]),
        ("seed7/tokens/00000.npy", NAME),
        ("...", NAME),
        ("a" * 64, SHA256),
        ([{"x": [None]}], [{"x": [object]}]),
    ],
)
def test_what_has_the_form(value, form):
    assert has_form(value, form)


@pytest.mark.parametrize(
    ("value", "form", "says"),
    [
        (True, int, "it must be a whole number, got True"),
        (2**63, int, "a whole number"),
        (1.0, int, "a whole number"),
        (-1, COUNT, "a whole number from 0 to"),
        (float("nan"), float, "a finite number, got nan"),
        (float("-inf"), float, "a finite number"),
        (10**400, float, "a finite number"),
        ("1", float, "a finite number"),
        (7, (str, None), "text or null, got 7"),
        ([], {"a": int}, "an object"),
        ({"b": 1}, {"a": int}, "an object with a, got ['b']"),
        ({"a": {"b": [0, "x"]}}, {"a": {"b": [int]}}, "a.b[1] must be a whole number, got 'x'"),
        ({7: 1}, {str: int}, "a name in it must be text, got 7"),
        ("a" * 63, SHA256, "a sha256"),
        ("../a", NAME, "the name of a file inside its folder"),
        ("a/../b", NAME, "the name of a file"),
        ("a/..", NAME, "the name of a file"),
        ("./a", NAME, "the name of a file"),
        ("/a", NAME, "the name of a file"),
        ("a//b", NAME, "the name of a file"),
        ("a/", NAME, "the name of a file"),
        ("", NAME, "the name of a file"),
        ("a\0", NAME, "the name of a file"),
        ("a\n", NAME, "the name of a file"),
        ("x" * 10**6, int, "got 'xxx"),
    ],
)
def test_a_wrong_value_is_named(value, form, says):
    with pytest.raises(GhostError, match=re.escape(says)) as error:
        require(value, form, "file.json")
    assert str(error.value).startswith("file.json: ")
    assert len(str(error.value)) < 300
