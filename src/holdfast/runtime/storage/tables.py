"""The names of the two tables, as effects use them."""

from __future__ import annotations

from typing import Final

from holdfast import resources

#: The records of each execution's log.
EXECUTIONS: Final = resources.EXECUTIONS_NAME
#: Inboxes, names, definitions, due rows: every item that is not a record of a log.
MAIL: Final = resources.MAIL_NAME
