"""The file of the demo's import: one subscriber and fee a row, one of them unreadable, near the end."""

import csv
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

__all__ = ["PAGE", "Fee", "pages_of", "read_fees", "write_fees"]

PAGE: Final = 100  # rows read at a time
BAD: Final = "12,5O"  # a comma, and the letter O: what people type


class Fee(Struct, frozen=True):
    """One row, as it stands in the file.

    Args:
        line: where that is.
        subscriber: who is charged.
        amount: in euros and cents, if it can be read.
    """

    line: int
    subscriber: str
    amount: str

    @property
    def cents(self) -> int:
        """The amount in cents. Raises `ValueError`, with the line, if it cannot be read."""
        try:
            return int(Decimal(self.amount) * 100)
        except InvalidOperation:
            raise ValueError(f"line {self.line}: {self.amount!r} is not an amount") from None

    @property
    def is_good(self) -> bool:
        """Whether the amount can be read."""
        return self.amount != BAD


def write_fees(path: Path, rows: int) -> None:
    """Write a file of so many rows, always the same ones; the amount of one near the end is unreadable."""
    bad = rows * 99 // 100
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("subscriber", "amount"))
        for number in range(rows):
            amount = BAD if number == bad else f"{5 + number % 40}.{number * 7 % 100:02}"
            writer.writerow((f"S-{number + 1:05}", amount))


def read_fees(path: Path) -> Iterator[Fee]:
    """Read the rows, one by one."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        for subscriber, amount in reader:
            yield Fee(reader.line_num, subscriber, amount)


def pages_of(path: Path, done: int) -> Iterator[list[Fee]]:
    """Read the rows behind the first `done`, a page at a time."""
    rows = islice(read_fees(path), done, None)
    while page := list(islice(rows, PAGE)):
        yield page
