"""How pytest-xdist distributes the tests over its workers.

The scheduler of xdist for groups hands out single tests. Each worker then builds the fixtures and
the caches of every file. For each finished test, that scheduler also counts all tests that it
handed out before. This scheduler hands out whole files, and whole groups of tests with the same
`xdist_group`, in the order of collection: the small files of `unit` are the last.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadGroupScheduling


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]
    """Hands out files and groups."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: The place of each test in the collection of each worker.
        self._places: dict[Any, dict[str, int]] = {}

    def _split_scope(self, nodeid: str) -> str:
        """Return the group that stands behind the test's name, or the test's file."""
        group: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group

    def add_node_collection(self, node: Any, collection: Any) -> None:
        super().add_node_collection(node, collection)
        self._places[node] = {name: place for place, name in enumerate(collection)}

    def _assign_work_unit(self, node: Any) -> None:
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = unit
        places = self._places[node]
        node.send_runtest_some([places[name] for name, is_done in unit.items() if not is_done])

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(units[scope].values()):
            del units[scope]  # or each count of pending tests would go through it again
