"""How pytest-xdist distributes the tests over its workers.

The scheduler of xdist for groups hands out single tests. Each worker then builds the fixtures and
the caches of every file. For each finished test, that scheduler also counts all tests that it
handed out before. This scheduler hands out whole files, and whole groups of tests with the same
`xdist_group`, in the order of collection: the small files of `unit` are the last.

A worker of xdist sends six messages for each test. Of a test that passes, this run needs two: that
its call passed, and that it has ended. The other four take more time than most tests.
"""

from __future__ import annotations

from typing import Any

import pytest
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


def report_less(config: pytest.Config) -> None:
    """Keep the worker from sending what only a verbose run, a list of the slowest tests or a report
    as XML needs.
    """
    option, plugins = config.option, config.pluginmanager
    if option.verbose > 0 or option.durations is not None or option.xmlpath is not None:
        return
    worker: Any = next(one for one in plugins.get_plugins() if hasattr(one, "run_one_test"))
    send_report, send_end = worker.pytest_runtest_logreport, worker.pytest_runtest_logfinish

    @pytest.hookimpl
    def report_of_interest(report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or report.sections:
            send_report(report)

    @pytest.hookimpl
    def last_end(nodeid: str, location: tuple[str, int | None, str]) -> None:
        # At the last one, the terminal writes 100 %.
        if not isinstance(worker.nextitem_index, int):
            send_end(nodeid, location)

    # pluggy takes the hooks of a plugin when it is registered.
    plugins.unregister(worker)
    worker.pytest_runtest_logstart = None
    worker.pytest_runtest_logreport = report_of_interest
    worker.pytest_runtest_logfinish = last_end
    plugins.register(worker)
