"""Calls of services as the refusals ask for them."""

from __future__ import annotations

from pydantic import BaseModel, SecretStr

from holdfast import Lambda, aws, http, task, workflow


class Order(BaseModel):
    id: str
    total: int
    token: SecretStr
    coupon: str | None = None


@task(runs_on=Lambda("arn:aws:lambda:eu-west-1:111122223333:function:charge"))
def charge(order_id: str, secret_name: str) -> str: ...  # type: ignore[empty-body]


@task
def store(token: SecretStr) -> None:
    """Call the service with the secret, which is opened here."""


@workflow
def stored(order: Order, key: str | None) -> None:
    aws.s3.put_object(Bucket="b", Key="k")
    aws.events.put_events(Entries=[])
    aws.s3.put_object(Bucket="b", Key="k", Body="x")
    aws.s3.put_object(Bucket="b", Key=str(order.total))
    store(order.token)
    aws.rds.describe_db_instances(DbInstanceIdentifier=order.id)
    aws.s3.put_object_tagging(Bucket="b", Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    aws.sqs.send_message(QueueUrl=order.id, MessageBody=order.id, DelaySeconds=5)
    http.post("https://api.example.com", json=order.id)
    http.get("https://api.example.com", query={"name": order.id})
    http.get("https://api.example.com", connection="arn:aws:events:eu-west-1:111122223333:connection/bank/1")
    if key is not None:
        http.post("https://api.example.com", json=key)
    charge(order.id, "charge-token")
    found = aws.s3.list_objects_v2(Bucket="b")
    for item in found["Contents"]:
        aws.s3.delete_object(Bucket="b", Key=item["Key"])
    aws.s3.put_object(Bucket="b", Key=found["Contents"][0]["Key"], ContentLength=5)
