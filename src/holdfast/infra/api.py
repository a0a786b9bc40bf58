"""The HTTP API: all its routes invoke one function.

The routes of forms have no authoriser: a signed token in their path authorises the request.
"""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from holdfast import resources

from .acknowledged import acknowledge_form
from .compute import log_group
from .settings import JwtIssuer, Settings

_REQUESTS_PER_SECOND: Final = 500
_REQUESTS_BURST: Final = 1_000
# The routes of forms need no authorisation. These limits leave most of the API's capacity to
# callers that are verified.
_FORM_SETTINGS: Final = {
    route: {"ThrottlingRateLimit": 20, "ThrottlingBurstLimit": 40}
    for route in resources.FORM_ROUTES
}
# The access log has no path, query or body, because these contain business keys and tokens.
_ACCESS_LOG: Final = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "route": "$context.routeKey",
    "status": "$context.status",
    "latencyMs": "$context.responseLatency",
    "responseBytes": "$context.responseLength",
    "sourceIp": "$context.identity.sourceIp",
    "caller": "$context.identity.userArn",
    "subject": "$context.authorizer.claims.sub",
    "error": "$context.error.message",
    "integrationError": "$context.integrationErrorMessage",
}


class Api(Construct):
    """The API. It verifies callers by IAM signatures, or by a JWT when an issuer is given.

    `key` encrypts the access log; None: CloudWatch's own key does.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.IFunction,
        settings: Settings,
        key: kms.IKey | None,
    ) -> None:
        self._key = key
        self._settings = settings
        super().__init__(scope, construct_id)
        self.http_api = apigateway.HttpApi(
            self,
            "HttpApi",
            description="Holdfast: its own routes, and the protocol of Step Functions at /",
            create_default_stage=False,
            default_authorizer=_authorizer(settings.jwt),
        )
        integration = HttpLambdaIntegration("Handler", function, scope_permission_to_route=False)
        for route in resources.ROUTES:
            method, path = route.split(" ")
            self.http_api.add_routes(
                path=path, methods=[apigateway.HttpMethod[method]], integration=integration
            )
        forms = self._add_forms(integration) if settings.has_forms else []
        # Use CloudFormation's own resource for the stage, because CDK's construct accepts no log
        # format from Python.
        stage = apigateway.CfnStage(
            self,
            "Stage",
            api_id=self.http_api.api_id,
            stage_name="$default",
            auto_deploy=True,
            default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=_REQUESTS_PER_SECOND, throttling_burst_limit=_REQUESTS_BURST
            ),
            route_settings=_FORM_SETTINGS if forms else None,
            access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
                destination_arn=self._access_log_arn(),
                format=json.dumps(_ACCESS_LOG),
            ),
        )
        # Create the routes before the stage, because API Gateway refuses settings for a route that
        # does not exist.
        stage.node.add_dependency(*forms)

    def _add_forms(self, integration: HttpLambdaIntegration) -> list[apigateway.HttpRoute]:
        routes: list[apigateway.HttpRoute] = []
        for route in resources.FORM_ROUTES:
            method, path = route.split(" ")
            routes += self.http_api.add_routes(
                path=path,
                methods=[apigateway.HttpMethod[method]],
                integration=integration,
                authorizer=apigateway.HttpNoneAuthorizer(),
            )
        for made in routes:
            acknowledge_form(made)
        return routes

    def _access_log_arn(self) -> str:
        # Build the ARN from its parts. The ARN of CDK's log group ends with `:*`, which a policy
        # needs, but a stage refuses.
        return Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=log_group(self, "AccessLog", self._key, self._settings).log_group_name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def arn_of(self, route: str) -> str:
        """Return the ARN of a route, such as `GET /executions/*`, as a policy names it."""
        method, path = route.split(" ")
        return self.http_api.arn_for_execute_api(method, path, "$default")

    @property
    def url(self) -> str:
        return self.http_api.api_endpoint


def _authorizer(jwt: JwtIssuer | None) -> apigateway.IHttpRouteAuthorizer:
    if jwt is None:
        return HttpIamAuthorizer()
    return HttpJwtAuthorizer("Jwt", jwt.issuer, jwt_audience=[jwt.audience])
