"""Links between the pages lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES

_LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    """Every relative link names a file that is there."""
    targets = [match["target"] for match in _LINK.finditer(page.read_text("utf-8"))]
    assert not [target for target in targets if not (page.parent / target).exists()]
