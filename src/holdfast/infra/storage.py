"""Storage that remains when the stack is deleted: the tables, the buckets, the signing secret."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from holdfast import limits, resources

from .acknowledged import acknowledge_storage

_SECRET_CHARACTERS: Final = 64
_KEY_TYPES: Final = {"N": dynamodb.AttributeType.NUMBER, "S": dynamodb.AttributeType.STRING}


class Storage(Construct):
    """The storage. Deleting the stack keeps all of it, because it is the history of a running
    business.

    With `key` None AWS's own keys encrypt it. `archive` is the bucket of the archive; None: there
    is none.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, key: kms.IKey | None, has_archive: bool
    ) -> None:
        super().__init__(scope, construct_id)
        self._key = key
        self.executions = self._table(resources.EXECUTIONS)
        self.mail = self._table(resources.MAIL)
        # In a stack with an archive, only the blobs of cached results have a retention time. A
        # record may be older than that time when it is archived, and the archiver needs the values
        # in its blobs.
        aborted, after = Duration.days(1), Duration.days(limits.BLOB_RETENTION_DAYS)
        kept = s3.LifecycleRule(abort_incomplete_multipart_upload_after=aborted)
        cached = s3.LifecycleRule(prefix=resources.CACHE_BLOBS_PREFIX, expiration=after)
        expiring = s3.LifecycleRule(
            abort_incomplete_multipart_upload_after=aborted, expiration=after
        )
        self.blobs = self._bucket("Blobs", [kept, cached] if has_archive else [expiring])
        self.archive = self._bucket("Archive", [kept]) if has_archive else None
        secret = self._secret()
        self.secret_arn = secret.attr_id
        acknowledge_storage(self.buckets, secret)

    @property
    def buckets(self) -> list[s3.Bucket]:
        return [self.blobs] if self.archive is None else [self.blobs, self.archive]

    @property
    def list_arn(self) -> str:
        assert resources.EXECUTIONS.index is not None
        return f"{self.executions.table_arn}/index/{resources.EXECUTIONS.index.name}"

    def _bucket(self, construct_id: str, rules: list[s3.LifecycleRule]) -> s3.Bucket:
        return s3.Bucket(
            self,
            construct_id,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.KMS if self._key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self._key,
            # Let S3 use one data key for many objects. A call of KMS for each object would cost
            # more than S3.
            bucket_key_enabled=True if self._key else None,
            enforce_ssl=True,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=rules,
            removal_policy=RemovalPolicy.RETAIN,
        )

    def _table(self, shape: resources.Table) -> dynamodb.Table:
        table = dynamodb.Table(
            self,
            shape.name.capitalize(),
            partition_key=_attribute(shape.partition_key, "S"),
            sort_key=_attribute(shape.sort_key, shape.sort_key_type),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if self._key else None,
            encryption_key=self._key,
            time_to_live_attribute=shape.ttl_attribute,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        if shape.index is not None:
            table.add_global_secondary_index(
                index_name=shape.index.name,
                partition_key=_attribute(shape.index.partition_key, "S"),
                sort_key=_attribute(shape.index.sort_key, "S"),
                projection_type=dynamodb.ProjectionType.INCLUDE,
                non_key_attributes=list(shape.index.projected),
            )
        return table

    def _secret(self) -> secretsmanager.CfnSecret:
        secret = secretsmanager.CfnSecret(
            self,
            "Secret",
            description="Signs Holdfast's callback tokens and execution ids",
            kms_key_id=self._key.key_arn if self._key else None,
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=_SECRET_CHARACTERS, exclude_punctuation=True
            ),
        )
        secret.apply_removal_policy(RemovalPolicy.RETAIN)
        return secret


def _attribute(name: str, key_type: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=_KEY_TYPES[key_type])
