"""Refused calls of services."""

from __future__ import annotations

from pydantic import BaseModel, SecretStr

from holdfast import Lambda, aws, http, task, workflow


class Order(BaseModel):
    id: str
    total: int
    token: SecretStr
    coupon: str | None = None


@task(runs_on=Lambda("arn:aws:lambda:eu-west-1:111122223333:function:charge"))
def charge(order: Order) -> str: ...  # type: ignore[empty-body]


@workflow
def stored(order: Order, key: str | None) -> None:
    aws.s4.put_object(Bucket="b", Key="k")
    aws.eventbridge.put_events(Entries=[])
    aws.s3.put_objekt(Bucket="b", Key="k")
    aws.s3.put_object("b", "k")  # type: ignore[call-arg]
    aws.s3.put_object(Bucket="b", Key="k", Boddy="x")
    aws.s3.put_object(Bucket="b")
    aws.s3.put_object(Bucket="b", Key=order.total)
    aws.s3.put_object(Bucket="b", Key="k", Body=order.token)
    aws.rds.describe_db_instances(DBInstanceIdentifier=order.id)
    aws.s3.put_object_tagging(Bucket="b", Key="k", Tagging={"TagSet": [{"Key": "a", "Val": "b"}]})
    aws.sqs.send_message(QueueUrl=order.id, MessageBody=order.id, DelaySeconds="5")
    http.post("http://api.example.com", json=order.id)
    http.post("https://api.example.com", body=order.id)  # type: ignore[call-arg]
    http.get("https://api.example.com", query=order.id)  # type: ignore[arg-type]
    http.get("https://api.example.com", headers={"token": order.token})
    http.post("https://api.example.com", json=key)
    charge(order)
    found = aws.s3.list_objects_v2(Bucket="b")
    for item in found["Contents"]:
        aws.s3.delete_object(Bucket="b", Key=item["Kye"])
    aws.s3.put_object(Bucket="b", Key="k", ContentLength=found["Contents"][0]["Key"])
