"""Ten conversations, as authors write them: each is talked to while it runs."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from holdfast import (
    TaskError,
    WaitTimeout,
    again,
    choice,
    days,
    first,
    minutes,
    publish,
    receive,
    seconds,
    send,
    sleep,
    start,
    stop,
    task,
    wait_for_event,
    workflow,
)


class Refused(TaskError):  # noqa: N818
    pass


# -- a cart ----------------------------------------------------------------------------------------


class AddItem(BaseModel):
    kind: Literal["add"] = "add"
    sku: str
    cents: int


class Checkout(BaseModel):
    kind: Literal["checkout"] = "checkout"


@workflow(key="cart_id", starts_on="cart")
def cart(cart_id: str, skus: list[str] | None = None, cents: int = 0) -> str:
    items = [] if skus is None else skus
    with receive("cart", AddItem | Checkout, key=cart_id, timeout=days(30)) as request:
        message: AddItem | Checkout = request.data
        match message:
            case AddItem(sku=sku, cents=price):
                request.reply(cents + price)
                return again(cart_id, skus=[*items, sku], cents=cents + price)
            case Checkout():
                if not items:
                    raise Refused("the cart is empty")
                request.reply("ordered")
    return f"{', '.join(items)}: {cents}"


# -- a chat with tools -----------------------------------------------------------------------------


@task
def get_weather(city: str) -> str:
    return f"rain in {city}"


@task
def get_price(sku: str) -> str:
    return f"{sku} costs 5"


TOOLS = choice(get_weather, get_price)


class Say(BaseModel):
    text: str
    tool: Literal["get_weather", "get_price"] | None = None
    argument: dict[str, str] = {}


@workflow(key="user", starts_on="chat")
def chat(user: str) -> list[tuple[str, str]]:
    history: list[tuple[str, str]] = []
    while True:
        with receive("chat", Say, key=user) as request:
            said = request.data
            history.append(("user", said.text))
            if said.text == "bye":
                request.reply("bye")
                return history
            answer = "yes"
            if said.tool is not None:
                answer = TOOLS[said.tool](**said.argument)
            history.append(("bot", answer))
            request.reply(answer)


# -- a pool of resources ---------------------------------------------------------------------------


class Want(BaseModel):
    kind: Literal["want"] = "want"
    who: str


class Free(BaseModel):
    kind: Literal["free"] = "free"
    who: str


@workflow(key="name", starts_on="pool")
def pool(name: str, size: int = 1) -> list[str]:
    holders: list[str] = []
    queue: list[str] = []
    served: list[str] = []
    while len(served) < 3:
        message: Want | Free = wait_for_event("pool", Want | Free, key=name)
        match message:
            case Want(who=who):
                queue.append(who)
            case Free(who=who):
                holders = [one for one in holders if one != who]
        if queue and len(holders) < size:
            holders.append(queue[0])
            served.append(queue[0])
            send("granted", True, key=queue[0])
            queue = queue[1:]
    return served


@workflow
def customer(who: str) -> bool:
    return wait_for_event("granted", bool, key=who)


# -- a timer that can be moved ---------------------------------------------------------------------


@workflow
def movable_timer(key: str, wait_seconds: int) -> str:
    left, moves = wait_seconds, 0
    while True:
        try:
            left = wait_for_event("timer.move", int, key=key, timeout=seconds(left))
            moves += 1
        except WaitTimeout:
            return f"fired after {moves} moves"


# -- a cluster manager -----------------------------------------------------------------------------


class Change(BaseModel):
    action: Literal["add", "remove", "shutdown"]
    node: str = ""


@workflow(key="cluster", starts_on="cluster")
def manager(cluster: str, nodes: list[str] | None = None) -> list[str]:
    known: list[str] = [] if nodes is None else nodes
    for _ in range(2):
        with receive("cluster", Change, key=cluster) as request:
            change = request.data
            if change.action == "shutdown":
                request.reply(known)
                return known
            if change.action == "add" and change.node in known:
                raise Refused(f"{change.node} is there")
            known = [one for one in known if one != change.node]
            if change.action == "add":
                known = [*known, change.node]
            request.reply(len(known))
    return again(cluster, nodes=known)


# -- payments as objects ---------------------------------------------------------------------------


@task
def charge(cents: int) -> str:
    if cents > 500:
        raise Refused("too much")
    return f"charge of {cents}"


class Pay(BaseModel):
    action: Literal["charge", "refund", "get", "close"]
    cents: int = 0


@workflow(key="payment", starts_on="payment")
def payment(payment: str) -> str:
    state = "new"
    while True:
        with receive("payment", Pay, key=payment) as request:
            match request.data.action:
                case "charge":
                    if state != "new":
                        raise Refused(f"it is {state}")
                    receipt = charge(request.data.cents)
                    state = "charged"
                    request.reply(receipt)
                case "refund":
                    state = "refunded"
                    request.reply(state)
                case "get":
                    request.reply(state)
                case "close":
                    request.reply(state)
                    return state


# -- an order with live status ---------------------------------------------------------------------


@workflow
def order(order_id: str) -> str:
    publish("status", "waits for payment")
    paid = wait_for_event("order.paid", int, key=order_id)
    publish("status", "packed")
    publish("paid", paid)
    outcome = first(
        lambda: wait_for_event("order.delivered", str, key=order_id), lambda: sleep(days(7))
    )
    publish("status", "closed")
    return "lost" if outcome is None else outcome


# -- an approval with edits ------------------------------------------------------------------------


class Review(BaseModel):
    verdict: Literal["edit", "approve", "reject"]
    text: str = ""


@workflow
def approval(key: str, draft: str) -> str:
    text, edits = draft, 0
    while edits < 5:
        with receive("review", Review, key=key) as request:
            review = request.data
            if review.verdict == "edit":
                text, edits = review.text, edits + 1
                request.reply(text)
                continue
            request.reply(review.verdict)
            return text if review.verdict == "approve" else "rejected"
    return "too many edits"


# -- a session that ends when it is quiet ----------------------------------------------------------


@workflow(key="user", starts_on="session.click")
def session(user: str) -> list[str]:
    clicks: list[str] = []
    while True:
        try:
            clicks.append(wait_for_event("session.click", str, key=user, timeout=minutes(5)))
        except WaitTimeout:
            return clicks


# -- a subscription that lives long ----------------------------------------------------------------


@task
def bill(customer: str, period: int) -> int:
    return period * 10


@workflow
def reminder(customer: str) -> None:
    sleep(days(400))


@workflow(key="customer")
def subscription(customer: str, period: int = 1, total: int = 0) -> int:
    reminding = start(reminder, customer)
    try:
        wait_for_event("subscription.cancel", bool, key=customer, timeout=days(30))
    except WaitTimeout:
        paid = bill(customer, period)
        stop(reminding)
        return again(customer, period=period + 1, total=total + paid)
    stop(reminding)
    return total
