"""`cudaperf ranker`: train the structural ranker on measured variants, and validate it beside its controls."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cudaperf_agent.cli.destination import check_out_file, check_out_folder, writing_file, writing_folder
from cudaperf_agent.cli.output import JsonFlag, put, put_json, say
from cudaperf_agent.errors import UsageError

app = typer.Typer(help="Train and validate the structural ranker.", no_args_is_help=True)


class Kind(StrEnum):
    """The network, or wᵀφ̂."""

    MLP = "mlp"
    LINEAR = "linear"


class PairsOf(StrEnum):
    """The paper's pairs, or every pair with a gap."""

    QUARTILES = "quartiles"
    ALL = "all"


Data = Annotated[Path | None, typer.Option("--data", help="variants.parquet; by default what `dataset export` wrote.")]
KindOption = Annotated[Kind, typer.Option(help="Form of the score.")]
PairsOption = Annotated[PairsOf, typer.Option(help="Pairs it is trained on.")]


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="Folder of the artefact.")],
    data: Data = None,
    kind: KindOption = Kind.MLP,
    pairs: PairsOption = PairsOf.QUARTILES,
    seed: Annotated[int, typer.Option(help="Of the split by family and of the weights.")] = 0,
    as_json: JsonFlag = False,
) -> int:
    """Train a ranker on the training split and write it as an artefact that loads without torch."""
    from cudaperf_agent.reward.structural import save_ranker
    from training.dataset.export import DATA
    from training.dataset.table import load_table
    from training.pairs import PairConfig
    from training.ranker import TrainConfig, learnable
    from training.ranker import train as train_ranker

    check_out_folder(out)
    table = learnable(load_table(data or DATA / "variants.parquet"))
    config = TrainConfig(kind=kind.value, pairs=PairConfig(pairs.value), seed=seed)
    say(f"training on {len(table)} variants")
    made = train_ranker(table, config)
    with writing_folder(out):
        save_ranker(made.ranker, out)
    facts = {
        "artefact": str(out), "kind": kind.value, "variants": len(table), "pairs": made.pairs, "epochs": made.epochs,
        "validation_loss": made.loss, "families": len(made.families[0]), "validation_families": list(made.families[1]),
        "data_digest": table.digest,
    }  # fmt: skip
    if as_json:
        put_json(facts)
    else:
        put(f"{out}: {kind.value} of {made.pairs} pairs, {made.epochs} epochs, validation loss {made.loss:.3f}")
    return 0


@app.command("eval")
def evaluate(
    data: Data = None,
    kind: KindOption = Kind.MLP,
    pairs: PairsOption = PairsOf.QUARTILES,
    folds: Annotated[int, typer.Option(min=2, help="Groups of families held out in turn.")] = 8,
    transfer: Annotated[bool, typer.Option("--transfer", help="Test it on the hand-written kernels instead.")] = False,
    sampled: Annotated[
        Path | None,
        typer.Option(help="Test it on a policy's kernels instead: JSON lines of task, source, status, seconds."),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Also write the picture of score against speedup.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """Validate the ranker on families it has not seen, beside simpler scores and controls; prints Markdown."""
    from training.dataset.export import DATA, TRANSFER
    from training.dataset.sampled import naive_seconds, sampled_table
    from training.dataset.table import load_table
    from training.pairs import PairConfig
    from training.ranker import TrainConfig, learnable
    from training.ranker_eval import EvalConfig, markdown, picture
    from training.ranker_eval import evaluate as evaluate_ranker

    if svg is not None:
        check_out_file(svg, "--svg")
    table = load_table(data or DATA / "variants.parquet")
    config = EvalConfig(folds=folds, train=TrainConfig(kind=kind.value, pairs=PairConfig(pairs.value)))
    if transfer and sampled is not None:
        raise UsageError("--transfer and --sampled are two test sets", hint="run the command once for each")
    if transfer or sampled is not None:
        from training.transfer_eval import evaluate_transfer, transfer_markdown

        if sampled is None:
            test, name = load_table((data or DATA / TRANSFER).with_name(TRANSFER)), "hand-written tasks"
        else:
            test, name = sampled_table(sampled, naive_seconds(data or DATA / "variants.parquet")), "families"
        seen = learnable(table)
        report = evaluate_transfer(seen, test, config, say=say)
        text = transfer_markdown(report, seen, name)
    else:
        test, report = table, evaluate_ranker(table, config, say=say)
        text = markdown(report)
    if svg is not None:
        drawn = picture(test, report.scores)
        with writing_file(svg, "--svg"):
            svg.write_text(drawn)
        say(f"wrote {svg}")
    if as_json:
        put_json(report.to_dict())
    else:
        put(text)
    return 0


@app.command()
def rerank(
    candidates: Annotated[Path, typer.Argument(help="Answers of a policy: what `dataset sampled` writes.")],
    data: Data = None,
    ranker: Annotated[Path | None, typer.Option(help="Folder of a ranker; by default the one of the package.")] = None,
    of: Annotated[int, typer.Option(min=2, help="Answers of a task that are chosen among, of each phase.")] = 16,
    fewest: Annotated[int, typer.Option(min=2, help="Leave out tasks with fewer answers that have code.")] = 4,
    phase: Annotated[
        list[str] | None, typer.Option(help="Only answers of this phase, e.g. `both/step-*`; may be repeated.")
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="Choose among all phases' answers, not those of the largest phase.")
    ] = False,
    compiled: Annotated[bool, typer.Option("--compiled", help="Leave out answers that did not compile.")] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Compare instead with the answers of this phase to the same tasks; may be repeated."),
    ] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Count answers that differ in layout and comments only once.")
    ] = False,
    as_json: JsonFlag = False,
) -> int:
    """Ask whether the score chooses better among a policy's answers than chance, length or a shuffled score."""
    from cudaperf_agent.reward.structural import load_ranker, shipped_ranker
    from training.answer_groups import RerankConfig, groups
    from training.dataset.export import DATA
    from training.dataset.sampled import naive_seconds, read_candidates
    from training.rerank import reranking_markdown, study
    from training.score_drift import drift_markdown, score_drift

    if against and not phase:
        raise UsageError("--against compares with the answers of another phase", hint="name that one with --phase")
    config = RerankConfig(of, fewest, tuple(phase or ()), together, compiled, distinct)
    chosen = load_ranker(ranker) if ranker is not None else shipped_ranker()
    naive = naive_seconds(data or DATA / "variants.parquet")
    answers = read_candidates(candidates)
    found = groups(answers, chosen, naive, config)
    if against:
        there = groups(answers, chosen, naive, replace(config, phases=tuple(against)))
        drift = score_drift(found, there, config.intervals)
        if as_json:
            put_json(drift.to_dict())
        else:
            put(drift_markdown(drift, " ".join(phase or ()), " ".join(against)))
        return 0
    result = study(found, config)
    if as_json:
        put_json(result.to_dict())
    else:
        put(reranking_markdown(result))
    return 0


@app.command()
def compare(
    data: Data = None,
    plan: Annotated[
        Path | None, typer.Option(help="A file of `dataset plan`, whose new variants get a column of their own.")
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """Say how the hand-written kernels differ from those that the ranker learns from: features and structures."""
    from training.carry_over import compare_sets, comparison_markdown
    from training.dataset.export import DATA, TRANSFER
    from training.dataset.plan import new_variants
    from training.dataset.table import load_table, read_rows
    from training.ranker import learnable
    from training.structures import structures, structures_markdown

    path = data or DATA / "variants.parquet"
    there = path.with_name(TRANSFER)
    say("comparing the two sets of kernels")
    result = compare_sets(learnable(load_table(path)), load_table(there))
    sets = {"families": read_rows(path), "by hand": read_rows(there)}
    if plan is not None:
        sets = {"families": sets["families"], "planned": new_variants(plan), "by hand": sets["by hand"]}
    if as_json:
        put_json({**result.to_dict(), "structures": {name: structures(rows) for name, rows in sets.items()}})
    else:
        put(comparison_markdown(result))
        put(structures_markdown(sets))
    return 0


@app.command()
def repeat(
    again: Annotated[
        list[Path] | None,
        typer.Option(help="A second measurement: Parquet, slices or folders of them; by default the checkout's."),
    ] = None,
    data: Data = None,
    ranker: Annotated[Path | None, typer.Option(help="Folder of a ranker; by default the one of the package.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Groups of families held out in turn.")] = 8,
    keep: Annotated[Path | None, typer.Option(help="Also write the second measurement in short, as Parquet.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """Say how repeatable the times are, and what share of that the ranker reaches; prints Markdown."""
    from cudaperf_agent.reward.structural import load_ranker, shipped_ranker
    from training.ceiling import ceiling, ceiling_markdown
    from training.dataset.again import AGAIN, measured_twice, read_again
    from training.dataset.export import DATA
    from training.dataset.table import read_rows, write_rows
    from training.ranker_eval import EvalConfig
    from training.repeat import repeat_markdown, repeatability

    if keep is not None:
        check_out_file(keep, "--keep")
    chosen = load_ranker(ranker) if ranker is not None else shipped_ranker()
    second = read_again(again or [AGAIN])
    both = measured_twice(read_rows(data or DATA / "variants.parquet"), second)
    if keep is not None:
        with writing_file(keep, "--keep"):
            write_rows(second, keep)
        say(f"wrote {keep}")
    times = repeatability(both)
    found = ceiling(both, chosen, EvalConfig(folds=folds), say=say)
    if as_json:
        put_json({"times": times.to_dict(), **found.to_dict()})
    else:
        put(repeat_markdown(times))
        put(ceiling_markdown(found))
    return 0
