"""Search attributes by which executions are found."""

from pydantic import BaseModel, SecretStr

from holdfast import note, workflow


class Customer(BaseModel):
    id: str
    token: SecretStr


class Order(BaseModel):
    customer: Customer
    agent: Customer | None = None
    price: float = 1.5


@workflow(search={"customer": "order.customer.id", "agent": str})
def no_field(order: Order) -> None:
    if order.agent is not None:
        note(agent=order.agent.id)


@workflow(search={"customer": "order.customer.id"})
def no_type(order: Order) -> None: ...


@workflow(search={"stage": str})
def no_note(order: Order) -> None:
    note(stage="packed")


@workflow(search={"customer": "order.customer.id"})
def no_input(order: Order) -> None: ...


@workflow(search={"weight": int})
def no_declared_type(order: Order) -> None: ...
