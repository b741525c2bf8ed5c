"""Organizations, the people who belong to them, their API keys, and who changed what."""

from accounts.models.accounts import (
    ApiKey,
    ChangeStamp,
    Membership,
    Organization,
    Plan,
    PriorityClass,
    Role,
    Scope,
    User,
    UserManager,
)
from accounts.models.security import AdminKey, AuditEntry, FailedLogins

__all__ = [
    "AdminKey",
    "ApiKey",
    "AuditEntry",
    "ChangeStamp",
    "FailedLogins",
    "Membership",
    "Organization",
    "Plan",
    "PriorityClass",
    "Role",
    "Scope",
    "User",
    "UserManager",
]
