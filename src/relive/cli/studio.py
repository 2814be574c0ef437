"""``relive studio``: a local page that makes forgetting and replay visible."""

from __future__ import annotations

import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from relive._util.errors import DataError, InputError, ReliveError
from relive.cli import run, sweeping
from relive.cli.console import err, note, out

HOST = Annotated[
    str, typer.Option(help="The address to listen on; any address but this machine's own can be reached by others.")
]
PORT = Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")]
NO_OPEN = Annotated[bool, typer.Option("--no-open", help="Do not open the page in the browser.")]
MODELS_DIR = Annotated[Path, typer.Option(help="The folder of model files shown on the page.")]
DEMO = Annotated[bool, typer.Option("--demo", help="First train two small runs to look at: fine-tuning and replay.")]
DEMO_DATASET = Annotated[
    str | None,
    typer.Argument(metavar="[DATASET]", help="For --demo: digits (a minute; the default) or mnist (a few minutes)."),
]

EXAMPLES = """Examples:

relive studio  (the runs in runs/, including those started later)

relive studio --demo  (something to look at in a minute; --demo mnist takes a few minutes)

relive studio --runs-dir my-runs --from reproduction  (with the reproduced runs of the paper)

relive studio --no-open --port 8800  (only prints the address)
"""


def command(
    demo_dataset: DEMO_DATASET = None,
    runs_dir: sweeping.RUNS_DIR = Path("runs"),
    models_dir: MODELS_DIR = Path("models"),
    taken_from: sweeping.FROM = None,
    data_dir: run.DATA_DIR = None,
    host: HOST = "127.0.0.1",
    port: PORT = 0,
    no_open: NO_OPEN = False,
    demo: DEMO = False,
) -> None:
    """Open a local page that shows runs as they learn, what they forget and what they replay.

    It needs no network. The printed address contains a token that every request must have. Ctrl-C stops it and the
    runs it started; finished tasks are kept.
    """
    try:
        import uvicorn  # noqa: F401

        from relive.cli.serve import listening_on
        from relive.serving.guard import is_loopback
        from relive.studio.app import Places, first_specs, make_app
        from relive.studio.server import address, make_server
    except ImportError as error:
        raise ReliveError(
            f"relive studio needs {error.name}, which is not installed: pip install 'relive[studio]'"
        ) from error

    from relive.studio.choices import FIRST_SIZES
    from relive.studio.commands import run_words

    store = sweeping.make_store(runs_dir, taken_from)
    if demo_dataset is not None and not demo:
        raise InputError(f"{demo_dataset}: a data set is for the demonstration, relive studio --demo {demo_dataset}")
    if demo:
        dataset = demo_dataset or "digits"
        if dataset not in FIRST_SIZES:
            raise InputError(f"--demo {dataset}: choose {' or '.join(FIRST_SIZES)}")
        _check_data(dataset, data_dir)
        _make_demo([run_words(spec) for spec in first_specs(dataset)], runs_dir, data_dir)
    if not is_loopback(host):
        note(
            f"other machines can reach {host}, and traffic is not encrypted: anyone who sees the address with "
            "its token can start runs and change models here"
        )
    token = secrets.token_urlsafe(24)
    hosts = frozenset({"localhost", "127.0.0.1", "::1", host.lower()}) if is_loopback(host) else None
    app = make_app(Places(store, models_dir, data_dir), hosts, token)
    listening = listening_on(host, port)
    page = address(host, listening, token)
    out.print(f"studio    {runs_dir} (stop with Ctrl-C)")
    out.print(page)
    sys.stdout.flush()
    if not no_open:
        import webbrowser

        webbrowser.open(page)
    with suppress(KeyboardInterrupt), listening:
        make_server(app).run(sockets=[listening])
    out.print("stopped.")


def _check_data(dataset: str, data_dir: Path | None) -> None:
    """Get the data of the demonstration, or say once, and not by each of its runs, that they cannot be got."""
    from relive.data.datasets.sources import load_data

    try:
        load_data(dataset, data_dir)
    except DataError as error:
        raise DataError(f"{error}\nrelive studio --demo, without {dataset}, takes digits, which are here") from error


def _make_demo(commands: list[list[str]], runs_dir: Path, data_dir: Path | None) -> None:
    """Do the demonstration's unfinished runs side by side."""
    where = ["--runs-dir", str(runs_dir), *(["--data-dir", str(data_dir)] if data_dir is not None else [])]
    words = [[sys.executable, "-m", "relive", *each, *where, "--snapshots", "--quiet"] for each in commands]
    err.print("training two small runs, fine-tuning and replay; the page opens when they are done")
    processes = [subprocess.Popen(each, stdout=subprocess.DEVNULL) for each in words]
    try:
        codes = [process.wait() for process in processes]
    except KeyboardInterrupt:
        for process in processes:
            process.wait()  # Ctrl-C went to them too
        raise
    if any(codes):
        raise ReliveError("the demonstration runs failed, see above")
