"""Reading at subscripts that are data: embeddings, indexing, gather."""

from __future__ import annotations

from cudaperf_agent.codegen.modules.build import expanded
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.tensors import Index, Lookup, Tensor, broadcast_shape


@rule("aten.embedding.default")
def _embedding(call: Call) -> Tensor:
    table, ids = call.tensor("weight"), call.tensor("indices")
    rank = len(ids.shape)
    return Lookup(
        shape=call.shape, dtype=table.dtype, label=call.label, source=table, subscripts=(ids,),
        limits=(table.shape[0],), asked=(lambda index: index[:rank],),
        remap=lambda index, found: (found[0], *index[rank:]),
    )  # fmt: skip


@rule("aten.index_select.default")
def _index_select(call: Call) -> Tensor:
    x, ids = call.tensor("self"), call.tensor("index")
    axis = call.whole("dim") % len(x.shape)
    return Lookup(
        shape=call.shape, dtype=x.dtype, label=call.label, source=x, subscripts=(ids,), limits=(x.shape[axis],),
        asked=(lambda index: (index[axis],) if ids.shape else (),),
        remap=lambda index, found: (*index[:axis], found[0], *index[axis + 1 :]),
    )  # fmt: skip


@rule("aten.gather.default")
def _gather(call: Call) -> Tensor:
    x, ids = call.tensor("self"), call.tensor("index")
    if not x.shape:
        return x
    axis = call.whole("dim") % len(x.shape)
    return Lookup(
        shape=call.shape, dtype=x.dtype, label=call.label, source=x, subscripts=(ids,), limits=(x.shape[axis],),
        asked=(lambda index: index,), remap=lambda index, found: (*index[:axis], found[0], *index[axis + 1 :]),
    )  # fmt: skip


@rule("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _index(call: Call) -> Tensor:
    x = call.tensor("self")
    given = call.tensors("indices")
    places = [k for k, t in enumerate(given) if t is not None]
    wanted = [t for t in given if t is not None]
    if any(t.dtype == "bool" for t in wanted):
        raise call.fail("with a mask: the shape of its result depends on data")
    shape = broadcast_shape([t.shape for t in wanted])
    rank = len(shape)
    together = places == list(range(places[0], places[0] + len(places)))
    lead = places[0] if together else 0  # where torch puts the looked-up dimensions
    subscripts = tuple(expanded(t, shape) for t in wanted)

    def asked(index: Index) -> Index:
        return index[lead : lead + rank]

    def remap(index: Index, found: Index) -> Index:
        rest = [*index[:lead], *index[lead + rank :]]
        result, values = [], iter(found)
        others = iter(rest)
        for k in range(len(x.shape)):
            result.append(next(values) if k in places else next(others))
        return tuple(result)

    return Lookup(
        shape=call.shape, dtype=x.dtype, label=call.label, source=x, subscripts=subscripts,
        limits=tuple(x.shape[k] for k in places), asked=tuple(asked for _ in places), remap=remap,
    )  # fmt: skip
