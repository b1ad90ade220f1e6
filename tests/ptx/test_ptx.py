"""The PTX emitter: golden texts, and everything it writes assembled by NVIDIA's ptxas where there is one.

To take over a wanted change of a golden text: HOLOGRAM_GOLDEN=write ./dev test python, and read the difference."""

import glob
import itertools
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
EMIT_FORMS = Path(CLI).parent / "tests/ptx/emit_forms"
GOLDEN = sorted((ROOT / "tests/ptx/golden").glob("*.atlas"))
WRITTEN = [*GOLDEN, *sorted(ROOT.glob("tests/ptx/forms/*.atlas")), *sorted(ROOT.glob("tests/conformance/good/*.atlas")),
           *sorted(ROOT.glob("examples/*.atlas"))]
CORPUS = [*WRITTEN, *sorted(ROOT.glob("tests/equality/**/*.atlas")), *sorted(ROOT.glob("tests/fuzz/corpus/**/*.atlas"))]
FORMS = {"checked": 300, "counted": 10, "larger": 100, "tabulated": 3}  # the fewest programs that have each
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


def joined(texts):
    """Modules of one entry each as one: ptxas takes longer to start than to assemble most of them."""
    head, entries = None, []
    for number, text in enumerate(texts):
        head, entry = text.split("\n\n", 1)
        name = re.search(r"\.entry (\w+)", entry).group(1)
        entries.append(re.sub(rf"\b{name}(?=\b|_)", f"program_{number}", entry))
    return f"{head}\n\n{''.join(entries)}"


def forms_of(programs, capability, folder, lines=False):
    """The texts of all forms that the CUDA backend may ask for, by form; programs that do not verify have none."""
    subprocess.run([EMIT_FORMS, str(capability), str(int(lines)), str(folder), *map(str, programs)], check=True)
    texts = {}
    for path in sorted(folder.glob("*.ptx")):
        texts.setdefault(path.suffixes[0][1:], []).append(path.read_text(encoding="utf-8"))
    return texts


def assemble(text, target, folder, *options):
    """It must pass without a word."""
    path = folder / "assembled.ptx"
    path.write_text(text, encoding="utf-8")
    command = [PTXAS, f"-arch=sm_{target}", *options, str(path), "-o", os.devnull]
    result = subprocess.run(command, capture_output=True, text=True)
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


@pytest.mark.parametrize("capability", [75, 80, 90])
def test_no_approximations(capability, tmp_path):
    """Every f32 and f64 operation that rounds says how, and nothing flushes subnormals."""
    for text in itertools.chain(*forms_of(CORPUS, capability, tmp_path).values()):
        for line in text.split("\n"):
            word = line.strip().split(" ")[0]
            assert ".ftz" not in word and ".approx" not in word and ".full" not in word, line
            base, *rest = word.split(".")
            if base in ("add", "sub", "mul", "fma", "div", "sqrt", "rcp") and rest[-1] in ("f32", "f64"):
                assert rest[0] == "rn", line


@needs_ptxas
@pytest.mark.parametrize("target", [75, 80, 90, "newest"])
def test_corpus_assembles(tmp_path, target):
    target = newest_target() if target == "newest" else target
    results = [emit(program, target) for program in CORPUS]
    texts = [result.stdout for result in results if result.returncode == 0]  # others: libraries, and what does not verify
    assert len(texts) > 600
    assemble(joined(texts), target, tmp_path)


@needs_ptxas
@pytest.mark.parametrize("target", [75, 80, 90, "newest"])
def test_forms_assemble(tmp_path, target):
    target = newest_target() if target == "newest" else target
    texts = forms_of(CORPUS, target, tmp_path)
    for form, fewest in FORMS.items():
        assert len(texts.get(form, [])) >= fewest, form
        assemble(joined(texts[form]), target, tmp_path)


@needs_ptxas
@pytest.mark.parametrize("target", [75, 80, 90, "newest"])
def test_lines_assemble(tmp_path, target):
    """As HOLOGRAM_LINES=1 has them, and as the driver is told to take them."""
    target = newest_target() if target == "newest" else target
    texts = forms_of(WRITTEN, target, tmp_path, lines=True)
    assert set(texts) == {"usual", *FORMS}
    assert sum("\t.loc 1 " in text for text in texts["usual"]) > 40
    for text in itertools.chain(*texts.values()):
        assert "\n.file 1 " in text
        assemble(text, target, tmp_path, "-lineinfo")


@needs_ptxas
@pytest.mark.parametrize("target", [75, 80, 90, "newest"])
def test_random_programs_assemble(tmp_path, target):
    count, seed = RANDOM_PROGRAMS // 4, 100_000_001 if target == "newest" else 1000 * target  # from there on, every operation
    target = newest_target() if target == "newest" else target
    subprocess.run([EMIT_RANDOM, str(seed), str(count), str(target), str(tmp_path)], check=True)
    paths = sorted(tmp_path.glob("*.ptx"))
    assert len(paths) * 16 >= count
    for path in paths:
        assemble(path.read_text(encoding="utf-8"), target, tmp_path)
