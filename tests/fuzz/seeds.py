"""Makes the fuzzers' seeds: python tests/fuzz/seeds.py HOLOGRAM (the command).

text and run: the programs of the tree, small ones only; binary and run: their binary forms; entry: changes of one field of a kernel
cache's entry each; and the dictionary. Run it again after a change of the text or binary form or of hg_gpu_info.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE / "corpus"
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
from tables import OPS, TYPES  # noqa: E402

LARGEST = 2500  # bytes


def programs(*folders: str) -> list[Path]:
    found = [p for folder in folders for p in sorted((ROOT / folder).glob("*.atlas"))]
    return [p for p in found if p.stat().st_size <= LARGEST]


def every_instruction() -> str:
    """The examples of the table: as text they need not verify."""
    return "".join(f"    {op.example}\n" for op in OPS.values()) + "    exit\n"


def assemble(command: str, source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "program.atb"
        subprocess.run([command, "asm", str(source), "-o", str(made)], check=True)
        target.write_bytes(made.read_bytes())


def dictionary() -> str:
    words = list(OPS) + ["." + t for t in TYPES] + [
        ".program ", ".block ", ".buffer ", ".scalar ", ".shared ", ".local ", ".const ", ".table ", ".pool ", ".entry ",
        " handle ", " default", " in", " out", " inout", "[x + lane]", "[x + r0 + #1]", "[phi 5, 12, 200]", "[phi r0, r1, r2]",
        "[r0 : r1]", "lane", "blane", "r252", "r253", "r254", "p0", "@p0 bra ", "@!p0 bra ", "#0x1.8p3", "#-1", "#inf", "#nan",
        "#0x7fc00000", "global.x", "lane.y", "block_size.z", "{ #1, #2, }", "exit\n", "; "]
    lines = [f'"{w}"'.replace("\n", "\\x0a") for w in words]
    lines.append(r'"\x89ATLAS\x0d\x0a"')
    return "# Words of the Atlas text form, for -dict=.\n" + "\n".join(lines) + "\n"


# Of hg_gpu_info (backend/gpu/gpu.h): where a field begins, its bytes, and values that no plan has.
FIELDS = {"size": (0, 4, 0), "argument_bytes": (4, 4, 1 << 20), "threads": (8, 4, 0), "lanes_per_thread": (12, 4, 3),
          "max_threads": (16, 4, 0), "parts": (20, 4, 0), "shared_bytes": (24, 4, 0xffffffff), "observes_block": (48, 1, 1),
          "vector_only": (52, 1, 1), "packs": (54, 1, 0), "tile_shift": (56, 1, 200), "dynamic_bytes": (60, 4, 0x7fffffff),
          "lut_lanes": (64, 8, 1), "steps": (72, 8, 0), "table_symbol": (80, 4, 200), "parameter_count": (84, 4, 100000),
          "symbol": (88, 2, 0xffff), "offset": (90, 2, 0xfff8), "vector": (92, 1, 9), "kind": (93, 1, 7),
          "element_shift": (94, 1, 99), "divides": (95, 1, 1), "again": (96, 1, 1), "reach": (104, 8, 1 << 63)}


def entry_seeds() -> dict[str, bytes]:
    """Inputs of fuzz_entry: an entry's number, flags, then changes of a byte each."""
    seeds = {"nothing": b"\0\0", "cut": b"\0\1\x40\0", "whole": b"\0\4HGKERNEL", "damaged": b"\0\2\0\0\1"}
    for number, (name, (offset, size, value)) in enumerate(FIELDS.items()):
        changes = b"".join(bytes((offset + i & 255, offset + i >> 8, value >> 8 * i & 255)) for i in range(size))
        seeds[name] = bytes((number % 8, 0)) + changes
    return seeds


def main(command: str) -> None:
    for kind in ("text", "binary", "run", "entry"):
        (CORPUS / kind).mkdir(parents=True, exist_ok=True)
        for old in (CORPUS / kind).iterdir():
            old.unlink()
    good = programs("examples", "tests/conformance/good")
    for source in good:
        text = source.read_bytes()
        (CORPUS / "text" / source.name).write_bytes(text)
        (CORPUS / "run" / source.name).write_bytes(text)
        assemble(command, source, CORPUS / "binary" / f"{source.stem}.atb")
    for source in good[::4]:
        assemble(command, source, CORPUS / "run" / f"{source.stem}.atb")
    for source in programs("tests/conformance/bad")[::5]:
        (CORPUS / "text" / f"bad_{source.name}").write_bytes(source.read_bytes())
    (CORPUS / "text" / "every_instruction.atlas").write_text(every_instruction())
    for name, data in entry_seeds().items():
        (CORPUS / "entry" / name).write_bytes(data)
    (HERE / "atlas.dict").write_text(dictionary())


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("usage: python tests/fuzz/seeds.py HOLOGRAM, the command")
    main(sys.argv[1])
