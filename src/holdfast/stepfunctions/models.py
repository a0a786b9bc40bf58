"""botocore's models of the services that definitions name."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.service_names import botocore_name

if TYPE_CHECKING:
    from botocore.model import ServiceModel


@lru_cache(maxsize=4)  # a large model takes some 30 MB
def model_of(service: str) -> ServiceModel | None:
    """Return the model of a service by its name in a Resource; None for one that botocore does not
    have.
    """
    from botocore.loaders import Loader  # noqa: PLC0415  # only definitions with such tasks need it
    from botocore.model import ServiceModel  # noqa: PLC0415

    loader = Loader()
    name = botocore_name(service, tuple(loader.list_available_services("service-2")))
    if name is None:
        return None
    return ServiceModel(loader.load_service_model(name, "service-2"), name)
