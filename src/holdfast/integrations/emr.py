"""Instance fleets and groups of an EMR cluster by their names.

EMR's own actions know them by their ids. Step Functions lists those of the cluster and takes the id
of the one that has the name. Source: AWS docs, "Create and manage Amazon EMR clusters with Step
Functions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.problems import Unusable
from holdfast.runtime.effects import RunTask


@dataclass(frozen=True, slots=True)
class _Named:
    """One kind of part of a cluster. `field` is its field in the task's arguments, whose name is in
    `field` + "Name" and whose id EMR calls `field` + "Id".
    """

    field: str
    list_: str

    @property
    def listed(self) -> str:
        return f"{self.field}s"


BY_NAME: Final[Mapping[str, _Named]] = {
    "elasticmapreduce:modifyInstanceFleetByName": _Named("InstanceFleet", "list_instance_fleets"),
    "elasticmapreduce:modifyInstanceGroupByName": _Named("InstanceGroup", "list_instance_groups"),
}


def with_id(effect: RunTask, clients: ServiceClients) -> RunTask:
    """Return the task with the id in place of the name. Raises Unusable, and botocore's ClientError
    when EMR refuses the list.
    """
    named = BY_NAME[effect.name]
    arguments = dict(effect.arguments or {})
    name_field = f"{named.field}Name"
    for field in ("ClusterId", name_field, named.field):
        if field not in arguments:
            raise Unusable(f"The field '{field}' is required but was missing")
    part = arguments.pop(named.field)
    if not isinstance(part, Mapping):
        raise Unusable(f"The value for the field '{named.field}' must be an OBJECT")
    name = arguments.pop(name_field)
    client = clients.get("emr", effect.credentials)
    found = _id_of(client, named, arguments["ClusterId"], name)
    if found is None:
        raise Unusable(f"The cluster has no {named.field} with the name '{name}'")
    return replace(
        effect, arguments={**arguments, named.field: {f"{named.field}Id": found, **part}}
    )


def _id_of(client: Any, named: _Named, cluster: Any, name: Any) -> str | None:
    request = {"ClusterId": cluster}
    while True:
        page = getattr(client, named.list_)(**request)
        for one in page.get(named.listed, ()):
            if one.get("Name") == name:
                return str(one["Id"])
        if not page.get("Marker"):
            return None
        request = {**request, "Marker": page["Marker"]}
