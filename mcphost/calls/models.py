"""Rows of calls in progress, deleted after they expire."""

from django.db import models
from django.db.models.functions import Now

from mcphost.calls.states import CallState, ClaimState, QuestionState


class Claim(models.Model):
    """The claim of one round of a call: one process runs it.

    `round` counts the rounds that used answers, or needed none: a round that only asks again passes
    its number on (`serving.request_state.State.claim`). `answers` is the digest of the answers that
    the round uses: other ones are refused for good; of a cancelled call, `claims.CANCELLED`. `owner` is the process (`feed.nodes`) that runs
    it, `nonce` is new each time that a process takes it, `epoch` counts how often that was.
    `outcome` is opaque here, and empty until the round ends. Times are the database's.

    `function` and `request` are empty unless the round was left to another process: it has the
    function, and runs the round from the request, which is sealed.
    """

    pk = models.CompositePrimaryKey("call", "round")
    call = models.UUIDField()
    round = models.BigIntegerField()
    tenant = models.UUIDField()
    answers = models.TextField()
    nonce = models.TextField()
    owner = models.UUIDField()
    epoch = models.BigIntegerField()
    state = models.TextField(choices=ClaimState.choices)
    taken_at = models.DateTimeField()
    outcome = models.TextField(default="", blank=True)
    expires_at = models.DateTimeField(db_index=True)
    function = models.TextField(default="", db_default="", blank=True)
    request = models.TextField(default="", db_default="", blank=True)

    class Meta:
        db_table = "calls_claim"
        ordering = ["call", "round"]
        indexes = [
            models.Index(
                fields=["function", "taken_at"],
                name="calls_claim_left",
                condition=~models.Q(function="") & ~models.Q(state=ClaimState.FINISHED),
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=ClaimState.values), name="calls_claim_state_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.call} {self.round} ({self.state})"


class StatePart(models.Model):
    """Large values of a stateless call that are not in its request state, sealed.

    `size` is the length of `content`.
    """

    id = models.UUIDField(primary_key=True)
    tenant = models.UUIDField(db_index=True)
    call = models.UUIDField()
    size = models.BigIntegerField()
    content = models.TextField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_statepart"
        ordering = ["expires_at", "id"]

    def __str__(self) -> str:
        return f"{self.call} {self.id}"


class CancelledCall(models.Model):
    """A call that a user cancelled while it waited for input. `reason` is what its caller is told."""

    call = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    reason = models.TextField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_cancelledcall"
        ordering = ["expires_at", "call"]

    def __str__(self) -> str:
        return str(self.call)


class OpenedLink(models.Model):
    """A link of a call that was confirmed or called back: what waits under that key is done."""

    tenant = models.UUIDField()
    call = models.UUIDField()
    key = models.CharField(max_length=64)
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_openedlink"
        ordering = ["call", "key"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "call", "key"], name="calls_openedlink_once")
        ]

    def __str__(self) -> str:
        return f"{self.call} {self.key}"


class Session(models.Model):
    """A session of a client of a session-based revision. Its `Mcp-Session-Id` is a sealed token.

    `principal_key` binds it to its principal. Sessions with the same `holder` are counted together: it is a
    digest of the credential, or, without one, of tenant and client address. `client` is the
    client's data as JSON: name, version, capabilities. `used_at` is when a process last wrote that
    it was used.
    """

    id = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    principal_key = models.TextField()
    holder = models.CharField(max_length=64, default="", db_default="", blank=True)
    revision = models.CharField(max_length=16)
    client = models.JSONField(default=dict)
    log_level = models.CharField(max_length=16, default="", blank=True)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_session"
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(
                fields=["holder", "used_at"],
                name="calls_session_open",
                condition=models.Q(ended_at=None),
            )
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.revision})"


class SessionTopic(models.Model):
    """A resource that a session is subscribed to (`resources/subscribe`), by its URI."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="topics")
    uri = models.TextField()

    class Meta:
        db_table = "calls_sessiontopic"
        ordering = ["session_id", "uri"]
        constraints = [
            models.UniqueConstraint(fields=["session", "uri"], name="calls_sessiontopic_once")
        ]

    def __str__(self) -> str:
        return self.uri


class GetStream(models.Model):
    """An open GET stream of a session. `owner` is the process (`feed.nodes`) that serves it."""

    id = models.UUIDField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="get_streams")
    owner = models.UUIDField(db_index=True)
    opened_at = models.DateTimeField()

    class Meta:
        db_table = "calls_getstream"
        ordering = ["opened_at", "id"]

    def __str__(self) -> str:
        return str(self.id)


class Stream(models.Model):
    """The event stream of one POST of a session, from its first event on.

    `ended_at` is when its last event was written.
    """

    id = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    session = models.UUIDField(db_index=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_stream"
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return str(self.id)


class StreamEvent(models.Model):
    """One message of a stream, numbered from 1 and sealed, so that any process can replay it."""

    pk = models.CompositePrimaryKey("stream", "number")
    stream = models.UUIDField()
    number = models.BigIntegerField()
    tenant = models.UUIDField()
    message = models.TextField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_streamevent"
        ordering = ["stream", "number"]

    def __str__(self) -> str:
        return f"{self.stream} {self.number}"


class StreamedCall(models.Model):
    """A call of a session that is answered on a stream. Its owner process runs its rounds.

    `request` and `journal` (from which the next round goes on) are sealed, and empty once the call is
    over. `owner` is the process (`feed.nodes`) that has it, `epoch` counts how often it was taken.
    """

    id = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    session = models.UUIDField()
    stream = models.UUIDField()
    request_id = models.TextField()
    request = models.TextField()
    journal = models.TextField(default="", blank=True)
    round = models.BigIntegerField(default=1)
    state = models.TextField(choices=CallState.choices)
    owner = models.UUIDField()
    epoch = models.BigIntegerField(default=1)
    taken_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_streamedcall"
        ordering = ["taken_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=CallState.values), name="calls_streamedcall_known"
            )
        ]
        indexes = [
            models.Index(fields=["session", "request_id"], name="calls_streamedcall_request"),
            models.Index(
                fields=["owner"],
                name="calls_streamedcall_open",
                condition=~models.Q(request=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class OpenQuestion(models.Model):
    """A question that was sent on the stream of its call, and its answer.

    `key` is the author's, or that of a task's input request; `digest` identifies the question, and is
    the question's id if it is a task's; `round` is the round that asked it.
    `message` (the id of the request that was sent) and `answer` (sealed) are empty once the call is
    over.
    """

    id = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    session = models.UUIDField()
    call = models.UUIDField(db_index=True)
    key = models.CharField(max_length=80)
    digest = models.CharField(max_length=64)
    round = models.BigIntegerField()
    method = models.CharField(max_length=64)
    message = models.TextField()
    state = models.TextField(choices=QuestionState.choices)
    answer = models.TextField(default="", blank=True)
    asked_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "calls_openquestion"
        ordering = ["asked_at", "id"]
        indexes = [
            models.Index(
                fields=["digest"],
                name="calls_openquestion_asked",
                condition=models.Q(state="open"),
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=QuestionState.values), name="calls_openquestion_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.key} ({self.state})"
