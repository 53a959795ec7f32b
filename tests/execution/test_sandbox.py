"""The sandbox: what it says that it covers, it covers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cudaperf_agent.execution.child import ChildResult, Limits, run_child
from cudaperf_agent.execution.native import child_environment
from cudaperf_agent.execution.sandbox import Sandbox, _candidates, _works, detect

pytestmark = pytest.mark.skipif(detect().kind != "bubblewrap", reason="bubblewrap does not work on this machine")


async def shell(folder: Path, script: str, sandbox: Sandbox | None = None, limits: Limits | None = None) -> ChildResult:
    argv = (sandbox or detect()).wrap(["/bin/sh", "-c", script], folder)
    return await run_child(argv, limits=limits or Limits(seconds=10), cwd=folder)


async def test_it_writes_in_its_folder_only(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    folder = tmp_path / "inside"
    folder.mkdir()
    strays = [Path("/usr/stray-of-a-test"), Path("/tmp/private")]
    done = await shell(
        folder, f"echo yes > {folder}/here; echo no > {outside}; echo no > {strays[0]}; touch {strays[1]}; ls /tmp"
    )
    assert (folder / "here").read_text() == "yes\n"
    assert not any(stray.exists() for stray in [outside, *strays])
    assert b"private" in done.stdout


async def test_homes_and_secrets_are_not_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_API_KEY", "sk-secret")
    done = await shell(tmp_path, "cat /etc/passwd /etc/shadow; ls /root /home; env; cat /proc/1/environ")
    assert b"root:" not in done.stdout
    assert b"sk-secret" not in done.stdout


async def test_there_is_no_network_and_no_other_process(tmp_path: Path) -> None:
    done = await shell(tmp_path, "cat /proc/net/dev | grep -v lo: | tail -n +3; ls -d /proc/[0-9]* | wc -l; id -u")
    count, user = done.stdout.split()
    assert int(count) < 8
    assert user != b"0" or os.geteuid() != 0


async def test_no_privilege_is_left(tmp_path: Path) -> None:
    done = await shell(tmp_path, "grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs' /proc/self/status")
    values = [line.split()[1] for line in done.stdout.decode().splitlines()]
    assert values[:3] == ["0" * 16] * 3
    assert values[3] == "1"


async def test_a_daemon_dies_with_its_run(tmp_path: Path) -> None:
    await shell(tmp_path, f"setsid sh -c 'while :; do date +%N > {tmp_path}/beat; done' & sleep 0.1")
    before = (tmp_path / "beat").read_text()
    await shell(tmp_path, "sleep 0.1")
    assert (tmp_path / "beat").read_text() == before


async def test_a_fork_bomb_is_contained(tmp_path: Path) -> None:
    done = await shell(tmp_path, "f() { f | f & }; f; sleep 20", limits=Limits(seconds=1.0))
    assert done.seconds < 5
    assert (await shell(tmp_path, "echo alive")).stdout == b"alive\n"


async def test_files_named_on_the_command_line_are_readable(tmp_path: Path) -> None:
    named, other, folder = tmp_path / "named", tmp_path / "other", tmp_path / "folder"
    named.write_text("named")
    other.write_text("other")
    folder.mkdir()
    argv = detect().wrap(["/bin/cat", str(named)], folder)
    assert (await run_child(argv, cwd=folder)).stdout == b"named"
    assert b"other" not in (await shell(folder, f"cd {tmp_path}; cat other")).stdout


@pytest.mark.parametrize("sandbox", [s for s in _candidates() if s.kind != "none"], ids=lambda s: s.name)
async def test_every_kind_that_works_here_runs_a_command(sandbox: Sandbox, tmp_path: Path) -> None:
    if not _works(sandbox):
        pytest.skip(f"{sandbox.name} does not work on this machine")
    folder = tmp_path / "f"
    folder.mkdir()
    if sandbox.kind != "bubblewrap":
        for parent in (folder, *folder.parents[:-2]):  # without mounts of its own a run needs a way to its folder
            parent.chmod(0o755)
    done = await shell(folder, "echo works", sandbox)
    assert done.stdout == b"works\n"
    assert sandbox.covers
    assert sandbox.misses


async def test_a_program_may_lie_in_a_folder_that_is_shown_as_a_whole(tmp_path: Path) -> None:
    tools, folder = tmp_path / "tools", tmp_path / "work"
    (tools / "bin").mkdir(parents=True)
    folder.mkdir()
    for place in (tmp_path, *tmp_path.parents[:-2], tools, tools / "bin"):
        place.chmod(place.stat().st_mode | 0o055)
    program = tools / "bin" / "hello"
    (tools / "bin" / "real").write_text("#!/bin/sh\necho hello\n")
    (tools / "bin" / "real").chmod(0o755)
    program.symlink_to("real")
    argv = detect().reading(tools).wrap([str(program)], folder)
    done = await run_child(argv, limits=Limits(seconds=10), cwd=folder)
    assert done.stdout == b"hello\n"


async def test_what_a_run_is_given_reaches_it_whatever_the_user_has_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        **child_environment(tmp_path), "USER": "cudaperf", "CUDAPERF_PLACE_LEFT": "1", "ASAN_OPTIONS": "x=1",
        "TORCH_CUDA_ARCH_LIST": "9.0", "TRITON_CACHE_DIR": str(tmp_path),
    }  # fmt: skip
    for name in given:
        if name != "PATH":
            monkeypatch.setenv(name, "of the user")
    monkeypatch.setenv("SECRET_KEY", "of the user")
    done = await run_child(detect().wrap(["/usr/bin/env"], tmp_path), cwd=tmp_path, env=given)
    seen = dict(line.split("=", 1) for line in done.stdout.decode().splitlines() if "=" in line)
    assert {name: seen.get(name) for name in given} == given
    assert "of the user" not in seen.values()
