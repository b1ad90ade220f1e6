"""The PTX emitter: golden texts, and everything it writes assembled by NVIDIA's ptxas where there is one.

To take over a wanted change of a golden text: HOLOGRAM_GOLDEN=write ./dev test python, and read the difference."""

import glob
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLI = os.environ.get("HOLOGRAM_CLI", str(ROOT / "build/release/hologram"))
EMIT_RANDOM = Path(CLI).parent / "tests/random/emit_random"
GOLDEN = sorted((ROOT / "tests/ptx/golden").glob("*.atlas"))
CORPUS = [*GOLDEN, *sorted(ROOT.glob("tests/conformance/good/*.atlas")), *sorted(ROOT.glob("examples/*.atlas")),
          *sorted(ROOT.glob("tests/equality/**/*.atlas")), *sorted(ROOT.glob("tests/fuzz/corpus/**/*.atlas"))]
RANDOM_PROGRAMS = int(os.environ.get("HOLOGRAM_PTX_PROGRAMS", "400"))


def find_ptxas():
    """On the PATH, or in PyPI's nvidia-cuda-nvcc."""
    bundled = [p for folder in sys.path for p in glob.glob(f"{folder}/nvidia/*/bin/ptxas")]
    return os.environ.get("HOLOGRAM_PTXAS") or shutil.which("ptxas") or next(iter(bundled), None)


PTXAS = find_ptxas()
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="there is no ptxas: not on the PATH, and nvidia-cuda-nvcc is not installed")


def newest_target():
    text = subprocess.run([PTXAS, "--help"], capture_output=True, text=True, check=True).stdout
    return max(int(number) for number in re.findall(r"'sm_(\d+)'", text))


def emit(program, capability):
    return subprocess.run([CLI, "emit", "--target", "ptx", "--capability", str(capability), str(program)], capture_output=True, text=True)


def module_of(programs, capability):
    """All of them as entries of one module: ptxas takes longer to start than to assemble most of them."""
    head, entries = None, []
    for number, program in enumerate(programs):
        result = emit(program, capability)
        if result.returncode != 0:  # libraries, and programs of the corpus that do not verify
            continue
        head, text = result.stdout.split("\n\n", 1)
        name = re.search(r"\.entry (\w+)", text).group(1)
        entries.append(re.sub(rf"\b{name}(?=\b|_)", f"program_{number}", text))
    return entries, f"{head}\n\n{''.join(entries)}"


def assemble(path, target):
    """It must pass without a word."""
    result = subprocess.run([PTXAS, f"-arch=sm_{target}", str(path), "-o", os.devnull], capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", f"{path} for sm_{target}: {result.stderr[:600]}"


@pytest.mark.parametrize("program", GOLDEN, ids=lambda p: p.stem)
@pytest.mark.parametrize("capability", [75, 90])
def test_golden(program, capability):
    result = emit(program, capability)
    assert result.returncode == 0, result.stderr
    text, golden = result.stdout, program.with_name(f"{program.stem}.{capability}.ptx")
    if os.environ.get("HOLOGRAM_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_no_approximations():
    """Every f32 and f64 operation that rounds says how, and nothing flushes subnormals."""
    for program in CORPUS:
        for line in emit(program, 90).stdout.split("\n"):
            word = line.strip().split(" ")[0]
            assert ".ftz" not in word and ".approx" not in word and ".full" not in word, line
            base, *rest = word.split(".")
            if base in ("add", "sub", "mul", "fma", "div", "sqrt", "rcp") and rest[-1] in ("f32", "f64"):
                assert rest[0] == "rn", line


@needs_ptxas
@pytest.mark.parametrize("target", [75, 80, 90, "newest"])
def test_corpus_assembles(tmp_path, target):
    target = newest_target() if target == "newest" else target
    entries, text = module_of(CORPUS, target)
    assert len(entries) > 60
    (tmp_path / "corpus.ptx").write_text(text, encoding="utf-8")
    assemble(tmp_path / "corpus.ptx", target)


@needs_ptxas
@pytest.mark.parametrize("target", [75, 80, 90, "newest"])
def test_random_programs_assemble(tmp_path, target):
    count, seed = RANDOM_PROGRAMS // 4, 1 if target == "newest" else 1000 * target
    target = newest_target() if target == "newest" else target
    subprocess.run([EMIT_RANDOM, str(seed), str(count), str(target), str(tmp_path)], check=True)
    paths = sorted(tmp_path.glob("*.ptx"))
    assert len(paths) * 16 >= count
    for path in paths:
        assemble(path, target)
