"""The names of the two tables, as effects use them."""

from __future__ import annotations

from typing import Final

from holdfast import resources

#: The records of each execution's log.
EXECUTIONS: Final = resources.EXECUTIONS_NAME
#: Every item that is not a record of a log, such as inbox messages, names, definitions and due
#: rows.
MAIL: Final = resources.MAIL_NAME
