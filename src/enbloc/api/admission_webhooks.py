"""MutatingWebhookConfiguration and ValidatingWebhookConfiguration, as the embedded API reads them."""

from __future__ import annotations

import msgspec

from enbloc.api.meta import Fault, LabelSelector, TypedObject, View, selector_of

MUTATING = "MutatingWebhookConfiguration.admissionregistration.k8s.io"
VALIDATING = "ValidatingWebhookConfiguration.admissionregistration.k8s.io"


class ServiceReference(View):
    namespace: str
    name: str
    path: str | None = None
    port: int | None = None


class ClientConfig(View):
    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str | None = None


class Rule(View):
    operations: list[str]
    api_groups: list[str]
    api_versions: list[str]
    resources: list[str]
    scope: str | None = None


class MatchCondition(View):
    name: str
    expression: str


class Webhook(View):
    name: str
    client_config: ClientConfig
    side_effects: str
    admission_review_versions: list[str]
    rules: list[Rule] | None = None
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    match_conditions: list[MatchCondition] | None = None
    timeout_seconds: int | None = None
    reinvocation_policy: str | None = None

    @property
    def is_optional(self) -> bool:
        """Whether a write goes on if this webhook does not answer."""
        return self.failure_policy == "Ignore"


class WebhookConfiguration(TypedObject):
    webhooks: list[Webhook] | None = None


_VALUES = (
    ("failurePolicy", "failure_policy", ("Fail", "Ignore")),
    ("matchPolicy", "match_policy", ("Equivalent", "Exact")),
    ("sideEffects", "side_effects", ("None", "NoneOnDryRun")),
    ("reinvocationPolicy", "reinvocation_policy", ("Never", "IfNeeded")),
)


def configuration_faults(configuration: WebhookConfiguration) -> list[Fault]:
    """What is wrong with it, as a real API server would say."""
    faults = []
    for index, hook in enumerate(configuration.webhooks or ()):
        at, client = f"webhooks[{index}]", hook.client_config
        for field, attribute, good in _VALUES:
            given = getattr(hook, attribute)
            if given is not None and given not in good:
                faults.append(Fault(f"{at}.{field}", f"Unsupported value: {given[:80]!r}: must be {' or '.join(good)}"))
        if not 1 <= (hook.timeout_seconds or 10) <= 30:
            faults.append(Fault(f"{at}.timeoutSeconds", "must be between 1 and 30"))
        if "v1" not in hook.admission_review_versions:
            faults.append(Fault(f"{at}.admissionReviewVersions", "must include v1"))
        if (client.url is None) == (client.service is None):
            faults.append(Fault(f"{at}.clientConfig", "exactly one of url or service is required"))
        if client.url is not None and not client.url.startswith("https://"):
            faults.append(Fault(f"{at}.clientConfig.url", "must begin with https://"))
        for field, selector in (
            ("namespaceSelector", hook.namespace_selector),
            ("objectSelector", hook.object_selector),
        ):
            try:
                selector_of(selector)
            except ValueError as why:
                faults.append(Fault(f"{at}.{field}", str(why)))
    return faults


def read_configuration(obj: object) -> WebhookConfiguration:
    """Raises `msgspec.ValidationError`."""
    return msgspec.convert(obj, WebhookConfiguration)
