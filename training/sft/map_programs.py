"""Random programs that compute each output from its place: maps, layouts, gathers, stencils and windows."""

from __future__ import annotations

from training.sft import vocabulary as words
from training.sft.draft import Draft, Node


def elementwise(d: Draft) -> list[Node]:
    """``y[i] = f(a[i], b[i], …)``, with locals, branches or a short inner loop."""
    rng = d.rng
    n, i = d.size(), d.counter()
    ins = [d.array("in", n) for _ in range(rng.randint(1, 3))]
    atoms = [f"{name}[{i}]" for name in ins] + [d.scalar() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    if rng.random() < 0.2:
        d.helper()
    body: list[Node] = []
    while rng.random() < 0.45 and len(body) < 3:
        name = d.local()
        const = "const " if rng.random() < 0.3 else ""
        body.append(f"{const}{d.kind} {name} = {d.draw(atoms).text};")
        atoms = [name, *atoms] if rng.random() < 0.6 else [name, *[a for a in atoms if not a.startswith(name)][:2]]
    if rng.random() < 0.25:
        repeated = _repeated(d, atoms)
        body += repeated
        # The last statement before the loop declares what the loop changes, the first one the count, if it is kept.
        declared = [str(node).split()[1] for node in repeated[:-1]]
        atoms = declared if len(declared) > 1 and rng.random() < 0.7 else declared[-1:]
    outs = rng.choice((1, 1, 1, 2))
    for _ in range(outs):
        if rng.random() < 0.25:
            y = d.array("inout", n)
            if rng.random() < 0.5:
                body.append(f"{y}[{i}] {rng.choice(('+=', '-=', '+='))} {d.draw(atoms).text};")
            else:
                body.append(f"{y}[{i}] = {d.draw([*atoms, f'{y}[{i}]', f'{y}[{i}]']).text};")
        else:
            y = d.array("out", n)
            body += _stored(d, f"{y}[{i}]", atoms)
    return [d.loop(i, "0", n, body)]


def _stored(d: Draft, place: str, atoms: list[str]) -> list[Node]:
    if d.rng.random() < 0.14:
        return [(f"if ({d.expressions.test(atoms).text})", [f"{place} = {d.draw(atoms).text};"]),
                ("else", [f"{place} = {d.draw(atoms, 1).text};"])]  # fmt: skip
    return [f"{place} = {d.draw(atoms).text};"]


def _repeated(d: Draft, atoms: list[str]) -> list[Node]:
    """A local that a loop of constant length changes."""
    rng = d.rng
    name, k = d.local(), d.counter(2)
    times = d.constant(rng.choice((2, 3, 4, 6, 8, 10, 16)))
    if rng.random() < 0.3 and d.kind != "unsigned":
        test = d.expressions.test([name, *atoms[:1]]).text
        half = f"0.5{d.expressions.suffix} * " if d.expressions.real else ""
        change = f"{name} = {half}({d.draw([name, *atoms[:1]], 1).text})" + ("" if half else " % 100") + ";"
        loop: Node = (f"while ({k} < {times} && {test})", [change, rng.choice((f"{k}++;", f"++{k};"))])
        return [f"int {k} = 0;", f"{d.kind} {name} = {rng.choice(atoms)};", loop]
    if d.kind in ("float", "double"):
        step = f"{name} = {d.draw([name, *atoms[:2]], 1).text} * 0.5{d.expressions.suffix};"
    elif d.kind == "int":
        step = f"{name} = ({d.draw([name, *atoms[:1]], 1).text}) % {rng.choice((7, 97, 1009))};"
    else:
        step = f"{name} {rng.choice(('^=', '+='))} {name} {rng.choice(('<<', '>>'))} {rng.randint(1, 17)};"
    return [f"{d.kind} {name} = {rng.choice(atoms)};", d.loop(k, "0", times, [step])]


def strided(d: Draft) -> list[Node]:
    """Records of several values: strides in, strides out."""
    rng = d.rng
    n, i = d.size(), d.counter()
    wide, made = rng.randint(2, 5), rng.choice((1, 1, 2, 3, 4))
    w = d.constant(wide) if rng.random() < 0.4 else str(wide)
    x = d.array("in", f"{n}*{w}")
    forms = (f"{w} * {i}", f"{i} * {w}")
    form = rng.choice(forms)
    atoms = [f"{x}[{form}]"] + [f"{x}[{form} + {c}]" for c in range(1, wide)]
    atoms += [d.scalar() for _ in range(rng.choice((0, 0, 1)))]
    body: list[Node] = []
    if rng.random() < 0.4:
        chosen = rng.sample(atoms, min(len(atoms), rng.randint(2, 3)))
        named = [(d.local(), atom) for atom in chosen]
        body.append(f"{d.kind} " + ", ".join(f"{name} = {atom}" for name, atom in named) + ";")
        atoms = [name for name, _ in named]
    y = d.array("out", n if made == 1 else f"{n}*{made}")
    for c in range(made):
        place = f"{y}[{i}]" if made == 1 else f"{y}[{made} * {i}{f' + {c}' if c else ''}]"
        body.append(f"{place} = {d.draw(atoms).text};")
    return [d.loop(i, "0", n, body)]


def moved(d: Draft) -> list[Node]:
    """Gathers through an index array, reversals, shifted and wrapped places."""
    rng = d.rng
    n, i = d.size(), d.counter()
    way = rng.choice(("index", "index", "reverse", "wrap", "halves"))
    if way == "index":
        m = d.size(clause="1..")
        at = d.array("index", n, "int", limits=f"0..{m}-1")
        x = d.array("in", m)
        place = f"{at}[{i}]"
        atoms = [f"{x}[{place}]"]
        body: list[Node] = []
        if rng.random() < 0.35:
            name = d.local()
            body.append(f"{rng.choice(('int', 'const int'))} {name} = {place};")
            atoms = [f"{x}[{name}]"]
        if rng.random() < 0.5:
            atoms.append(f"{d.array('in', n)}[{i}]")
    else:
        x = d.array("in", n if way != "halves" else f"2*{n}")
        body = []
        if way == "reverse":
            atoms = [f"{x}[{n} - 1 - {i}]"] + ([f"{x}[{i}]"] if rng.random() < 0.5 else [])
        elif way == "wrap":
            k = rng.randint(1, 5)
            atoms = [f"{x}[({i} + {k}) % {n}]", f"{x}[{i}]"]
        else:
            atoms = [f"{x}[{i}]", f"{x}[{n} + {i}]"] if rng.random() < 0.5 else [f"{x}[2 * {i}]", f"{x}[2 * {i} + 1]"]
    if rng.random() < 0.4:
        atoms.append(d.scalar())
    y = d.array("inout" if rng.random() < 0.25 else "out", n)
    body.append(f"{y}[{i}] = {d.draw(atoms).text};")
    return [d.loop(i, "0", n, body)]


def plane(d: Draft) -> list[Node]:
    """Maps over a matrix: row and column factors, transposed or mirrored places."""
    rng = d.rng
    rows, cols = d.size(words.ROWS), d.size(words.COLS)
    i, j = d.counter(), d.counter(1)
    x = d.grid("in", rows, cols)
    way = rng.choice(("same", "same", "mirror", "upside", "transpose", "turn"))
    body: list[Node] = []
    atoms = {
        "same": [d.cell(x, i, j, cols)],
        "mirror": [d.cell(x, i, f"{cols} - 1 - {j}", cols)],
        "upside": [d.cell(x, f"{rows} - 1 - {i}", j, cols)],
        "transpose": [d.cell(x, i, j, cols)],
        "turn": [d.cell(x, i, j, cols)],
    }[way]
    if rng.random() < 0.4:
        atoms.append(f"{d.array('in', rows)}[{i}]")
    if rng.random() < 0.4:
        atoms.append(f"{d.array('in', cols)}[{j}]")
    if rng.random() < 0.3:
        atoms.append(d.scalar())
    if way == "same" and rng.random() < 0.4:
        atoms.append(d.cell(d.grid("in", rows, cols), i, j, cols))
    if rng.random() < 0.3:
        name = d.local()
        body.append(f"{d.kind} {name} = {d.draw(atoms, 1).text};")
        atoms = [name, *atoms[:1]]
    if way in ("transpose", "turn"):
        y = d.grid("out", cols, rows)
        place = d.cell(y, j, i if way == "transpose" else f"{rows} - 1 - {i}", rows)
    else:
        y = d.grid("inout" if rng.random() < 0.2 else "out", rows, cols)
        place = d.cell(y, i, j, cols)
    body += _stored(d, place, atoms)
    return [d.loop(i, "0", rows, [d.loop(j, "0", cols, body)])]


def stencil(d: Draft) -> list[Node]:
    """Neighbours at fixed distances, in one or two dimensions, in the interior or clamped at the edge."""
    rng = d.rng
    i = d.counter()
    if rng.random() < 0.4:
        n, r = d.size(), rng.randint(1, 3)
        x, y = d.array("in", n), d.array("inout", n)
        atoms = [f"{x}[{i}]"]
        for k in range(1, r + 1):
            atoms += [f"{x}[{i} - {k}]", f"{x}[{i} + {k}]"]
        atoms += [d.scalar()] if rng.random() < 0.4 else []
        return [d.loop(i, str(r), f"{n} - {r}", [f"{y}[{i}] = {_summed(d, atoms)};"])]
    rows, cols, j = d.size(words.ROWS), d.size(words.COLS), d.counter(1)
    x = d.grid("in", rows, cols)
    y = d.grid("inout", rows, cols)
    r = rng.choice((1, 1, 1, 2))
    shifts = [(a, b) for a in (-r, 0, r) for b in (-r, 0, r)]
    if rng.random() < 0.6:
        shifts = [(a, b) for a, b in shifts if not (a and b)]
    rng.shuffle(shifts)
    shifts = shifts[: rng.randint(3, len(shifts))]
    atoms = [d.cell(x, _moved(i, a), _moved(j, b), cols) for a, b in shifts]
    body: list[Node] = []
    if d.flat and rng.random() < 0.25:
        at = d.local()
        body.append(f"{rng.choice(('int', 'const int'))} {at} = {i} * {cols} + {j};")
        atoms = [f"{x}[{at}{_tail(a, cols)}{_shift(b)}]" for a, b in shifts]
    if rng.random() < 0.4:
        atoms.append(d.scalar())
    if rng.random() < 0.2:
        atoms.append(d.cell(d.grid("in", rows, cols), i, j, cols))
    if rng.random() < 0.35:
        name = d.local()
        body.append(f"{d.kind} {name} = {_summed(d, atoms)};")
        atoms = [name, atoms[0]]
        body.append(f"{d.cell(y, i, j, cols)} = {d.draw(atoms, 2).text};")
    else:
        body.append(f"{d.cell(y, i, j, cols)} = {_summed(d, atoms)};")
    inner = d.loop(j, str(r), f"{cols} - {r}", body)
    return [d.loop(i, str(r), f"{rows} - {r}", [inner])]


def _summed(d: Draft, atoms: list[str]) -> str:
    """All atoms in one expression, mostly as a sum with weights."""
    text = ""
    for number, atom in enumerate(atoms):
        term = atom
        if d.rng.random() < 0.3:
            c = d.expressions.constant().text
            term = f"{c} * {atom}" if d.rng.random() < 0.7 else f"{atom} * {c}"
        if d.kind == "unsigned":
            text += term if not number else f" + {term}"
        else:
            text += term if not number else f" {d.rng.choice('++-')} {term}"
    if d.rng.random() < 0.3:
        return f"{d.expressions.constant().text} * ({text})"
    return text


def _shift(k: int) -> str:
    return f" + {k}" if k > 0 else f" - {-k}" if k < 0 else ""


def _moved(name: str, k: int) -> str:
    return name + _shift(k)


def _tail(k: int, cols: str) -> str:
    step = cols if abs(k) == 1 else f"{abs(k)} * {cols}"
    return f" + {step}" if k > 0 else f" - {step}" if k < 0 else ""


def window(d: Draft) -> list[Node]:
    """A loop over a window around each place: weighted, extreme or counted; guarded, clamped or in the interior."""
    rng = d.rng
    rows, cols = d.size(words.ROWS), d.size(words.COLS)
    i, j, a, b = d.counter(), d.counter(1), d.counter(2), d.counter(2)
    radius = rng.choice((1, 1, 2, 3))
    r = d.constant(radius)
    edge = rng.choice(("inside", "inside", "guard", "clamp"))
    x, acc = d.grid("in", rows, cols), d.local(words.TOTALS)
    y = d.grid("inout" if edge == "inside" else "out", rows, cols)
    row, col = f"{i} + {a}", f"{j} + {b}"
    inner: list[Node] = []
    if edge != "inside":
        rr, cc = d.local(), d.local()
        if edge == "guard":
            inner.append(f"int {rr} = {row}, {cc} = {col};")
        else:
            inner += [f"int {rr} = {row};", f"int {cc} = {col};"]
            inner += [f"{rr} = {rr} < 0 ? 0 : {rr} >= {rows} ? {rows} - 1 : {rr};",
                      f"{cc} = {cc} < 0 ? 0 : {cc} >= {cols} ? {cols} - 1 : {cc};"]  # fmt: skip
        row, col = rr, cc
    value = d.cell(x, row, col, cols)
    way = rng.choice(("sum", "weights", "extreme", "count"))
    if way == "weights":
        wide = f"(2*{r}+1)"
        w = d.array("in", f"{wide}*{wide}", limits="-1..1" if d.kind in ("float", "double") else "0..3")
        update = f"{acc} += {w}[({a} + {r}) * (2 * {r} + 1) + {b} + {r}] * {value};"
    elif way == "extreme":
        update = f"if ({value} {rng.choice('<>')} {acc})\n    {acc} = {value};"
    elif way == "count":
        update = f"{acc} += {value} {rng.choice('<>')} {d.expressions.constant().text};"
    else:
        update = f"{acc} += {d.draw([value], 1).text};"
    if edge == "guard":
        guard = f"if ({row} >= 0 && {row} < {rows} && {col} >= 0 && {col} < {cols})"
        inner.append((guard, [update]))
    else:
        inner.append(update)
    start = d.cell(x, i, j, cols) if way == "extreme" else "0"
    end = f"{r} + 1" if rng.random() < 0.2 else None

    def span(v: str, body: list[Node]) -> Node:
        if end:
            return d.loop(v, f"-{r}", end, body)
        return (f"for (int {v} = -{r}; {v} <= {r}; {v}++)", body)

    body: list[Node] = [f"{d.kind} {acc} = {start};", span(a, [span(b, inner)])]
    final = d.draw([acc, d.cell(x, i, j, cols)], 1).text if rng.random() < 0.4 else acc
    if way == "sum" and rng.random() < 0.4:
        final = f"{acc} / ((2 * {r} + 1) * (2 * {r} + 1))"
    body.append(f"{d.cell(y, i, j, cols)} = {final};")
    low = r if edge == "inside" else "0"
    high = (lambda n: f"{n} - {r}") if edge == "inside" else (lambda n: n)
    return [d.loop(i, low, high(rows), [d.loop(j, low, high(cols), body)])]


def resized(d: Draft) -> list[Node]:
    """Blocks of a larger image become one value, or one value becomes a block."""
    rng = d.rng
    d.flat = True
    rows, cols, i, j = d.size(words.ROWS), d.size(words.COLS), d.counter(), d.counter(1)
    f = d.constant(rng.choice((2, 2, 3, 4)))
    if rng.random() < 0.35:
        x, y = d.array("in", f"{rows}*{cols}"), d.array("out", f"{rows}*{cols}*{f}*{f}")
        value = f"{x}[({i} / {f}) * {cols} + {j} / {f}]"
        store = f"{y}[{i} * {cols} * {f} + {j}] = {d.draw([value], rng.choice((0, 1))).text};"
        return [d.loop(i, "0", f"{rows} * {f}", [d.loop(j, "0", f"{cols} * {f}", [store])])]
    a, b, acc = d.counter(2), d.counter(2), d.local(words.TOTALS)
    x, y = d.array("in", f"{rows}*{f}*{cols}*{f}"), d.array("out", f"{rows}*{cols}")
    value = f"{x}[({i} * {f} + {a}) * {cols} * {f} + {j} * {f} + {b}]"
    start = "0"
    if rng.random() < 0.5:
        update: Node = f"{acc} += {d.draw([value], 1).text};"
    else:
        start = f"{x}[{i} * {f} * {cols} * {f} + {j} * {f}]"
        update = (f"if ({value} {rng.choice('<>')} {acc})", [f"{acc} = {value};"])
    inner = d.loop(a, "0", f, [d.loop(b, "0", f, [update])])
    final = acc if rng.random() < 0.5 else f"{acc} / ({f} * {f})"
    body: list[Node] = [f"{d.kind} {acc} = {start};", inner, f"{y}[{i} * {cols} + {j}] = {final};"]
    return [d.loop(i, "0", rows, [d.loop(j, "0", cols, body)])]


def volume(d: Draft) -> list[Node]:
    """Stencils and maps in three dimensions."""
    rng = d.rng
    nz, ny, nx = d.size(("nz", "depth", "planes", "D", "slices")), d.size(words.ROWS), d.size(words.COLS)
    z, i, j, at = d.counter(2), d.counter(), d.counter(1), d.local()
    x, y = d.array("in", f"{nz}*{ny}*{nx}"), d.array("inout", f"{nz}*{ny}*{nx}")
    near = ["", " - 1", " + 1", f" - {nx}", f" + {nx}", f" - {ny} * {nx}", f" + {ny} * {nx}"]
    chosen = near if rng.random() < 0.6 else ["", *rng.sample(near[1:], 3)]
    atoms = [f"{x}[{at}{k}]" for k in chosen]
    if rng.random() < 0.5:
        atoms.append(d.scalar())
    body: list[Node] = [f"{rng.choice(('int', 'const int'))} {at} = ({z} * {ny} + {i}) * {nx} + {j};",
                        f"{y}[{at}] = {_summed(d, atoms)};"]  # fmt: skip
    inner = d.loop(j, "1", f"{nx} - 1", body)
    return [d.loop(z, "1", f"{nz} - 1", [d.loop(i, "1", f"{ny} - 1", [inner])])]


SHAPES = (
    (elementwise, 10), (strided, 4), (moved, 4), (plane, 6), (stencil, 6), (window, 5), (resized, 2), (volume, 1),
)  # fmt: skip
"""Each with its weight."""
