"""Calls: CUDA's own functions by meaning, the source's functions by walking their bodies in place, launches."""

from __future__ import annotations

from cudaperf_agent.features import builtin_calls
from cudaperf_agent.features.clang_cuda import Node
from cudaperf_agent.features.cursor_kinds import K
from cudaperf_agent.features.environment import stripped
from cudaperf_agent.features.expressions import ARITHMETIC, Evaluator
from cudaperf_agent.features.functions import Definition, arguments_of, is_operator_of_class, parameters_of
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.features.recorder import LaunchSite
from cudaperf_agent.features.symbolic import ANY_THREAD, ONE, ZERO, Poly, number
from cudaperf_agent.features.values import (
    Alias,
    Binding,
    Function,
    Memory,
    Other,
    Pointer,
    Record,
    Stored,
    Value,
    Variable,
    has_data,
    mask_of,
)

_CONFIGURE = frozenset({"cudaConfigureCall", "__cudaPushCallConfiguration"})
_WARP_THREADS = 32
_LOOP_COPY = 10
_MMA_DEFAULT = 16 * 16 * 16


class CallEvaluator(Evaluator):
    """Adds calls to the evaluation of expressions."""

    def walk_body(self, definition: Definition) -> Value:
        """Walk a body whose parameters are bound (defined by the statement walker)."""
        raise NotImplementedError

    def call(self, node: Node) -> Value:
        """The value of a call."""
        children = node.children
        if len(children) > 1 and children[1].kind == K.CALL and children[1].spelling in _CONFIGURE:
            return self._launch(node)
        callee = node.referenced
        name = node.spelling
        if callee is not None and callee.kind == K.CONSTRUCTOR:
            return self._construct(node, name, callee)
        if name == "operator=" and is_operator_of_class(node):  # a struct is copied as a whole
            return self._operator(node, "=")
        arguments = parameters_of(node)
        known = self._cuda_call(node, name, arguments, callee)
        if known is not None:
            return known
        target = callee
        if callee is None or callee.kind in (K.VAR, K.PARM, K.FIELD):
            held = self.value(children[0]) if children else Other()
            target = held.node if isinstance(held, Function) else None
        elif callee.kind == K.METHOD and name == "operator()":
            held = self.value(children[0]) if children else Other()
            if isinstance(held, Function):
                target = held.node
        definition = self.definitions.of(target) if target is not None else None
        if definition is not None and len(self.frames) < self.budget.limits.inline_depth:
            if any(f is definition for f in self.frames):
                self.recorder.gap(ORDER, f"recursion in {definition.name} is not followed", node)
            else:
                return self._inline(node, definition, arguments, callee)
        if name.startswith("operator") and definition is None:
            return self._operator(node, name.removeprefix("operator"))
        values = [self.value(a) for a in arguments if a is not None]
        return self.builtin_value(name, node, values)

    def _operator(self, node: Node, symbol: str) -> Value:
        """An operator that is no function of the source: a struct's assignment, arithmetic of half precision."""
        given = [a for a in arguments_of(node) if a is not None]
        assigns = symbol.endswith("=") and symbol not in ("==", "!=", "<=", ">=")
        if not assigns or len(given) != 2:
            values = [self.value(a) for a in given]
            if symbol in ARITHMETIC:
                self.count(node, 1, node.type().sort)
            return self.builtin_value("", node, values)
        new = self.value(given[1])
        where = self.place(given[0])
        if symbol != "=":
            self.load(given[0], where)
            self.count(node, 1, given[0].type().sort)
        self.store(given[0], where, new)
        return new

    def _cuda_call(self, node: Node, name: str, arguments: list[Node | None], callee: Node | None) -> Value | None:
        if callee is not None and callee.unit.in_source(callee.cursor):
            return None
        given = [a for a in arguments if a is not None]
        if builtin_calls.is_atomic(name) and given:
            return self._atomic(node, name, given)
        if name in builtin_calls.SYNCS:
            for argument in given:
                self.value(argument)
            if self.on_device:
                self.recorder.note("sync", node, self.weight, 1.0, name)
            return Other()
        if name == "sync" and self.on_device:
            self.recorder.note("sync", node, self.weight, 1.0, "a cooperative group")
            return Other()
        if name in builtin_calls.LOADS and given:
            return self._through_pointer(node, given[0], None)
        if name in builtin_calls.STORES and len(given) > 1:
            return self._through_pointer(node, given[0], given[1])
        if builtin_calls.is_copy(name) and not self.on_device:
            for argument in given:
                self.value(argument)
            named = (n.spelling for a in given for n in a.walk() if n.kind == K.DECL_REF)
            direction = next((n for n in named if n in builtin_calls.DIRECTIONS), "")
            detail = " ".join(filter(None, (direction, "inside a host loop" if self.depth else "")))
            self.recorder.note("xfer", node, _LOOP_COPY if self.depth else 1, 1.0, detail)
            return Other()
        if name in builtin_calls.LAUNCHERS and not self.on_device and len(given) >= 3:
            return self._launch_by_pointer(node, given)
        if name in ("load_matrix_sync", "store_matrix_sync", "mma_sync"):
            return self._tensor(node, name, given)
        return self._group(node, name) if self.on_device else None

    def _atomic(self, node: Node, name: str, arguments: list[Node]) -> Value:
        pointer = self._address(arguments[0])
        mask = 0
        for argument in arguments[1:]:
            mask |= mask_of(self.value(argument))
        if self.on_device:
            space = pointer.space if pointer is not None else "global"
            uniform = pointer is not None and not pointer.offset.mask
            detail = f"{name} on {space} memory" + (", one address for all threads" if uniform else "")
            self.recorder.note("atomics", node, self.weight, 1.0, detail)
        return self._of_type(node.type(), name, ANY_THREAD, data=True)

    def _through_pointer(self, node: Node, address: Node, new: Node | None) -> Value:
        pointer = self._address(address)
        value = self.value(new) if new is not None else Other()
        kind = address.pointee() if new is not None else node.type()
        if pointer is None:
            return self._of_type(kind, "?", ANY_THREAD, data=True)
        self.access(node, pointer, kind, store=new is not None)
        if new is not None:
            return value
        return self._of_type(kind, pointer.root, pointer.offset.mask, data=True)

    def _tensor(self, node: Node, name: str, arguments: list[Node]) -> Value:
        """`wmma`: a warp moves a tile row by row, so a load is one access of stride 1; a thread does its share."""
        if name == "mma_sync":
            operations = 2 * _MMA_DEFAULT // _WARP_THREADS
            if self.on_device:
                self.recorder.tensor += self.weight
                self.recorder.operation(node, operations, self.weight)
            return Other()
        at = 1 if name == "load_matrix_sync" else 0
        pointer = self._address(arguments[at]) if len(arguments) > at else None
        if pointer is not None:
            kind = arguments[at].pointee()
            lane = self.space.binary("%", self.space.builtins["threadIdx.x"], number(_WARP_THREADS))
            warp = Pointer(pointer.space, pointer.root, pointer.offset + lane.scaled(kind.size))
            self.access(node, warp, kind, store=at == 0)
        return Other()

    def _group(self, node: Node, name: str) -> Value | None:
        """Ranks and sizes of cooperative groups."""
        builtin = self.space.builtins
        axes = "xyz"
        if name in ("thread_index", "group_index", "group_dim", "block_index", "dim_threads", "dim_blocks"):
            source = {"thread_index": "threadIdx", "group_index": "blockIdx", "block_index": "blockIdx",
                      "dim_blocks": "gridDim"}.get(name, "blockDim")  # fmt: skip
            return Record({a: builtin[f"{source}.{a}"] for a in axes})
        if name not in ("thread_rank", "size", "num_threads", "meta_group_rank", "meta_group_size", "block_rank"):
            return None
        owner = node.children[0].children[0] if node.children and node.children[0].children else None
        kind = owner.type().name if owner is not None else ""
        rank, threads = self._flat("threadIdx"), self._volume("blockDim")
        if "tile" in kind or "coalesced" in kind:
            digits = "".join(ch for ch in kind.partition("<")[2].partition(",")[0] if ch.isdigit())
            lanes = number(int(digits) if digits else _WARP_THREADS)
            found = {"thread_rank": ("%", rank), "meta_group_rank": ("/", rank), "meta_group_size": ("/", threads)}.get(
                name
            )
            return self.space.binary(found[0], found[1], lanes) if found else lanes
        if "grid" in kind:
            block, blocks = self._flat("blockIdx"), self._volume("gridDim")
            if name == "thread_rank":
                return self.space.binary("*", block, threads) + rank
            return block if name == "block_rank" else self.space.binary("*", blocks, threads)
        return rank if name == "thread_rank" else threads if name in ("size", "num_threads") else ONE

    def _flat(self, what: str) -> Poly:
        builtin = self.space.builtins
        size = "blockDim" if what == "threadIdx" else "gridDim"
        y = self.space.binary("*", builtin[f"{what}.y"], builtin[f"{size}.x"])
        plane = self.space.binary("*", builtin[f"{size}.x"], builtin[f"{size}.y"])
        return builtin[f"{what}.x"] + y + self.space.binary("*", builtin[f"{what}.z"], plane)

    def _volume(self, what: str) -> Poly:
        builtin = self.space.builtins
        plane = self.space.binary("*", builtin[f"{what}.x"], builtin[f"{what}.y"])
        return self.space.binary("*", plane, builtin[f"{what}.z"])

    def _construct(self, node: Node, name: str, callee: Node) -> Value:
        given = [c for c in node.children if c.kind >= K.UNEXPOSED and c.kind < K.FIRST_STMT]
        if name == "dim3":
            if len(given) == 1 and given[0].type().sort == "record":
                return self.value(given[0])
            parts = [self.integer(self.value(c)) if c.children or c.kind == K.INTEGER else ONE for c in given]
            parts += [ONE] * (3 - len(parts))
            return Record(dict(zip("xyz", parts, strict=False)))
        values = [self.value(c) for c in given]
        if len(values) == 1 and given[0].type().name == node.type().name:
            return values[0]
        mask, data = 0, False
        for value in values:
            mask |= mask_of(value)
            data = data or has_data(value)
        return Other(mask, data)

    def _inline(self, node: Node, definition: Definition, arguments: list[Node | None], callee: Node | None) -> Value:
        bound: dict[int, Binding] = {}
        for position, parameter in enumerate(definition.parameters):
            argument = arguments[position] if position < len(arguments) else None
            if argument is None:
                default = next((c for c in parameter.children if c.kind >= K.UNEXPOSED and c.kind < K.FIRST_STMT), None)
                bound[parameter.key] = self.value(default) if default is not None else Other()
                continue
            quiet = int(parameter.key in definition.index)
            self.uncounted += quiet
            reference = self._reference(argument, parameter)
            bound[parameter.key] = reference if reference is not None else self.value(argument)
            self.uncounted -= quiet
        owner: Value = Other()
        if callee is not None and callee.kind == K.METHOD and node.children and node.children[0].children:
            first = node.children[0]
            owner = self._owner(first if is_operator_of_class(node) else first.children[0])
        self.variables.update(bound)
        self.frames.append(definition)
        self.this.append(owner)
        result = self.walk_body(definition)
        self.this.pop()
        self.frames.pop()
        return result

    def _owner(self, base: Node) -> Value:
        if base.type().sort == "pointer":
            return self.value(base)
        where = self.place(base)
        if isinstance(where, Memory):
            return where.pointer
        if isinstance(where, Variable):
            return self.held(where.key)
        return Other()

    def _reference(self, argument: Node, parameter: Node) -> Alias | Stored | None:
        """What is handed over by reference stays what it is: a variable, or a place in memory."""
        if argument.kind == K.DECL_REF and parameter.is_reference():
            target = argument.referenced
            if target is not None and target.kind in (K.VAR, K.PARM):
                known = self.bound(argument, target)
                if isinstance(known, Stored):
                    return known
                key = self.resolve(target.key)
                return Alias(key) if key != parameter.key else None
        if parameter.is_reference() and stripped(argument).kind == K.SUBSCRIPT:
            where = self.place(argument)
            return Stored(where.pointer) if isinstance(where, Memory) else None
        return None

    def _launch(self, node: Node) -> Value:
        configure = node.children[1]
        held = self.value(node.children[0])
        if not isinstance(held, Function):  # `(*kernel)<<<...>>>`
            named = (self.value(n) for n in node.children[0].walk() if n.kind == K.DECL_REF)
            held = next((v for v in named if isinstance(v, Function)), held)
        given = [self.value(a) for a in arguments_of(configure) if a is not None]
        if not isinstance(held, Function):
            self.recorder.gap(ORDER, "the kernel of this launch could not be told", node)
            return Other()
        arguments = tuple(self.value(a) if a is not None else Other() for a in arguments_of(node))
        grid, block = (given[0] if given else Other()), (given[1] if len(given) > 1 else Other())
        self._note_launch(node, held.node, grid, block, arguments)
        return Other()

    def _launch_by_pointer(self, node: Node, given: list[Node]) -> Value:
        held = next((self.value(n) for n in given[0].walk() if n.kind == K.DECL_REF), None)
        grid, block = self.value(given[1]), self.value(given[2])
        if isinstance(held, Function):
            self._note_launch(node, held.node, grid, block, ())
        else:
            self.recorder.gap(ORDER, "the kernel of this launch could not be told", node)
        return Other()

    def _note_launch(self, node: Node, kernel: Node, grid: Value, block: Value, arguments: tuple[Value, ...]) -> None:
        definition = self.definitions.of(kernel)
        if definition is None:
            self.recorder.gap(ORDER, f"kernel {kernel.spelling} has no body in the source", node)
            return
        self.recorder.launches.append(
            LaunchSite(kernel, node, _extents(block), _extents(grid), arguments, self.depth > 0)
        )


def _extents(value: Value) -> tuple[int | None, int | None, int | None]:
    if isinstance(value, Poly):
        return value.constant, 1, 1
    if isinstance(value, Record):
        parts = [value.members.get(axis, ZERO) for axis in "xyz"]
        x, y, z = (p.constant if isinstance(p, Poly) else None for p in parts)
        return x, y, z
    return None, None, None
