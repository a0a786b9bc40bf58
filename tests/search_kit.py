"""An order with search attributes, and the requests that find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders import Machine, Shop, add, ask, call, machine, wait_for

SEARCH = {"customer": "str", "total": "int", "rush": "bool", "due": "datetime", "stage": "str"}


def note(target: str | None = None, **attributes: Any) -> Machine:
    """Return a state that sets attributes."""
    noted = {name: {SEARCH[name]: value} for name, value in attributes.items()}
    return {
        "Type": "Pass",
        "Holdfast": {"Note": noted},
        **({"End": True} if target is None else {"Next": target}),
    }


#: An event, a moment of work, a change of an attribute, then a person.
ORDER = machine(
    {
        "begin": note(
            "paid?",
            customer="{% $states.input.customer %}",
            total="{% $states.input.total %}",
            stage="new",
        ),
        "paid?": wait_for("paid", "pack"),
        "pack": call("add", "packed", Arguments={"n": 1}),
        "packed": note("ok?", stage="packed"),
        "ok?": ask("sent"),
        "sent": note(stage="sent"),
    }
)
INPUT = {"customer": "C-17", "total": 120}


class SearchShop(Shop):
    """A shop whose workflow declares search attributes."""

    def __init__(self, definition: Machine = ORDER, tasks: Any = add, **options: Any) -> None:
        super().__init__(definition, tasks, **options)
        self.declare(SEARCH)

    def declare(self, search: Mapping[str, str]) -> None:
        self.definition.source_map["search"] = dict(search)

    def rest(self, seconds: float = 1) -> None:
        self.world.run(until_ms=self.world.now_ms + int(seconds * 1_000))

    def page(self, *where: str, **request: Any) -> Mapping[str, Any]:
        wanted = {**request, "where": list(where)}
        page: Mapping[str, Any] = self.insist(lambda: self.front.executions(self.tenant, wanted))
        return page

    def found(self, *where: str, **request: Any) -> list[str]:
        """Return the names that the list finds, page by page."""
        names: list[str] = []
        while True:
            page = self.page(*where, **request)
            names += [row["name"] for row in page["executions"]]
            if "next" not in page:
                return names
            request["after"] = page["next"]


def started(definition: Machine = ORDER, data: Any = None, **options: Any) -> SearchShop:
    """Return a shop whose one execution, `order-1`, has rested."""
    shop = SearchShop(definition, **options)
    shop.start(INPUT if data is None else data)
    shop.rest()
    return shop
