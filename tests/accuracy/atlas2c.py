#!/usr/bin/env python3
"""Translate Atlas function files (src/functions/*.atlas) into one C file.

    atlas2c.py OUT.c FILE.atlas...

Each `.entry op type label` becomes a C function on the C type, its dots written as underscores:

    .entry exp f32 exp_f32          float  fn_exp_f32(float a);
    .entry gelu.tanh f64 gelu_tanh  double fn_gelu_tanh_f64(double a);
    .entry pow f32 pow_f32          float  fn_pow_f32(float a, float b);

The file ends with `atlas_functions[]`, a table of them; `atlas_faults` counts table loads that were out of bounds.
Compile it with

    cc -O2 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math

The purpose is to judge the text of the functions at native speed, and to have a second reading of the ISA that shares
nothing with the C sources but ops.def. Every instruction becomes one call of a helper of the prelude below, which
follows ops.def to the letter. A register becomes one C variable for each type it ever holds, which is right because
the ISA gives a register one type per live range; a data-flow pass checks that, and that nothing is read before it is
written. A `call` is inlined; an instruction that is another function calls that one's C function.
"""
import os
import re
import sys
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
OPS_DEF = os.path.join(HERE, "..", "..", "include", "hologram", "ops.def")

C_TYPES = {"i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
           "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
           "f32": "float", "f64": "double"}
NARROW = ("f16", "bf16")   # their entries give the bits of the f32 function, rounded, and are left out
FLOATS = {"f32": (24, -149, 32), "f64": (53, -1074, 64)}   # precision, exponent of the smallest subnormal, width

PRELUDE = r"""
#pragma GCC system_header /* statement expressions */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define FI static inline __attribute__((always_inline))

static unsigned long atlas_faults; /* table loads out of bounds */

#define BITCAST(D, S, x) ({ S s_ = (x); D d_; _Static_assert(sizeof d_ == sizeof s_, "width"); memcpy(&d_, &s_, sizeof d_); d_; })
#define F32_BITS(x) BITCAST(float, uint32_t, x)
#define F64_BITS(x) BITCAST(double, uint64_t, x)
/* Tables hold the bits of their elements, so that NaN payloads survive. */
#define LDC(T, table, count, index) ({ int64_t i_ = (index); T v_ = 0; \
    if (i_ < 0 || i_ >= (count)) atlas_faults++; else memcpy(&v_, &table[i_], sizeof v_); v_; })

/* Integers: computed in 64 unsigned bits, so that they wrap, and cut to the type. W bits; T the type, U its unsigned twin. */
#define INTEGER(t, T, U, W)                                                                     \
    FI T add_##t(T a, T b) { return (T)((uint64_t)a + (uint64_t)b); }                           \
    FI T sub_##t(T a, T b) { return (T)((uint64_t)a - (uint64_t)b); }                           \
    FI T mul_##t(T a, T b) { return (T)((uint64_t)a * (uint64_t)b); }                           \
    FI T mad_##t(T a, T b, T c) { return (T)((uint64_t)a * (uint64_t)b + (uint64_t)c); }        \
    FI T mulhi_##t(T a, T b) { return (T)(((__int128)a * (__int128)b) >> W); }                  \
    FI T div_##t(T a, T b) { return b == 0 ? 0 : (T)-1 < 0 && b == (T)-1 ? (T)(0 - (uint64_t)a) : (T)(a / b); } \
    FI T rem_##t(T a, T b) { return b == 0 ? a : (T)-1 < 0 && b == (T)-1 ? 0 : (T)(a % b); }    \
    FI T min_##t(T a, T b) { return a < b ? a : b; }                                            \
    FI T max_##t(T a, T b) { return a > b ? a : b; }                                            \
    FI T abs_##t(T a) { return a < 0 ? (T)(0 - (uint64_t)a) : a; }                              \
    FI T neg_##t(T a) { return (T)(0 - (uint64_t)a); }                                          \
    FI T sign_##t(T a) { return (T)((a > 0) - (a < 0)); }                                       \
    FI T and_##t(T a, T b) { return (T)(a & b); }                                               \
    FI T or_##t(T a, T b) { return (T)(a | b); }                                                \
    FI T xor_##t(T a, T b) { return (T)(a ^ b); }                                               \
    FI T not_##t(T a) { return (T)~a; }                                                         \
    FI T shl_##t(T a, uint32_t c) { return (T)((uint64_t)a << (c & (W - 1))); }                 \
    FI T shr_##t(T a, uint32_t c) { return (T)(a >> (c & (W - 1))); }                           \
    FI T popc_##t(T a) { return (T)__builtin_popcountll((U)a); }                                \
    FI T clz_##t(T a) { return (T)(a == 0 ? W : __builtin_clzll((U)a) - (64 - W)); }            \
    FI T ctz_##t(T a) { return (T)(a == 0 ? W : __builtin_ctzll((U)a)); }                       \
    FI T brev_##t(T a) { U r = 0; for (int i = 0; i < W; i++) r |= (U)((((uint64_t)(U)a >> i) & 1) << (W - 1 - i)); return (T)r; } \
    COMPARE(t, T)
#define COMPARE(t, T)                                        \
    FI _Bool set_eq_##t(T a, T b) { return a == b; }         \
    FI _Bool set_ne_##t(T a, T b) { return !(a == b); }      \
    FI _Bool set_lt_##t(T a, T b) { return a < b; }          \
    FI _Bool set_le_##t(T a, T b) { return a <= b; }         \
    FI _Bool set_gt_##t(T a, T b) { return a > b; }          \
    FI _Bool set_ge_##t(T a, T b) { return a >= b; }         \
    FI T mov_##t(T a) { return a; }                          \
    FI T movi_##t(T a) { return a; }                         \
    FI T sel_##t(_Bool p, T a, T b) { return p ? a : b; }

/* Floats: one rounding each; an arithmetic NaN is the canonical one. f is the suffix of the builtins. */
#define FLOAT(t, T, f, NAN_BITS)                                                                \
    FI T canon_##t(T a) { return a != a ? NAN_BITS : a; }                                       \
    FI T add_##t(T a, T b) { return canon_##t(a + b); }                                         \
    FI T sub_##t(T a, T b) { return canon_##t(a - b); }                                         \
    FI T mul_##t(T a, T b) { return canon_##t(a * b); }                                         \
    FI T div_##t(T a, T b) { return canon_##t(a / b); }                                         \
    FI T recip_##t(T a) { return canon_##t(1 / a); }                                            \
    FI T fma_##t(T a, T b, T c) { return canon_##t(__builtin_fma##f(a, b, c)); }                \
    FI T mad_##t(T a, T b, T c) { return fma_##t(a, b, c); }                                    \
    FI T sqrt_##t(T a) { return canon_##t(__builtin_sqrt##f(a)); }                              \
    FI T floor_##t(T a) { return canon_##t(__builtin_floor##f(a)); }                            \
    FI T ceil_##t(T a) { return canon_##t(__builtin_ceil##f(a)); }                              \
    FI T trunc_##t(T a) { return canon_##t(__builtin_trunc##f(a)); }                            \
    FI T round_##t(T a) { return canon_##t(__builtin_rint##f(a)); }                             \
    FI T min_##t(T a, T b) { return a != a || b != b ? NAN_BITS : a < b ? a : b < a ? b : __builtin_signbit(a) ? a : b; } \
    FI T max_##t(T a, T b) { return a != a || b != b ? NAN_BITS : a > b ? a : b > a ? b : __builtin_signbit(a) ? b : a; } \
    FI T relu_##t(T a) { return max_##t(a, 0); }                                                \
    FI T abs_##t(T a) { return __builtin_fabs##f(a); }                                          \
    FI T neg_##t(T a) { return -a; }                                                            \
    FI T copysign_##t(T a, T b) { return __builtin_copysign##f(a, b); }                         \
    FI T sign_##t(T a) { return a != a ? NAN_BITS : a > 0 ? 1 : a < 0 ? -1 : 0; }               \
    FI _Bool set_num_##t(T a, T b) { return a == a && b == b; }                                 \
    FI _Bool set_nan_##t(T a, T b) { return a != a || b != b; }                                 \
    COMPARE(t, T)

INTEGER(i8, int8_t, uint8_t, 8)
INTEGER(i16, int16_t, uint16_t, 16)
INTEGER(i32, int32_t, uint32_t, 32)
INTEGER(i64, int64_t, uint64_t, 64)
INTEGER(u8, uint8_t, uint8_t, 8)
INTEGER(u16, uint16_t, uint16_t, 16)
INTEGER(u32, uint32_t, uint32_t, 32)
INTEGER(u64, uint64_t, uint64_t, 64)
FLOAT(f32, float, f, F32_BITS(0x7fc00000u))
FLOAT(f64, double, , F64_BITS(0x7ff8000000000000u))

/* Float to integer: toward zero, saturating, NaN gives 0. f32 to f64 is exact, so one helper serves both. */
#define SATURATE(t, T, MIN, MAX) \
    FI T to_##t(double a) { return a != a ? 0 : a <= (double)MIN ? MIN : a >= (double)MAX ? MAX : (T)a; }
SATURATE(i8, int8_t, INT8_MIN, INT8_MAX)
SATURATE(i16, int16_t, INT16_MIN, INT16_MAX)
SATURATE(i32, int32_t, INT32_MIN, INT32_MAX)
SATURATE(i64, int64_t, INT64_MIN, INT64_MAX)
SATURATE(u8, uint8_t, 0, UINT8_MAX)
SATURATE(u16, uint16_t, 0, UINT16_MAX)
SATURATE(u32, uint32_t, 0, UINT32_MAX)
SATURATE(u64, uint64_t, 0, UINT64_MAX)

FI _Bool pand(_Bool a, _Bool b) { return a && b; }
FI _Bool por(_Bool a, _Bool b) { return a || b; }
FI _Bool pxor(_Bool a, _Bool b) { return a != b; }
FI _Bool pnot(_Bool a) { return !a; }
"""


class Error(Exception):
    """A fault of the text, with its place."""


class Instruction:
    def __init__(self, where, guard, op, types, operands):
        self.where, self.guard, self.op, self.types, self.operands = where, guard, op, types, operands


class Function:
    def __init__(self, op, type_, label, source):
        self.op, self.type, self.label, self.source = op, type_, label, source
        self.c_name = "fn_%s_%s" % (op.replace(".", "_"), type_)
        self.args = ["r0", "r1"][:len(OPS[op].form) - 1]


class Op:
    def __init__(self, form, flags):
        self.form, self.flags = form, flags


def load_ops():
    """mnemonic -> Op from ops.def, with the operand letters of forms.def."""
    with open(os.path.join(os.path.dirname(OPS_DEF), "forms.def"), encoding="utf-8") as f:
        forms = dict(re.findall(r'^ATLAS_FORM\((\w+),\s*"(\w*)"', f.read(), re.M))
    with open(OPS_DEF, encoding="utf-8") as f:
        rows = re.findall(r'^ATLAS_OP\(0x\w+,\s*\w+,\s*"([\w.]+)",\s*(\w+),\s*\w+,\s*([\w|]+),', f.read(), re.M)
    return {name: Op(forms[form], set(flags.split("|"))) for name, form, flags in rows}


OPS = load_ops()


# ---- constants -------------------------------------------------------------------------------------------------------

def exact(text):
    """The rational value of a decimal or hexadecimal-float constant."""
    m = re.fullmatch(r"(-?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?\d+))?", text, re.I)
    if m:
        value = Fraction(int((m[2] + m[3]) or "0", 16), 16 ** len(m[3])) * Fraction(2) ** int(m[4] or 0)
        return -value if m[1] else value
    return Fraction(text)


def float_bits(text, type_):
    """The bits of a float constant: `0x...` without point or exponent is the bits; anything else is rounded once."""
    precision, least, width = FLOATS[type_]
    infinity = ((1 << width) - 1) // 2 + 1 - (1 << (precision - 1))
    sign = 1 << (width - 1) if text.startswith("-") else 0
    body = text.lstrip("+-").lower()
    if body == "inf":
        return sign | infinity
    if body == "nan":
        return sign | infinity | 1 << (precision - 2)
    if re.fullmatch(r"0x[0-9a-f]+", body):
        return sign ^ int(body, 16)
    value = exact(body)
    if value == 0:
        return sign
    e = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** e > value:
        e -= 1
    unit = max(e - precision + 1, least)
    n = round(value / Fraction(2) ** unit)             # Python rounds halves to even
    bits = n + ((unit - least) << (precision - 1))     # a carry out of the fraction goes into the exponent by itself
    return sign | min(bits, infinity)


def constant_bits(text, type_):
    return float_bits(text, type_) if type_ in FLOATS else int(text, 0) & (1 << int(type_[1:])) - 1


def constant(text, type_):
    """C text of a constant."""
    bits = constant_bits(text, type_)
    return "%s_BITS(0x%xu)" % (type_.upper(), bits) if type_ in FLOATS else "((%s)%du)" % (C_TYPES[type_], bits)


# ---- parsing ---------------------------------------------------------------------------------------------------------

def split_mnemonic(word, where):
    """`gelu.tanh.f32` -> ("gelu.tanh", ["f32"]): the longest known mnemonic, then types."""
    parts = word.split(".")
    for n in range(len(parts), 0, -1):
        op, types = ".".join(parts[:n]), parts[n:]
        if op in OPS and all(t in C_TYPES for t in types):
            wanted = 0 if re.fullmatch("[pqlkr]*", OPS[op].form) else 1
            if len(types) != wanted + ("SECOND" in OPS[op].flags):
                break
            return op, types
    raise Error("%s: unknown instruction '%s'" % (where, word))


class Source:
    """One parsed .atlas file."""

    def __init__(self, path):
        self.path, self.name = path, re.sub(r"\W", "_", os.path.splitext(os.path.basename(path))[0])
        self.tables, self.entries, self.labels, self.code = {}, [], {}, []
        with open(path, encoding="utf-8") as f:
            lines = [line.split(";")[0].strip() for line in f]
        number = 0
        while number < len(lines):
            where, line = "%s:%d" % (path, number + 1), lines[number]
            while line.startswith(".const") and "}" not in line:
                number += 1
                if number == len(lines):
                    raise Error("%s: a table without '}'" % where)
                line += " " + lines[number]
            number += 1
            if line:
                self.parse(line, where)

    def parse(self, line, where):
        if line.startswith(".program"):
            return
        if line.startswith(".const"):
            m = re.fullmatch(r"\.const\s+(\w+)\s+(\w+)\s*\{(.*)\}", line)
            if not m or m[2] not in C_TYPES:
                raise Error("%s: expected '.const name type { #v, ... }'" % where)
            values = [v.strip() for v in m[3].split(",") if v.strip()]
            if not values or any(not v.startswith("#") for v in values):
                raise Error("%s: the elements of a table are constants '#...'" % where)
            self.tables[m[1]] = (m[2], [constant_bits(v[1:], m[2]) for v in values])
            return
        if line.startswith(".entry"):
            m = re.fullmatch(r"\.entry\s+([\w.]+)\s+(\w+)\s+(\w+)", line)
            if not m or m[1] not in OPS or m[2] not in (*C_TYPES, *NARROW):
                raise Error("%s: expected '.entry op type label'" % where)
            if m[2] not in NARROW:
                self.entries.append(Function(m[1], m[2], m[3], self))
            return
        m = re.match(r"(\w+):\s*", line)
        if m:
            if m[1] in self.labels:
                raise Error("%s: label '%s' is there twice" % (where, m[1]))
            self.labels[m[1]] = len(self.code)
            line = line[m.end():]
            if not line:
                return
        m = re.fullmatch(r"(?:@(!?p\d+)\s+)?([\w.]+)\s*(.*)", line)
        if not m:
            raise Error("%s: cannot read '%s'" % (where, line))
        op, types = split_mnemonic(m[2], where)
        operands = [o.strip() for o in m[3].split(",")] if m[3] else []
        if len(operands) != len(OPS[op].form):
            raise Error("%s: '%s' takes %d operands, got %d" % (where, op, len(OPS[op].form), len(operands)))
        if m[1] and op != "bra":
            raise Error("%s: only bra takes a predicate" % where)
        self.code.append(Instruction(where, m[1], op, types, operands))

    def target(self, instruction, label):
        if label not in self.labels:
            raise Error("%s: no label '%s'" % (instruction.where, label))
        return self.labels[label]


# ---- one function ----------------------------------------------------------------------------------------------------

class Step:
    """An instruction of the flattened function (calls inlined), with the steps that may follow it."""

    def __init__(self, instruction):
        self.instruction, self.next, self.branch, self.state = instruction, None, None, None


def flatten(source, start, stack=()):
    """The steps of the code at `start`, every call inlined; returns (steps, first step, last step: a join)."""
    end = Step(None)
    made = {}
    extra = []

    def step_at(index, where):
        if index >= len(source.code):
            raise Error("%s: runs off the end of the file" % where)
        if index not in made:
            made[index] = Step(source.code[index])
            todo.append(index)
        return made[index]

    todo = []
    first = step_at(start, source.path)
    while todo:
        index = todo.pop()
        step, i = made[index], source.code[index]
        if i.op == "ret":
            step.next = end
        elif i.op == "bra":
            step.branch = step_at(source.target(i, i.operands[0]), i.where)
            if i.guard:
                step.next = step_at(index + 1, i.where)
        elif i.op == "loop":
            step.branch = step_at(source.target(i, i.operands[1]), i.where)
            step.next = step_at(index + 1, i.where)
        elif i.op == "call":
            target = source.target(i, i.operands[0])
            if target in stack:
                raise Error("%s: recursion" % i.where)
            inner, entry, leave = flatten(source, target, stack + (target,))
            step.next = entry
            leave.next = step_at(index + 1, i.where)
            extra.append((index, inner))
        elif i.op in ("exit", "trap"):
            raise Error("%s: '%s' in a function" % (i.where, i.op))
        else:
            step.next = step_at(index + 1, i.where)
    steps = []
    inlined = dict(extra)
    for index in sorted(made):
        steps += [made[index]] + inlined.get(index, [])
    return steps + [end], first, end


def accesses(i):
    """(registers read, registers written) of an instruction as (name, type) pairs; a type of None is any integer."""
    reads, writes = [], []
    for letter, operand in zip(OPS[i.op].form, i.operands):
        if letter == "d":
            writes.append((operand, i.types[0]))
        elif letter in "st":
            reads.append((operand, i.types[-1] if letter == "t" else i.types[0]))
        elif letter == "c":
            reads.append((operand, "u32"))
        elif letter == "r":
            reads.append((operand, "u32"))
            writes.append((operand, "u32"))
        elif letter == "p":
            writes.append((operand, "pred"))
        elif letter == "q":
            reads.append((operand, "pred"))
        elif letter == "m":
            for part in operand.strip("[]").split("+")[1:]:
                reads.append((part.strip(), None))
    if i.guard:
        reads.append((i.guard.lstrip("!"), "pred"))
    return [r for r in reads if not r[0].startswith("#")], writes


def infer(function, steps, first, end):
    """Which type each register holds before each step; rejects reads of anything else."""
    first.state = {a: function.type for a in function.args}
    todo = [first]
    while todo:
        step = todo.pop()
        after = dict(step.state)
        if step.instruction:
            after.update(accesses(step.instruction)[1])
        for follower in (step.next, step.branch):
            if follower is None:
                continue
            met = after if follower.state is None else {r: t for r, t in follower.state.items() if after.get(r) == t}
            if met != follower.state:
                follower.state = dict(met)
                todo.append(follower)
    for step in steps:
        i = step.instruction
        if i is None or step.state is None:
            continue
        for name, type_ in accesses(i)[0]:
            if not re.fullmatch(r"r\d+|p\d+", name):
                raise Error("%s: '%s' is not a register" % (i.where, name))
            have = step.state.get(name)
            if have is None:
                raise Error("%s: %s is not written on every path with one type" % (i.where, name))
            if have != type_ and not (type_ is None and have not in FLOATS and have != "pred"):
                raise Error("%s: %s holds %s, read as %s" % (i.where, name, have, type_))
    if end.state is not None and end.state.get("r0") != function.type:
        raise Error("%s: the result of %s is not in r0 as %s" % (function.source.path, function.op, function.type))


def variable(name, type_):
    return name if type_ == "pred" else "%s_%s" % (name, type_)


def operand_text(text, type_):
    return constant(text[1:], type_) if text.startswith("#") else variable(text, type_)


def load(function, step):
    """C text of an ldc."""
    i = step.instruction
    parts = [p.strip() for p in i.operands[1].strip("[]").split("+")]
    if parts[0] not in function.source.tables:
        raise Error("%s: no table '%s'" % (i.where, parts[0]))
    type_, values = function.source.tables[parts[0]]
    if type_ != i.types[0]:
        raise Error("%s: the table holds %s" % (i.where, type_))
    index = [p[1:] if p.startswith("#") else "(int64_t)" + variable(p, step.state[p]) for p in parts[1:]]
    return "LDC(%s, %s_%s, %d, %s)" % (C_TYPES[type_], function.source.name, parts[0], len(values), " + ".join(index) or "0")


def statement(function, step, functions):
    """C text of one step, without the jump to the next."""
    i = step.instruction
    if i.op == "ldc":
        return "%s = %s;" % (variable(i.operands[0], i.types[0]), load(function, step))
    if i.op == "loop":
        counter = variable(i.operands[0], "u32")
        return "if (--%s != 0)" % counter
    if i.op == "bra":
        return "if (%s)" % i.guard if i.guard else ""
    if i.op in ("call", "ret"):
        return ""
    reads = {"s": i.types[0] if i.types else None, "t": i.types[-1] if i.types else None, "c": "u32", "q": "pred"}
    target_type = "pred" if OPS[i.op].form[0] == "p" else i.types[0]
    args = [operand_text(o, reads[letter]) for letter, o in zip(OPS[i.op].form, i.operands) if letter in reads]
    if OPS[i.op].form == "dn":
        args = [constant(i.operands[1][1:], i.types[0])]
    if i.op == "bitcast":
        value = "BITCAST(%s, %s, %s)" % (C_TYPES[i.types[0]], C_TYPES[i.types[1]], args[0])
    elif i.op == "cvt":
        to, of = i.types
        value = "canon_%s((%s)%s)" % (to, C_TYPES[to], args[0]) if to in FLOATS else \
            "to_%s(%s)" % (to, args[0]) if of in FLOATS else "(%s)%s" % (C_TYPES[to], args[0])
    elif "FUNC" in OPS[i.op].flags:
        if (i.op, i.types[0]) not in functions:
            raise Error("%s: no function for '%s.%s' among the files" % (i.where, i.op, i.types[0]))
        value = "%s(%s)" % (functions[i.op, i.types[0]].c_name, ", ".join(args))
    elif "FUNC" not in OPS[i.op].flags and "PURE" in OPS[i.op].flags and i.op != "sreg":
        value = "%s(%s)" % ("_".join(i.op.split(".") + i.types[:1]), ", ".join(args))
    else:
        raise Error("%s: '%s' cannot stand in a function" % (i.where, i.op))
    return "%s = %s;" % (variable(i.operands[0], target_type), value)


def signature(function):
    c = C_TYPES[function.type]
    return "static inline %s %s(%s)" % (c, function.c_name, ", ".join(c + " " + n for n in "ab"[:len(function.args)]))


def translate(function, functions):
    """The C function of one entry."""
    source = function.source
    if function.label not in source.labels:
        raise Error("%s: no label '%s'" % (source.path, function.label))
    steps, first, end = flatten(source, source.labels[function.label], (source.labels[function.label],))
    infer(function, steps, first, end)
    number = {step: n for n, step in enumerate(steps)}
    follow = dict(zip(steps, steps[1:]))
    goals = {s.branch for s in steps if s.branch} | {s.next for s in steps if s.next and follow.get(s) is not s.next}
    if steps[0] is not first:
        goals.add(first)

    variables = {}
    for step in steps:
        if step.instruction:
            for name, type_ in accesses(step.instruction)[1]:
                variables.setdefault("_Bool" if type_ == "pred" else C_TYPES[type_], set()).add(variable(name, type_))
    variables.setdefault(C_TYPES[function.type], set()).update(variable(r, function.type) for r in function.args)

    out = [signature(function), "{"]
    for type_ in sorted(variables):
        out.append("    %s %s;" % (type_, ", ".join(sorted(variables[type_]))))
    for register, name in zip(function.args, "ab"):
        out.append("    %s = %s;" % (variable(register, function.type), name))
    if steps[0] is not first:
        out.append("    goto L%d;" % number[first])
    for step in steps:
        if step in goals:
            out.append("L%d:;" % number[step])
        if step.instruction:
            text = statement(function, step, functions)
            if step.branch:
                text = (text + " " if text else "") + "goto L%d;" % number[step.branch]
            if step.next and follow.get(step) is not step.next:
                text = (text + " " if text else "") + "goto L%d;" % number[step.next]
        else:
            text = "" if step.next is None or follow.get(step) is step.next else "goto L%d;" % number[step.next]
        if text:
            out.append("    " + text)
    out += ["    return %s;" % variable("r0", function.type), "}", ""]
    return "\n".join(out)


def main(argv):
    if len(argv) < 3:
        sys.exit(__doc__)
    try:
        sources = [Source(path) for path in argv[2:]]
        functions = {}
        for source in sources:
            for function in source.entries:
                key = (function.op, function.type)
                if key in functions:
                    raise Error("%s: '%s.%s' is there twice" % (source.path, *key))
                functions[key] = function
        out = ["/* Generated by atlas2c.py from: %s */" % " ".join(os.path.basename(s.path) for s in sources), PRELUDE]
        for source in sources:
            for name, (type_, values) in source.tables.items():
                out.append("static const uint%s_t %s_%s[%d] = {" % (type_[1:], source.name, name, len(values)))
                out += ["    %#x," % v for v in values]
                out.append("};\n")
        out += [signature(f) + ";" for f in functions.values()] + [""]
        out += [translate(f, functions) for f in functions.values()]
        out.append("static const struct { const char *op, *type; int arguments; float (*f32)(float); float (*f32_2)(float, float);\n"
                   "                      double (*f64)(double); double (*f64_2)(double, double); } atlas_functions[] = {")
        for f in functions.values():
            field = f.type + ("_2" if len(f.args) == 2 else "")
            out.append('    { .op = "%s", .type = "%s", .arguments = %d, .%s = %s },'
                       % (f.op, f.type, len(f.args), field, f.c_name))
        out.append("};")
    except Error as error:
        sys.exit("atlas2c: %s" % error)
    with open(argv[1], "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main(sys.argv)
