"""Every example of the tables, and every program that the documentation shows, passes `hologram check`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from gen_isa import load  # noqa: E402

ISA = load()
HOLOGRAM = os.environ.get("HOLOGRAM_CLI", str(ROOT / "build" / "release" / "hologram"))


def check(text, folder):
    path = folder / "example.atlas"
    path.write_text(text)
    return subprocess.run([HOLOGRAM, "check", str(path)], text=True, capture_output=True)


class Wrapper:
    """Declarations and registers that one instruction needs to stand in a program."""

    def __init__(self, op):
        self.op = op
        self.declarations, self.setup = [], []
        guard, instruction = re.fullmatch(r"(?:@!?(p\d+) )?(.*)", op.example).groups()
        word, _, rest = instruction.partition(" ")
        suffixes = word[len(op.mnemonic):].split(".")[1:]
        assert word.startswith(op.mnemonic) and (suffixes or not op.types), f"{op.mnemonic}: example '{op.example}'"
        self.type = suffixes[0] if suffixes else None
        self.second = suffixes[1] if len(suffixes) > 1 else None
        if guard:
            self.predicate(guard)
        operands = [part.strip() for part in re.split(r",(?![^\[]*\])", rest)] if rest else []
        letters = ISA.forms[op.form][0]
        assert len(operands) == len(letters), f"{op.mnemonic}: {len(letters)} operands, the example has {len(operands)}"
        for letter, text in zip(letters, operands):
            self.operand(letter, text)

    def predicate(self, name):
        self.setup.append(f"set.eq.u32 {name}, blane, #0")

    def value(self, text, type_name):
        """A source operand: a register gets a value, a name becomes a scalar."""
        if re.fullmatch(r"r\d+", text):
            if int(text[1:]) < 252:
                self.setup.append(f"movi.{type_name} {text}, #1")
        elif re.fullmatch(r"[A-Za-z_]\w*", text) and text not in ("lane", "blane"):
            self.declarations.append(f".scalar {text} {type_name}")

    def operand(self, letter, text):
        if letter in "st":
            self.value(text, self.second if letter == "t" else self.type)
        elif letter in "cr":
            self.value(text, "u32")
        elif letter == "q":
            self.predicate(text)
        elif letter == "h":
            self.declarations.append(f".pool {text}")
        elif letter == "b":
            self.declarations.append(f".buffer {text} f32 in")
        elif letter in "mw":
            self.address(text)

    def address(self, text):
        name = re.match(r"\[(\w+)", text).group(1)
        self.declarations.append({
            "SPACE_SHARED": f".shared {name} {self.type} 256", "SPACE_LOCAL": f".local {name} {self.type} 8",
            "SPACE_CONST": f".const {name} {self.type} {{ #1, #2 }}",
            "SPACE_POOL": f".pool {name}"}.get(next((f for f in self.op.flags if f.startswith("SPACE_")), ""),
                                               f".buffer {name} {self.type} inout"))
        for register in re.findall(r"\br\d+", text):
            self.value(register, "u32")

    def program(self):
        head = self.declarations + [f"    {line}" for line in self.setup]
        if self.op.mnemonic == "loop":
            body = ["again:", f"    {self.op.example}", "    exit"]
        elif self.op.mnemonic == "call":
            body = [f"    {self.op.example}", "    exit", "average:", "    ret"]
        elif self.op.mnemonic == "ret":
            body = ["    call function", "    exit", "function:", f"    {self.op.example}"]
        elif self.op.mnemonic == "bra":
            body = [f"    {self.op.example}", "    mem.fence", "done:", "    exit"]
        else:
            body = [f"    {self.op.example}"] + ([] if "END" in self.op.flags else ["    exit"])
        return "\n".join(head + body) + "\n"


@pytest.mark.parametrize("op", ISA.ops, ids=lambda op: op.mnemonic)
def test_example_of_the_table(op, tmp_path):
    text = Wrapper(op).program()
    result = check(text, tmp_path)
    assert result.returncode == 0, f"{result.stderr}\n{text}"


def shown_programs():
    """Fenced blocks of the documentation that are whole programs."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, block in enumerate(re.findall(r"^```\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M)):
            if block.startswith(".program"):
                yield pytest.param(block, id=f"{path.name}-{number}")


@pytest.mark.parametrize("text", list(shown_programs()))
def test_program_in_the_documentation(text, tmp_path):
    result = check(text, tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.atlas")), ids=lambda path: path.name)
def test_program_of_the_examples(path):
    result = subprocess.run([HOLOGRAM, "check", str(path)], text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
