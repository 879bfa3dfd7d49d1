"""The entry point `rewound`."""

import sys

import pytest

from rewound.cli import main


def test_entry_point_shows_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments the commands are listed."""
    monkeypatch.setattr(sys, "argv", ["rewound"])
    with pytest.raises(SystemExit):
        main()
    assert "doctor" in capsys.readouterr().out


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the message says what to install, not a traceback."""
    monkeypatch.delitem(sys.modules, "rewound.cli.app", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"needs typer: pip install 'rewound\[cli\]'"):
        main()


def test_other_missing_module_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of ours that is missing is a broken installation, and shows as one."""
    monkeypatch.delitem(sys.modules, "rewound.cli.app", raising=False)
    monkeypatch.setitem(sys.modules, "rewound.cli.listing", None)
    monkeypatch.delattr("rewound.cli.listing", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"rewound\.cli\.listing"):
        main()
