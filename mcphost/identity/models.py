"""Models of bearer tokens (only digests are stored), service accounts, OAuth clients with their
connections, links to accounts, and sign-in attempts."""

import uuid
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models

from mcphost.identity.tokens import ID_LENGTH
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Audience

CLIENT_ID_LENGTH = 500


class ServiceAccount(models.Model):
    """A program that calls a tenant in its own name, with at most the rights of a member.

    The row stays after removal, so that a name in the records never refers to another account.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="service_accounts")
    name = models.CharField(max_length=60)
    description = models.CharField(max_length=200, blank=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True, editable=False)
    removed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "identity_service_account"
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "name"), name="identity_service_account_name"
            ),
        )

    def __str__(self) -> str:
        return f"service account {self.name}"


class Token(models.Model):
    """A credential for one audience of one tenant, with at most its owner's rights there.

    A user's token depends on the user's membership: when that ends, `membership` becomes null and
    the token stops working for good, even if the owner returns with a new membership. `consented`
    says whether the owner issued it, or ran the command that did. `issued_by` names the issuer as
    it was then; it is empty if no entry names one. A service account's token has no owner. An
    access token of OAuth belongs to a `connection`, whose scopes it has, and goes with it.
    A token that renews another is of its `line`: the id of the line's first token, which is the
    principal of all of them; empty for the first one itself.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, editable=False)
    line = models.CharField(
        max_length=ID_LENGTH, db_index=True, editable=False, default="", db_default=""
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="tokens")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="tokens"
    )
    service_account = models.ForeignKey(
        ServiceAccount, null=True, on_delete=models.PROTECT, related_name="tokens"
    )
    issued_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    consented = models.BooleanField(default=False, db_default=False)
    membership = models.ForeignKey(
        Membership, null=True, on_delete=models.SET_NULL, related_name="tokens"
    )
    connection = models.ForeignKey(
        "Connection", null=True, on_delete=models.CASCADE, related_name="tokens"
    )
    audience = models.CharField(
        max_length=8, choices=[(audience.value, audience.value) for audience in Audience]
    )
    name = models.CharField(max_length=100)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    scopes = models.JSONField(default=list)
    calls_per_minute = models.PositiveIntegerField(null=True, blank=True)
    concurrent_calls = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "identity_token"
        ordering = ("-created_at", "id")
        constraints = (
            models.CheckConstraint(
                condition=models.Q(owner__isnull=False, service_account=None)
                | models.Q(owner=None, service_account__isnull=False),
                name="identity_token_one_holder",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def principal_id(self) -> str:
        """The id of the first token of its line."""
        return self.line or self.id

    @property
    def without_consent(self) -> bool:
        """Whether it acts for a user who did not issue it."""
        return self.owner_id is not None and not self.consented


class StaffToken(models.Model):
    """A credential of platform staff for the API of the whole platform, with the rights of staff.

    It works as long as its owner is active and staff. A token of a tenant never has these rights.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="staff_tokens"
    )
    name = models.CharField(max_length=100)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    scopes = models.JSONField(default=list)
    issued_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "identity_staff_token"
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class IdempotencyKey(models.Model):
    """The response to a creation by the API, for requests that repeat its Idempotency-Key.

    `caller` is the credential's key, `request` the SHA-256 of what was requested. The row is written
    in the transaction of the creation, so one that failed leaves none. The body has no secret.
    """

    caller = models.CharField(max_length=64)
    key = models.CharField(max_length=255)
    request = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField(default=dict)
    body = models.TextField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "identity_idempotency_key"
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("caller", "key"), name="identity_idempotency_key_once"),
        )

    def __str__(self) -> str:
        return f"{self.key} of {self.caller}"


class OAuthClient(models.Model):
    """A program that users connect by signing in with a browser (RFC 6749 section 2).

    `id` is its `client_id`: the URL of its metadata document, or what registration made up
    (RFC 7591). `redirect_uris` are as it declared them. A document was read at `read_at`, and is
    read again after `fresh_until`; both are null for a registered client. All clients are public:
    none has a secret.
    """

    id = models.CharField(primary_key=True, max_length=CLIENT_ID_LENGTH, editable=False)
    name = models.CharField(max_length=100)
    redirect_uris = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True)
    fresh_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "identity_oauth_client"
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name

    @property
    def client_id(self) -> str:
        """Its id, under the name that oauthlib looks for."""
        return self.id

    @property
    def has_document(self) -> bool:
        """Whether its id is the URL of its metadata document."""
        return self.id.startswith("https://")

    @property
    def document_host(self) -> str:
        """The host of its metadata document, which vouches for it; empty if it registered itself."""
        return (urlsplit(self.id).hostname or "") if self.has_document else ""


class Connection(models.Model):
    """A client that a member let act for them in one tenant: the principal of its access tokens.

    There is one live connection of a client per membership. Refreshing, another consent and other
    scopes leave its id as it is, so that what waits for an answer goes on. Once ended, it stays
    ended: the next consent makes another one. `scopes` are those of the last consent.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="connections")
    client = models.ForeignKey(OAuthClient, on_delete=models.PROTECT, related_name="connections")
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    consented_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "identity_connection"
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("membership", "client"),
                condition=models.Q(ended_at=None),
                name="identity_connection_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.client_id} for {self.membership_id}"


class AuthorizationCode(models.Model):
    """What a member consented to, until the client redeems it (RFC 6749 section 4.1.2).

    `id` is the code's SHA-256 in hexadecimal. A redeemed code names its `connection`, and stays
    until it is pruned: if it is presented again, the connection ends.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="+")
    redirect_uri = models.TextField()
    code_challenge = models.CharField(max_length=128)
    scopes = models.JSONField()
    expires_at = models.DateTimeField(db_index=True)
    connection = models.ForeignKey(
        Connection, null=True, on_delete=models.CASCADE, related_name="+"
    )

    class Meta:
        db_table = "identity_authorization_code"
        ordering = ("id",)

    def __str__(self) -> str:
        return f"code of {self.client_id}"


class RefreshToken(models.Model):
    """A refresh token, used once (RFC 6749 section 6, RFC 9700 section 4.14.2).

    `id` is its SHA-256 in hexadecimal. Once used, at `used_at`, it has `answer`: what the client
    got for it, sealed under a key that only this token yields. A client that lost the answer, or
    asked twice at once, gets the same one again for a minute.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    connection = models.ForeignKey(
        Connection, on_delete=models.CASCADE, related_name="refresh_tokens"
    )
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)
    answer = models.BinaryField(null=True)

    class Meta:
        db_table = "identity_refresh_token"
        ordering = ("id",)

    def __str__(self) -> str:
        return f"refresh token of {self.connection_id}"


class ConnectionStep(models.Model):
    """The last time that a client took one step of connecting to a tenant (`oauth.connection_log`).

    `id` is a digest of the tenant, the person, the client and the step, so that a step taken again
    changes its row. `user` is the person for whom the client connects; null while that is unknown,
    and for a service account. `client` is the id of an OAuth client or of a token, empty while it
    is unknown, and `name` is the client's or the token's. `detail` says why a step failed.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    client = models.CharField(max_length=CLIENT_ID_LENGTH, blank=True)
    name = models.CharField(max_length=200, blank=True)
    step = models.CharField(max_length=30)
    detail = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        db_table = "identity_connection_step"
        ordering = ("-at", "id")
        indexes = (
            models.Index(fields=["tenant", "-at"], name="identity_step_tenant"),
            models.Index(fields=["at"], name="identity_step_at"),
        )

    def __str__(self) -> str:
        return f"{self.step} of {self.name}"


class AccountLink(models.Model):
    """A link by which a person chooses the password of an account, once (`account_links`).

    Only the SHA-256 of the link is stored. `tenant` is the tenant whose owner issued it; None if staff
    did. `ended_at` is None until it was used or replaced.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.PROTECT, related_name="+")
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    issuer = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    issued_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "identity_account_link"
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("user",),
                condition=models.Q(ended_at=None),
                name="identity_account_link_once",
            ),
        )

    def __str__(self) -> str:
        return f"link to the account {self.user_id}"


class SignInAttempts(models.Model):
    """The number of passwords tried under one key since its window began (`attempts`).

    `id` is a keyed digest: neither names nor addresses are stored. The times are the database's;
    `previous_at` is the attempt before the last one of the window, null if there was none.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    count = models.PositiveIntegerField()
    last_at = models.DateTimeField()
    previous_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "identity_sign_in_attempts"
        ordering = ("id",)
        verbose_name_plural = "sign-in attempts"

    def __str__(self) -> str:
        return f"{self.count} until {self.expires_at}"
