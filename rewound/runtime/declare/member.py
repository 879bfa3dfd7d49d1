"""What every declaration in a class body has in common: a name, and the class it was given it in."""

__all__ = ["Member"]


class Member:
    """A declaration in a class body, such as a step; it learns its name when the class is created."""

    owner: type | None
    name: str

    def __init__(self, doc: str | None) -> None:
        self.owner = None
        self.name = ""
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        # the first name counts: a second one is an alias, which collecting the members refuses
        if not self.name:
            self.owner, self.name = owner, name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"
