"""The gate identities that were published with the notation of circuits, applied to a circuit's text.

There H = copy@c05->c06 . mark@c21, X = mark@c21, Z = mark@c42, S = mark@c07 and I = mark@c00. Some of them do not hold
for bytes (H . H copies, S . S is nothing and Z marks), so nothing that runs ever comes of this text."""

_COPY, _X, _Z, _S, _I = "copy@c05->c06", "mark@c21", "mark@c42", "mark@c07", "mark@c00"

# In the order in which they are tried.
_IDENTITIES = [
    ([_COPY, _X, _X, _COPY, _X], _Z),  # H.X.H = Z
    ([_COPY, _X, _COPY, _X], _I),  # H.H = I
    ([_X, _X], _I),
    ([_Z, _Z], _I),
    ([_S, _S], _Z),
    ([_I, _I], _I),
]


def _replaced(steps: list[str], pattern: list[str], result: str) -> list[str]:
    kept: list[str] = []
    for step in steps:
        kept.append(step)
        if kept[-len(pattern) :] == pattern:
            kept[-len(pattern) :] = [result]
    return kept


def apply(text: str) -> str:
    """Replaces what an identity applies to, until none does."""
    before, steps = [""], text.split(" . ")
    while before != steps:
        before = steps
        for pattern, result in _IDENTITIES:
            if len(steps) == len(before):
                steps = _replaced(steps, pattern, result)
    return " . ".join(steps)
