#!/usr/bin/env python3
"""What the libraries show to a linker, and what they ask it for.

check_symbols.py libhologram.so libhologram.a
    The shared library exports exactly the functions that the public headers declare. Every global symbol of the static
    library has one of our prefixes, so that it cannot collide with a caller's.

check_symbols.py --floating-point NM BUILD
    Library and command call no floating-point function of a C library, but for EXACT. Looks at their object files with
    that nm: what a C library has for static linking, as on Windows, does not show in a program that is linked."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = ("hg_", "atlas_", "ir_", "ops_")

# What C libraries compute, in math.h, complex.h and stdlib.h: each rounds as it likes.
FLOATING_POINT = """
    acos asin atan atan2 cos sin tan sincos acosh asinh atanh cosh sinh tanh acospi asinpi atanpi atan2pi cospi sinpi tanpi
    exp exp2 exp10 expm1 exp2m1 exp10m1 log log2 log10 log1p log2p1 log10p1 logp1 logb ilogb llogb frexp ldexp modf scalb scalbn
    scalbln cbrt hypot pow pown powr rootn compoundn sqrt rsqrt erf erfc gamma lgamma tgamma j0 j1 jn y0 y1 yn
    ceil floor trunc round roundeven rint nearbyint lrint llrint lround llround fromfp fromfpx ufromfp ufromfpx
    fmod drem remainder remquo copysign nan nextafter nexttoward nextup nextdown canonicalize significand
    fabs fdim fmax fmin fmaximum fminimum fmaximum_num fminimum_num fmaximum_mag fminimum_mag fma
    cabs carg conj cproj creal cimag strtod strtof strtold atof""".split()
SPELLING = re.compile(rf"_*(?:imp_+)?(?:mingw_|c)?({'|'.join(FLOATING_POINT)})(?:f|l|f32|f64|_r|f_r|l_r)?(?:_finite)?")

# Where a compiler writes a call instead of the instruction. tests/unit/test_exact.c checks them on every platform.
EXACT = ("sqrt", "sqrtf")


def declared():
    names = set()
    for header in sorted((ROOT / "include" / "hologram").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        names |= set(re.findall(r"^HG_API\s[^;(]*?(\w+)\(", text, re.M))
    return names


def symbols(*command):
    lines = subprocess.run(["nm", *command], check=True, text=True, capture_output=True).stdout.split("\n")
    return {parts[-1] for parts in map(str.split, lines) if len(parts) == 3}


def check_floating_point(nm, build):
    folder = Path(build)
    files = [folder / "libhologram.a", *folder.glob("hologram.p/*.o"), *folder.glob("hologram.exe.p/*.obj")]
    output = subprocess.run([nm, "-A", "-u", *files], check=True, text=True, capture_output=True).stdout
    asked = sorted({(line.split()[-1], line.split(": ")[0]) for line in output.split("\n") if line.strip()})
    names = {name for name, _ in asked}
    problems = [f"{where} calls {name}, of a C library" for name, where in asked
                if SPELLING.fullmatch(name) and name.removeprefix("__imp_") not in EXACT]
    if len(files) < 2 or "memcpy" not in names:  # which each platform's library asks for
        problems.append(f"{build}: no library or command that was built")
    print("\n".join(problems) or f"{len(names)} undefined symbols in {len(files)} files, {sorted(names & set(EXACT))} of the exact ones")
    return 1 if problems else 0


def main(shared, static):
    problems = []
    exported, wanted = symbols("-D", "--defined-only", shared), declared()
    problems += [f"exported, but in no public header: {name}" for name in sorted(exported - wanted)]
    problems += [f"declared in a public header, but not exported: {name}" for name in sorted(wanted - exported)]
    visible = symbols("--defined-only", "--extern-only", static)
    problems += [f"a global of the static library without a prefix of ours: {name}" for name in sorted(visible)
                 if not name.startswith(OURS)]
    print("\n".join(problems) or f"{len(exported)} functions exported, {len(visible)} globals in the static library")
    return 1 if problems else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--floating-point"]:
        sys.exit(check_floating_point(*sys.argv[2:]))
    sys.exit(main(*sys.argv[1:]))
