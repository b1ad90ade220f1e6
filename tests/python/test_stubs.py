"""The stubs say what the extension has: every name, and every function's parameters. ./dev test types asks mypy, too."""

import ast
import inspect
from pathlib import Path

import pytest

import hologram as hg
from hologram import _core

TREE = ast.parse((Path(hg.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
VALUES = [node.target.id for node in TREE.body if isinstance(node, ast.AnnAssign) and node.value is None]


def parameters(function):
    arguments = function.args
    names = [a.arg for a in arguments.posonlyargs + arguments.args]
    return names + ([arguments.vararg.arg] if arguments.vararg else []) + [a.arg for a in arguments.kwonlyargs] + (
        [arguments.kwarg.arg] if arguments.kwarg else [])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    function = getattr(_core, name)
    if name.startswith("_"):
        return
    assert function.__doc__
    assert list(inspect.signature(function).parameters) == parameters(FUNCTIONS[name])


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    kind = getattr(_core, name)
    for node in CLASSES[name].body:
        if not isinstance(node, ast.FunctionDef) or node.name == "__buffer__" or issubclass(kind, Exception) or node.name == "__iter__":
            continue
        member = getattr(kind, node.name)
        if not node.name.startswith("__") and callable(member):
            assert list(inspect.signature(member).parameters) == parameters(node), node.name
            assert member.__doc__, node.name


def test_nothing_is_missing():
    stated = set(FUNCTIONS) | set(CLASSES) | set(VALUES) | {"full"}
    assert {name for name in dir(_core) if not name.startswith("__")} == stated
    for name, node in CLASSES.items():
        kind = getattr(_core, name)
        if issubclass(kind, Exception):
            continue
        inside = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        public = {member for member in vars(kind) if not member.startswith("_") and hasattr(kind, member)}  # without near names
        assert public == {member for member in inside if not member.startswith("_")}
