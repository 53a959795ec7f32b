"""Random programs that combine many values: reductions, rows and columns, products, counts, sequences, tables."""

from __future__ import annotations

from training.sft import vocabulary as words
from training.sft.draft import Draft, Node


def _update(d: Draft, acc: str, atoms: list[str], *, predicate: bool = True) -> tuple[str, Node]:
    """Start value and a statement that takes `atoms` into `acc`."""
    rng = d.rng
    way = rng.choice(("sum", "sum", "sum", "extreme", "extreme", "count", "some"))
    term = d.draw(atoms, rng.choice((0, 1, 1, 2))).text
    if way == "extreme":
        sign = rng.choice("<>")
        forms: tuple[Node, ...] = (
            (f"if ({atoms[0]} {sign} {acc})", [f"{acc} = {atoms[0]};"]),
            f"{acc} = {atoms[0]} {sign} {acc} ? {atoms[0]} : {acc};",
            (f"if ({acc} {'<' if sign == '>' else '>'} {atoms[0]})", [f"{acc} = {atoms[0]};"]),
        )
        return atoms[0], rng.choice(forms)
    if way == "count" and predicate:
        test = d.expressions.test(atoms).text
        forms = ((f"if ({test})", [rng.choice((f"{acc}++;", f"++{acc};", f"{acc} += 1;"))]), f"{acc} += {test};",
                 f"{acc} += {test} ? 1 : 0;")  # fmt: skip
        return "0", rng.choice(forms)
    if way == "some" and predicate:
        return "0", (f"if ({d.expressions.test(atoms).text})", [f"{acc} += {term};"])
    return "0", rng.choice((f"{acc} += {term};", f"{acc} += {term};", f"{acc} = {acc} + {term};"))


def total(d: Draft) -> list[Node]:
    """One value of a vector, returned or stored."""
    rng = d.rng
    i, acc = d.counter(), d.local(words.TOTALS)
    n = d.size(clause="1..")
    atoms = [f"{d.array('in', n)}[{i}]" for _ in range(rng.choice((1, 1, 2, 3)))]
    if rng.random() < 0.4:
        atoms.append(d.scalar())
    body: list[Node] = []
    if rng.random() < 0.25:
        name = d.local()
        body.append(f"{d.kind} {name} = {d.draw(atoms).text};")
        atoms = [name, atoms[0]]
    start, update = _update(d, acc, atoms)
    if start != "0" and body:
        body, start, update = [], "0", f"{acc} += {d.draw(atoms[1:]).text};"
    first = "0"
    if start != "0":
        start, first = start.replace(f"[{i}]", "[0]"), rng.choice(("0", "1"))
    kind = "int" if d.kind == "unsigned" and start == "0" and isinstance(update, tuple) else d.kind
    final = acc if rng.random() < 0.7 else f"{acc} / {n}" if d.kind != "unsigned" else acc
    loop = d.loop(i, first, n, [*body, update])
    if rng.random() < 0.6:
        d.returns = kind
        return [f"{kind} {acc} = {start};", loop, f"return {final};"]
    y = d.array("out", "1", kind)
    return [f"{kind} {acc} = {start};", loop, f"{rng.choice((f'{y}[0]', f'*{y}'))} = {final};"]


def lines(d: Draft) -> list[Node]:
    """One or more passes over each row or column, then a value of it or a new row."""
    rng = d.rng
    rows, cols = d.size(words.ROWS), d.size(words.COLS, "1..")
    i, j = d.counter(), d.counter(1)
    x = d.grid("in", rows, cols)
    across = rng.random() < 0.75
    outer, inner, n_outer, n_inner = (i, j, rows, cols) if across else (j, i, cols, rows)
    if not across:
        next(p for p in d.parameters if p.text.endswith(f" {rows}")).clause = f"{rows} in 1.."
    value = d.cell(x, i, j, cols)
    atoms = [value]
    if rng.random() < 0.25:
        atoms.append(f"{d.array('in', n_inner)}[{inner}]")
    if rng.random() < 0.2:
        atoms.append(d.scalar())
    body: list[Node] = []
    found: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        acc = d.local(words.TOTALS)
        start, update = _update(d, acc, [*atoms, *found[-1:]])
        if start != "0":
            start = d.cell(x, i, "0", cols) if across else d.cell(x, "0", j, cols)
        body += [f"{d.kind} {acc} = {start};", d.loop(inner, "0", n_inner, [update])]
        found.append(acc)
        if rng.random() < 0.3 and d.kind != "unsigned":
            name = d.local()
            body.append(f"{d.kind} {name} = {acc} / {n_inner};")
            found[-1] = name
    if rng.random() < 0.35:
        y = d.grid("out", rows, cols)
        store = f"{d.cell(y, i, j, cols)} = {d.draw([*atoms[:1], *found], 2).text};"
        body.append(d.loop(inner, "0", n_inner, [store]))
    else:
        for acc in found[-rng.choice((1, 1, 2)) :]:
            y = d.array("out", n_outer)
            body.append(f"{y}[{outer}] = {acc if rng.random() < 0.6 else d.draw([acc, *found], 1).text};")
    return [d.loop(outer, "0", n_outer, body)]


def product(d: Draft) -> list[Node]:
    """Matrix by vector or by matrix, either transposed, with other inner operations and triangular bounds."""
    rng = d.rng
    m = d.size(("m", "M", "rows", "R", "n1"))
    n = d.size(("n", "N", "cols", "n2", "w"))
    p = d.size(("k", "K", "p", "q", "inner"))
    i, j, k, acc = d.counter(), d.counter(1), d.counter(2), d.local(words.TOTALS)
    square = rng.random() < 0.2
    if square:
        del d.parameters[-2:]
        n = p = m
    turned = rng.random() < 0.3, rng.random() < 0.3
    a = d.grid("in", *((p, m) if turned[0] else (m, p)))
    left = d.cell(a, k, i, m) if turned[0] else d.cell(a, i, k, p)
    vector = rng.random() < 0.3
    b = a if square and rng.random() < 0.4 else ""
    if vector:
        right = f"{d.array('in', p)}[{k}]"
        if not square:
            d.parameters = [q for q in d.parameters if q.text.split()[-1] != n]
    else:
        b = b or d.grid("in", *((n, p) if turned[1] else (p, n)))
        right = d.cell(b, j, k, p) if turned[1] else d.cell(b, k, j, n)
    term = f"{left} * {right}"
    if rng.random() < 0.25:
        term = d.draw([left, right], 2).text
    start = "0"
    end = p
    if square and rng.random() < 0.4:
        end = f"{i} + 1"
    body: list[Node] = [f"{d.kind} {acc} = 0;", d.loop(k, start, end, [f"{acc} += {term};"])]
    role = rng.choice(("out", "out", "inout"))
    y = d.array(role, m) if vector else d.grid(role, m, n)
    place = f"{y}[{i}]" if vector else d.cell(y, i, j, n)
    scalar = d.scalar() if rng.random() < 0.25 else ""
    value = f"{scalar} * {acc}" if scalar else acc
    body.append(f"{place} {'+=' if role == 'inout' else '='} {value};")
    return [d.loop(i, "0", m, body if vector else [d.loop(j, "0", n, body)])]


def pairs(d: Draft) -> list[Node]:
    """Every element against every element of another list: forces, nearest, counts."""
    rng = d.rng
    n = d.size()
    same = rng.random() < 0.5
    m = n if same else d.size(clause="1..")
    if same:
        d.parameters[-1].clause = f"{n} in 1.."
    i, j, acc = d.counter(), d.counter(1), d.local(words.TOTALS)
    mine = [d.array("in", n) for _ in range(rng.choice((1, 2)))]
    theirs = mine if same else [d.array("in", m) for _ in mine]
    body: list[Node] = []
    gaps = []
    for left, right in zip(mine, theirs, strict=True):
        name = d.local()
        body.append(f"{d.kind} {name} = {left}[{i}] - {right}[{j}];")
        gaps.append(name)
    square = " + ".join(f"{g} * {g}" for g in gaps)
    way = rng.choice(("sum", "count", "least", "which"))
    if way in ("least", "which"):
        dist = d.local()
        body.append(f"{d.kind} {dist} = {square};")
        best, y = d.local(words.TOTALS), d.array("out", n, "int" if way == "which" else None)
        start = " + ".join(f"({a}[{i}] - {b}[0]) * ({a}[{i}] - {b}[0])" for a, b in zip(mine, theirs, strict=True))
        change: list[Node] = [f"{acc} = {dist};"]
        head: list[Node] = [f"{d.kind} {acc} = {start};"]
        if way == "which":
            head.append(f"int {best} = 0;")
            change.append(f"{best} = {j};")
        body.append((f"if ({dist} < {acc})", change))
        loop = d.loop(j, rng.choice(("0", "1")) if not same else "0", m, body)
        return [d.loop(i, "0", n, [*head, loop, f"{y}[{i}] = {best if way == 'which' else acc};"])]
    weight = d.array("in", m) if rng.random() < 0.5 else ""
    y = d.array("out", n, "int" if way == "count" else None)
    if way == "count":
        cut = d.scalar() if rng.random() < 0.6 else d.expressions.constant().text
        update: Node = (
            (f"if ({square} < {cut})", [f"{acc}++;"]) if rng.random() < 0.6 else f"{acc} += {square} < {cut};"
        )
        kind: str = "int"
    else:
        term = d.draw([*gaps, *([f"{weight}[{j}]"] if weight else [])], 2).text
        update, kind = f"{acc} += {term};", d.kind
    return [d.loop(i, "0", n, [f"{kind} {acc} = 0;", d.loop(j, "0", m, [*body, update]), f"{y}[{i}] = {acc};"])]


def binned(d: Draft) -> list[Node]:
    """Counts or integer sums by key."""
    rng = d.rng
    d.kind = "int"
    d.expressions.kind = "int"
    n, i = d.size(), d.counter()
    if rng.random() < 0.5:
        m = d.size(clause="1..")
        key = d.array("index", n, "int", limits=f"0..{m}-1")
        place, extent = f"{key}[{i}]", m
    else:
        bins = rng.choice((16, 32, 64, 128, 256))
        extent = d.constant(bins)
        x = d.array("in", n, rng.choice(("int", "short", "int")), limits=f"0..{bins - 1}")
        place = f"{x}[{i}]"
    y = d.array("inout", extent, limits="0..100")
    body: list[Node] = []
    if rng.random() < 0.3:
        name = d.local()
        body.append(f"int {name} = {place};")
        place = name
    if rng.random() < 0.5:
        body.append(rng.choice((f"{y}[{place}]++;", f"{y}[{place}] += 1;", f"++{y}[{place}];")))
    else:
        added = d.array("in", n)
        body.append(f"{y}[{place}] += {d.draw([f'{added}[{i}]'], 1).text};")
    if rng.random() < 0.2:
        other = f"{d.array('in', n)}[{i}]"
        body = [(f"if ({d.expressions.test([other]).text})", body)]
    return [d.loop(i, "0", n, body)]


def segments(d: Draft) -> list[Node]:
    """Sums over pieces of a list that another array delimits, gathered or not."""
    rng = d.rng
    m, n = d.size(), d.size(("nnz", "total", "count", "entries", "len"))
    first = d.array("in", f"{m}+1", "int", limits=f"0..{n}", more="ascending")
    i, k, acc = d.counter(), d.counter(2), d.local(words.TOTALS)
    atoms = [f"{d.array('in', n)}[{k}]"]
    if rng.random() < 0.5:
        wide = d.size(clause="1..")
        col = d.array("index", n, "int", limits=f"0..{wide}-1")
        atoms.append(f"{d.array('in', wide)}[{col}[{k}]]")
    term = " * ".join(atoms) if rng.random() < 0.5 else d.draw(atoms, 1).text
    y = d.array("out", m)
    final = d.draw([acc], 1).text if rng.random() < 0.3 else acc
    update: Node = f"{acc} += {term};"
    if rng.random() < 0.2:
        update = (f"if ({d.expressions.test(atoms).text})", [update])
    loop = d.loop(k, f"{first}[{i}]", f"{first}[{i} + 1]", [update])
    return [d.loop(i, "0", m, [f"{d.kind} {acc} = 0;", loop, f"{y}[{i}] = {final};"])]


def running(d: Draft) -> list[Node]:
    """Running integer sums and extremes."""
    rng = d.rng
    d.kind = d.expressions.kind = "int"
    n, i, acc = d.size(), d.counter(), d.local(words.TOTALS)
    x, y = d.array("in", n), d.array("out", n)
    term = f"{x}[{i}]" if rng.random() < 0.5 else d.draw([f"{x}[{i}]"], 1).text
    body: list[Node] = [f"{acc} += {term};", f"{y}[{i}] = {acc};"]
    if rng.random() < 0.4:
        body.reverse()
    return [f"int {acc} = 0;", d.loop(i, "0", n, body)]


def table(d: Draft) -> list[Node]:
    """A table filled row by row, each row from the one above."""
    rng = d.rng
    rows, cols = d.size(words.ROWS, "1.."), d.size(words.COLS)
    i, j = d.counter(), d.counter(1)
    y = d.grid("inout", rows, cols) if rng.random() < 0.5 else d.grid("out", rows, cols)
    given = d.parameters[-1].clause.startswith("out")
    up = d.cell(y, f"{i} - 1", j, cols)
    left = d.cell(y, f"{i} - 1", f"{j} - 1", cols)
    atoms = [up]
    start = "0"
    if rng.random() < 0.5:
        atoms, start = [up, left], "1"
    if rng.random() < 0.6:
        atoms.append(d.cell(d.grid("in", rows, cols), i, j, cols))
    value = f"{d.draw(atoms, 1).text}"
    nodes: list[Node] = []
    if given:
        j0 = d.counter(1)
        nodes.append(d.loop(j0, "0", cols, [f"{d.cell(y, '0', j0, cols)} = {d.expressions.constant().text};"]))
        if start == "1":
            i0 = d.counter()
            nodes.append(d.loop(i0, "1", rows, [f"{d.cell(y, i0, '0', cols)} = {d.expressions.constant().text};"]))
    if d.kind in ("float", "double"):
        value = f"0.5{d.expressions.suffix} * ({value})"
    elif d.kind == "int":
        value = f"({value}) % 1000"
    nodes.append(d.loop(i, "1", rows, [d.loop(j, start, cols, [f"{d.cell(y, i, j, cols)} = {value};"])]))
    return nodes


def bits(d: Draft) -> list[Node]:
    """Words of bits: parity, counts, rotations, mixing, byte order."""
    rng = d.rng
    d.kind = d.expressions.kind = "unsigned"
    n, i, v = d.size(), d.counter(), d.local()
    x = d.array("in", n, limits="")
    if rng.random() < 0.4:
        y, found = d.array("out", n, "int"), d.local(words.TOTALS)
        k = d.counter(2)
        if rng.random() < 0.5:
            step: list[Node] = [f"{found} += {v} & 1u;", f"{v} >>= {rng.choice((1, 1, 2))};"]
            inner: list[Node] = [f"unsigned {v} = {x}[{i}];", f"int {found} = 0;", (f"while ({v})", step)]
        else:
            bit = f"({x}[{i}] >> {k}) & 1u"
            update = f"{found} {rng.choice(('+=', '^='))} {bit};"
            inner = [f"int {found} = 0;", d.loop(k, "0", rng.choice(("32", "16", "8")), [update])]
        return [d.loop(i, "0", n, [*inner, f"{y}[{i}] = {found};"])]
    y = d.array("out", n)
    body: list[Node] = [f"unsigned {v} = {d.draw([f'{x}[{i}]'], rng.choice((0, 1))).text};"]
    for _ in range(rng.randint(1, 4)):
        s = rng.randint(1, 20)
        factor = rng.choice((2246822519, 3266489917, 1664525, 69069))
        ways = (
            f"{v} ^= {v} << {s};",
            f"{v} ^= {v} >> {s};",
            f"{v} *= {factor}u;",
            f"{v} += {rng.randint(1, 9999)}u;",
            f"{v} = ({v} << {s}) | ({v} >> {32 - s});",
        )
        body.append(rng.choice(ways))
    if rng.random() < 0.35:
        body = [body[0], d.loop(d.counter(2), "0", str(rng.randint(2, 8)), body[1:])]
    return [d.loop(i, "0", n, [*body, f"{y}[{i}] = {d.draw([v], 1).text};"])]


SHAPES = (
    (total, 7), (lines, 9), (product, 5), (pairs, 5), (binned, 3), (segments, 3), (running, 1), (table, 2), (bits, 3),
)  # fmt: skip
"""Each with its weight."""
