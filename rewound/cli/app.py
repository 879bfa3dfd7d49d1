"""The commands, put together.

Exit codes: 0, done; 1, done, and the answer is bad (a check failed, the demo does not add up, the run did not
complete); 2, not done (wrong arguments, no such run, storage out of reach).
"""

import typer

from rewound.cli import checks, demo, listing, show, verbs

__all__ = ["app"]

app = typer.Typer(
    name="rewound",
    help="Durable sagas as actors: see what runs, take it back, check definitions and storage.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # so that paragraphs of docstrings flow
    pretty_exceptions_show_locals=False,  # inputs may be secret
)
app.command("demo")(demo.demo)
app.command("runs")(listing.runs)
app.command("show")(show.show)
app.command("undo")(verbs.undo)
app.command("cancel")(verbs.cancel)
app.command("retry")(verbs.retry)
app.command("check")(checks.check)
app.command("doctor")(checks.doctor)
