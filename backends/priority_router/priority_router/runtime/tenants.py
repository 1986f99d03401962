# SPDX-License-Identifier: Apache-2.0
"""Whose a request is, by the policy's ``tenant_sources``, and which class that tenant may have.

Law: pure; a request's parameters and class in, its tenant and the class that it gets out, or an InvalidRequest. A
tenant's name is a client's text: it is compared, never shown in a metric.
"""

from __future__ import annotations

from priority_router.config import EVERY_OTHER, Above, RouterPolicy, TenantRule
from priority_router.errors import InvalidRequest
from priority_router.interface import TENANT_PARAMETER
from priority_router.policy_checks import MAX_TENANT_BYTES
from priority_router.runtime.parameters import Pairs, look_up, shown


class TooUrgent(InvalidRequest):
    """The request asks for a class that its tenant may not have.

    Attributes:
        rule: name of the rule that says so.
    """

    def __init__(self, message: str, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class Tenants:
    """Applies one policy."""

    def __init__(self, policy: RouterPolicy) -> None:
        self._sources = policy.tenant_sources
        self._rules = {rule.name: rule for rule in policy.tenants}
        levels = {each.name: each.level for each in policy.scheduling.classes}
        self._above = {
            rule.name: {name for name, level in levels.items() if level < levels[rule.most_urgent_class]}
            for rule in policy.tenants
        }

    def tenant(self, given: Pairs) -> str:
        """The request's tenant; empty where it names none.

        Raises:
            InvalidRequest: it is named twice, is no text or too long.
        """
        for source in self._sources:
            found, what = look_up(source, given, TENANT_PARAMETER)
            if found is not None:
                length = len(found.encode("utf-8", "surrogatepass"))
                if length > MAX_TENANT_BYTES:
                    raise InvalidRequest(
                        f"{what} has {length} bytes; the name of a tenant has at most {MAX_TENANT_BYTES}"
                    )
                return found
        return ""

    def lowered(self, tenant: str, class_name: str) -> TenantRule | None:
        """The rule that lowers the request to its class; None where it may have what it asks for.

        Raises:
            TooUrgent: its rule refuses it.
        """
        rule = self._rules.get(tenant) or self._rules.get(EVERY_OTHER)
        if rule is None or class_name not in self._above[rule.name]:
            return None
        if rule.above is Above.REJECT:
            who = f"tenant {shown(tenant.encode('utf-8', 'surrogatepass'))}" if tenant else "a request without a tenant"
            raise TooUrgent(
                f"{who} may ask for class {rule.most_urgent_class!r} and less urgent ones, not for {class_name!r}",
                rule.name,
            )
        return rule
