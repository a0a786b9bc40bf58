"""Search attributes that no execution could be found by."""

from pydantic import BaseModel, SecretStr

from holdfast import note, workflow


class Customer(BaseModel):
    id: str
    token: SecretStr


class Order(BaseModel):
    customer: Customer
    agent: Customer | None = None
    price: float = 1.5


@workflow(search={"customer": "order.customer.name", "agent": "order.agent.id"})
def no_field(order: Order) -> None: ...


@workflow(search={"token": "order.customer.token", "price": "order.price"})
def no_type(order: Order) -> None: ...


@workflow(search={"stage": str})
def no_note(order: Order) -> None:
    note(stgae="packed")
    note(stage=order.price)
    note()


@workflow(search={"customer": "purchase.customer.id"})
def no_input(order: Order) -> None: ...


@workflow(search={"weight": float})
def no_declared_type(order: Order) -> None: ...
