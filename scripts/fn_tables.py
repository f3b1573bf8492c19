#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derive the coefficients of the function unit (exp, recip, log, rsqrt).

    scripts/fn_tables.py > rtl/fp/ct_fn_table.def

The committed table is the contract; this program shows where its numbers come from and, run again,
gives the same file. Everything is integer or 50-digit decimal: no floating point, so no host
dependence. docs/numerics.md describes the scheme; in short, each function is brought to one
decreasing convex function on [0, 1) of a 23-bit argument, cut into 128 segments, and in a segment

    g = c1 - (c2 * t >> 20)        t: 16-bit offset in the segment
    y = c0 - (g  * t >> 13)

with y in units of 2^-27 (2^-28 for log). The end of a segment never lies below the start of the
next one, and y never rises inside one: that makes the functions monotone.
"""

from decimal import ROUND_HALF_EVEN, Decimal, getcontext

getcontext().prec = 50

SEGMENTS = 128
T_BITS = 16
INNER_SHIFT = 20
OUTER_SHIFT = 13
LN2 = Decimal(2).ln()


def exp_y(v):
    """2^(1-v) - 1 for v in [0, 1]."""
    return ((1 - v) * LN2).exp() - 1


def recip_y(v):
    """2/(1+v) - 1."""
    return 2 / (1 + v) - 1


def log_y(v):
    """ln(2/(1+v)), in units twice as fine as the others'."""
    return 2 * (LN2 - (1 + v).ln())


def rsqrt_y(v):
    """2/sqrt(u) - 1: u runs over [1, 2) in the first half, over [2, 4) in the second."""
    u = 1 + 2 * v if v < Decimal("0.5") else 4 * v
    return 2 / u.sqrt() - 1


# name, function, half an ulp of the result in units of y (log is truncated after normalisation, so
# it takes none)
FUNCTIONS = (
    ("exp", exp_y, 8),
    ("recip", recip_y, 8),
    ("log", log_y, 0),
    ("rsqrt", rsqrt_y, 8),
)


def to_int(x):
    return int(x.to_integral_value(rounding=ROUND_HALF_EVEN))


def evaluate(c0, c1, c2, t):
    return c0 - ((c1 - (c2 * t >> INNER_SHIFT)) * t >> OUTER_SHIFT)


def falls(c1, c2):
    """g * t never falls as t grows: it can only where the inner product takes a step."""
    steps = c2 * ((1 << T_BITS) - 1) >> INNER_SHIFT
    for k in range(1, steps + 1):
        t = -((-k << INNER_SHIFT) // c2)  # first t with inner product k
        if (c1 - k) * t < (c1 - k + 1) * (t - 1):
            return False
    return True


def fit_segment(fn, half, index, next_c0):
    """The (c0, c1, c2) of least worst error among the integers around the ideal parabola."""
    unit = Decimal(1 << 27)
    start, width = Decimal(index) / SEGMENTS, Decimal(1) / SEGMENTS
    f0, fm, f1 = (fn(start + width * k / 2) * unit for k in range(3))
    a = 2 * (f0 + f1 - 2 * fm)
    b = f0 - f1 + a
    c1_mid, c2_mid = to_int(b / 8), to_int(a * 2)
    last = (1 << T_BITS) - 1
    points = [last * k // 32 for k in range(33)]
    truth = [fn(start + width * t / (1 << T_BITS)) * unit for t in points]
    best = None
    for c1 in range(c1_mid - 3, min(c1_mid + 4, (1 << 18) - 1) + 1):
        for c2 in range(c2_mid - 48, min(c2_mid + 48, (1 << 16) - 1) + 1, 8):
            raw = [evaluate(0, c1, c2, t) for t in points]
            diff = [r - y for r, y in zip(raw, truth)]
            # c0 centres the error, except where the function has to be exact at its start
            c0 = to_int(f0) if index == 0 else to_int(-(min(diff) + max(diff)) / 2)
            if evaluate(c0 + half, c1, c2, last) < next_c0:
                c0 = next_c0 - half - raw[-1]
            if index == 0 and c0 != to_int(f0):
                continue
            error = max(abs(c0 + d) for d in diff)
            if (best is None or error < best[0]) and falls(c1, c2):
                best = (error, c0 + half, c1, c2)
    return best


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Coefficients of the function unit, part of the numeric contract (docs/numerics.md).")
    print("// Derived by scripts/fn_tables.py; read by host/emu/ct_num.c as it stands and by")
    print("// rtl/fp/ct_fn.sv through scripts/fn_table_to_sv.awk.")
    print("// X(128 * function + segment, {c0[27:0], c1[19:0], c2[15:0]})")
    for number, (name, fn, half) in enumerate(FUNCTIONS):
        rows, worst = [], Decimal(0)
        next_c0 = half  # the function ends where the next octave starts
        for index in reversed(range(SEGMENTS)):
            error, c0, c1, c2 = fit_segment(fn, half, index, next_c0)
            worst = max(worst, error)
            next_c0 = c0
            rows.append((SEGMENTS * number + index, c0 << 36 | c1 << 16 | c2))
        print(f"// {number}: {name}, polynomial within {worst:.2f} units")
        for index, row in reversed(rows):
            print(f"X({index:3}, 0x{row:016X})")


if __name__ == "__main__":
    main()
