"""Entries, which are kept for good, their payloads, which can be erased, and summaries made of entries."""

from typing import Any, NoReturn
from uuid import UUID

from django.db import models


class AppendOnlyError(RuntimeError):
    """Code tried to change or delete an entry."""

    def __init__(self) -> None:
        super().__init__("entries are never changed or deleted")


class EntryQuerySet(models.QuerySet["Entry"]):
    """Refuses queries that change or delete entries, with AppendOnlyError."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError

    def delete(self) -> NoReturn:
        raise AppendOnlyError


class Entry(models.Model):
    """One recorded action, with ids and names as they were at the time. No foreign keys.

    The entries of a round share (`call`, `round`): `round.started` if its tool is not read-only,
    and `round.finished`. Verbs (actions of users and of the platform) have no call. Ids are made by
    `records.new_id` and sort entries by time, so no index is needed for that. `at` is UTC,
    `duration_us` in microseconds, sizes in bytes. `commitment` is an HMAC over the payload under a
    random salt, which is encrypted together with the payload.
    """

    id = models.UUIDField(primary_key=True)
    at = models.DateTimeField()
    tenant = models.UUIDField(null=True)
    call = models.UUIDField(null=True)
    http_request_id = models.UUIDField(null=True)
    round = models.BigIntegerField(null=True)
    duration_us = models.BigIntegerField(null=True)
    bytes_in = models.BigIntegerField(null=True)
    bytes_out = models.BigIntegerField(null=True)
    action = models.TextField()
    actor_kind = models.TextField()
    actor_id = models.TextField(default="", blank=True)
    actor_label = models.TextField(default="", blank=True)
    token_id = models.TextField(default="", blank=True)
    method = models.TextField(default="", blank=True)
    target = models.TextField(default="", blank=True)
    target_version = models.TextField(default="", blank=True)
    revision = models.TextField(default="", blank=True)
    era = models.TextField(default="", blank=True)
    delivery = models.TextField(default="", blank=True)
    client_name = models.TextField(default="", blank=True)
    client_version = models.TextField(default="", blank=True)
    outcome = models.TextField(default="", blank=True)
    reason = models.TextField(default="", blank=True)
    source = models.TextField(default="", blank=True)
    trace_id = models.TextField(default="", blank=True)
    facts = models.JSONField(default=dict, blank=True)
    commitment = models.BinaryField(null=True)

    objects = EntryQuerySet.as_manager()

    class Meta:
        db_table = "audit_entry"
        ordering = ["-id"]
        base_manager_name = "objects"
        verbose_name_plural = "entries"
        # Each index slows down every call: no more than these. Call ids are made by `records.new_id` too,
        # since each random one would touch another page of the index. Partial indexes (asking, refused,
        # verbs) cost other entries nothing. SQLite has no statistics: without an index that begins with
        # the tenant it would read all entries of the tenant.
        indexes = [
            models.Index(fields=["tenant", "id"], name="audit_entry_tenant"),
            models.Index(
                fields=["call"], name="audit_entry_call", condition=models.Q(call__isnull=False)
            ),
            models.Index(
                fields=["id"], name="audit_entry_verbs", condition=models.Q(call__isnull=True)
            ),
            models.Index(
                fields=["id"],
                name="audit_entry_asking",
                condition=models.Q(outcome="input_required"),
            ),
            models.Index(
                fields=["id"],
                name="audit_entry_refused",
                condition=models.Q(
                    action__in=["state.refused", "answer.refused", "message.refused"]
                ),
            ),
            models.Index(
                fields=["tenant", "id"],
                name="audit_entry_own_refused",
                condition=models.Q(
                    action__in=["state.refused", "answer.refused", "message.refused"]
                ),
            ),
            models.Index(
                fields=["tenant", "id"],
                name="audit_entry_own_verbs",
                condition=models.Q(call__isnull=True),
            ),
            models.Index(
                fields=["action", "id"],
                name="audit_entry_actions",
                condition=models.Q(call__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target}".rstrip()

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError


class Payload(models.Model):
    """The content of an entry, such as a result, encrypted under the tenant's payload key.

    Erasing it empties `ciphertext` and sets `erased_at`: a tombstone. The entry's commitment stays.
    """

    entry = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    key_id = models.TextField()
    ciphertext = models.BinaryField()
    erased_at = models.DateTimeField(null=True)
    erased_by = models.TextField(default="", blank=True)

    class Meta:
        db_table = "audit_payload"
        ordering = ["entry"]

    def __str__(self) -> str:
        return str(self.entry)


class Verification(models.Model):
    """How far payloads are verified against the commitments of their entries: one row (`verification`).

    A pass goes through all entries, from the oldest: `position` is the last entry that it has read, at
    `read_at`; `begun_at` is when it began, `payloads` how many it has verified, `wrong_now` how many of
    them are not what was recorded. `ended_at` and `all_payloads` are those of the last pass that has ended.
    `wrong` and `first_wrong` (the first entry with a wrong payload) are kept until a later pass ends without any.
    """

    position = models.UUIDField(default=UUID(int=0))
    begun_at = models.DateTimeField()
    read_at = models.DateTimeField()
    payloads = models.BigIntegerField(default=0)
    wrong_now = models.BigIntegerField(default=0)
    wrong = models.BigIntegerField(default=0)
    first_wrong = models.UUIDField(null=True)
    ended_at = models.DateTimeField(null=True)
    all_payloads = models.BigIntegerField(default=0)

    class Meta:
        db_table = "audit_verification"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.position} {self.read_at}"


class CallSummary(models.Model):
    """The projection of one call (`summaries.projection`): built from its entries, and rebuilt after each.

    `last` is the id of the call's newest entry. `expires_at` and `sealed_by` are set while the call waits for
    an answer. `entries` is the number of entries that the row was built from. For calls that asked a question,
    `details` has the counts that roll-ups need.
    """

    call = models.UUIDField(primary_key=True)
    tenant = models.UUIDField(null=True)
    last = models.UUIDField()
    at = models.DateTimeField()
    first_at = models.DateTimeField()
    target = models.TextField(blank=True)
    method = models.TextField(blank=True)
    actor_kind = models.TextField()
    actor_id = models.TextField(blank=True)
    caller = models.TextField(blank=True)
    token_id = models.TextField(blank=True)
    client_name = models.TextField(blank=True)
    delivery = models.TextField(blank=True)
    trace_id = models.TextField(null=True)  # noqa: DJ001 - see the index
    state = models.TextField()
    is_error = models.BooleanField()
    reason = models.TextField(blank=True)
    duration_us = models.BigIntegerField(null=True)
    waited_us = models.BigIntegerField(null=True)
    expires_at = models.DateTimeField(null=True)
    sealed_by = models.TextField(blank=True)
    entries = models.IntegerField()
    asked = models.IntegerField()
    refused = models.IntegerField()
    details = models.JSONField(null=True)

    class Meta:
        db_table = "audit_call"
        ordering = ["-last"]
        # Each index costs every call that has a value in it. What else lists are filtered by is compared
        # with the rows of the hours that have such calls (`summaries.search`).
        indexes = [
            models.Index(fields=["last"], name="audit_call_last"),
            models.Index(fields=["tenant", "last"], name="audit_call_tenant"),
            models.Index(
                fields=["trace_id", "last"],
                name="audit_call_trace",
                condition=models.Q(trace_id__isnull=False),
            ),
            models.Index(
                fields=["expires_at"],
                name="audit_call_waiting",
                condition=models.Q(expires_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return str(self.call)


class ChangedCalls(models.Model):
    """The calls whose rows one transaction wrote: their ids, as JSON by tenant. The newest are kept.

    The numbers have no gaps, so that a reader notices which are no longer there.
    """

    number = models.BigIntegerField(primary_key=True)
    calls = models.TextField()

    class Meta:
        db_table = "audit_call_change"
        ordering = ["number"]

    def __str__(self) -> str:
        return str(self.pk)


class CallMark(models.Model):
    """A rare property to find calls by: a state other than `complete`, a failure, input requests, an outcome
    of answers. `last` is that of the call."""

    mark = models.TextField()
    tenant = models.UUIDField(null=True)
    last = models.UUIDField()
    call = models.UUIDField()

    class Meta:
        db_table = "audit_call_mark"
        ordering = ["-last"]
        indexes = [
            models.Index(fields=["mark", "last"], name="audit_mark_last"),
            models.Index(fields=["tenant", "mark", "last"], name="audit_mark_tenant"),
            models.Index(fields=["call"], name="audit_mark_call"),
        ]

    def __str__(self) -> str:
        return f"{self.mark} {self.call}"


class QuestionSummary(models.Model):
    """One question that a call asked, and what became of it (`summaries.questions`): made of entries.

    `id` is that of the entry that asked it; `answer` that of the first answer, which `answered_by` gave.
    `state` is its outcome in the timeline of the call, and `last` the entry that determines the state of the call.
    `ran` is the outcome of the run that used the answer.
    """

    id = models.UUIDField(primary_key=True)
    at = models.DateTimeField()
    tenant = models.UUIDField(null=True)
    call = models.UUIDField()
    last = models.UUIDField()
    round = models.BigIntegerField()
    key = models.TextField(blank=True)
    method = models.TextField(blank=True)
    mode = models.TextField(blank=True)
    target = models.TextField(blank=True)
    target_version = models.TextField(blank=True)
    actor_kind = models.TextField()
    actor_id = models.TextField(blank=True)
    caller = models.TextField(blank=True)
    token_id = models.TextField(blank=True)
    client_name = models.TextField(blank=True)
    client_version = models.TextField(blank=True)
    delivery = models.TextField(blank=True)
    state = models.TextField()
    expires_at = models.DateTimeField(null=True)
    answer = models.UUIDField(null=True)
    answered_at = models.DateTimeField(null=True)
    answered_by = models.TextField(blank=True)
    evidence = models.TextField(blank=True)
    took_ms = models.BigIntegerField(null=True)
    ran = models.TextField(blank=True)

    class Meta:
        db_table = "audit_question"
        ordering = ["-id"]
        # Rows are written by the process that follows the record, and only for calls that asked: no call
        # waits for these indexes. Each is one filter of the list of questions, in the order of the list.
        indexes = [
            models.Index(fields=["call"], name="audit_question_call"),
            models.Index(fields=["tenant", "id"], name="audit_question_tenant"),
            models.Index(fields=["state", "id"], name="audit_question_state"),
            models.Index(fields=["tenant", "state", "id"], name="audit_question_own_state"),
            models.Index(fields=["tenant", "target", "id"], name="audit_question_target"),
            models.Index(fields=["tenant", "caller", "id"], name="audit_question_caller"),
            models.Index(fields=["tenant", "client_name", "id"], name="audit_question_client"),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.state}"


_TOP = [
    "dimension", "resolution", "bucket", "tenant", "name", "client", "calls", "errors", "asked",
]  # fmt: skip


class RollUp(models.Model):
    """Figures of the calls of one tenant in one bucket of time, by target, client or caller.

    The nil UUID is the whole platform. `bucket` counts parts of minutes, minutes, hours or days since 1970, by
    `resolution`. `latency`, `answering` (histograms) and `endings` are counts as JSON.
    """

    tenant = models.UUIDField()
    dimension = models.SmallIntegerField()
    resolution = models.SmallIntegerField()
    bucket = models.BigIntegerField()
    name = models.TextField(blank=True)
    client = models.TextField(blank=True)
    calls = models.BigIntegerField()
    errors = models.BigIntegerField()
    declined = models.BigIntegerField(default=0)
    asked = models.BigIntegerField()
    last_at = models.DateTimeField(null=True)
    latency = models.TextField()
    answering = models.TextField()
    endings = models.TextField()

    class Meta:
        db_table = "audit_rollup"
        ordering = ["bucket"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "dimension", "resolution", "bucket", "name", "client"],
                name="audit_rollup_bucket",
            )
        ]
        indexes = [
            models.Index(
                fields=_TOP,  # all that lists of the most used names need
                name="audit_rollup_top",
            ),
            # In which buckets and tenants a name is: without the two, PostgreSQL reads all rows of all tenants.
            models.Index(
                fields=["dimension", "resolution", "name", "bucket", "tenant"],
                name="audit_rollup_named",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant} {self.bucket} {self.name}"


class RollUpDue(models.Model):
    """A bucket whose rows are to be rebuilt, because calls in it changed; `mark` grows with each change."""

    resolution = models.SmallIntegerField()
    bucket = models.BigIntegerField()
    mark = models.BigIntegerField()

    class Meta:
        db_table = "audit_rollup_due"
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["resolution", "bucket"], name="audit_rollup_due_bucket")
        ]

    def __str__(self) -> str:
        return f"{self.resolution} {self.bucket}"


class Following(models.Model):
    """How far the summaries are, and which process writes them: one row (`summaries.follower`).

    `position` and `seen` are how far the follower has read: on PostgreSQL the oldest transaction that could
    still write, a snapshot, and the last `page` of the table; on SQLite a rowid (`summaries.changed_calls`).
    `checked` and `checked_seen` are the same for the search in all recent entries, last done at `checked_at`.
    Entries with ids from `missing_from` to below `missing_until` are still to be read, backwards. All entries
    committed until `current_at` have been read. `changes` is the last number of `ChangedCalls`, `losses` the
    number of lost calls that were looked at, `pruned_at` when old rows were last deleted. Buckets have rows up
    to `open_minute`, `open_hour` and `open_day` (`summaries.rollups`). `folds` counts how often the rows of a
    bucket were written, the last time at `folded_at`. `owner` follows until `leased_until`.
    """

    owner = models.UUIDField(null=True)
    leased_until = models.DateTimeField(null=True)
    changes = models.BigIntegerField(default=0)
    position = models.BigIntegerField(default=0)
    seen = models.TextField(default="", blank=True)
    page = models.BigIntegerField(default=0)
    checked = models.BigIntegerField(default=0)
    checked_seen = models.TextField(default="", blank=True)
    checked_at = models.DateTimeField(null=True)
    missing_from = models.UUIDField(null=True)
    missing_until = models.UUIDField(null=True)
    losses = models.BigIntegerField(default=0)
    current_at = models.DateTimeField(null=True)
    pruned_at = models.DateTimeField(null=True)
    open_minute = models.BigIntegerField(default=0)
    open_hour = models.BigIntegerField(default=0)
    open_day = models.BigIntegerField(default=0)
    folds = models.BigIntegerField(default=0)
    folded_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "audit_following"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.position} {self.current_at}"
