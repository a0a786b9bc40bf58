"""A module whose workflow is a document."""

from __future__ import annotations

from holdfast import Dag, task


@task
def extract(day: str) -> list[int]:
    return [len(day)]


from_a_document = Dag.from_json(
    {"workflow_id": "from_a_document", "steps": [{"id": "extract", "type": "extract"}]}, [extract]
)
