"""The command line: `rewound`. Needs the extra `cli` (typer, rich)."""

import sys

__all__ = ["main"]

NEEDED = {"typer", "rich"}


def main() -> None:
    """Run the command line with the arguments of this process; the entry point `rewound`."""
    try:
        from rewound.cli.app import app  # noqa: PLC0415  the extra may not be installed
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(f"rewound's command line needs {error.name}: pip install 'rewound[cli]'")
    app()
