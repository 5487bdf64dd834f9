"""Entries, which are kept for good, and their payloads, which can be erased."""

from typing import Any, NoReturn

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
    leg = models.UUIDField(null=True)
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
        # Each index slows down every call: no more than these. Call ids should be made by
        # `records.new_id` too: each random one touches another page of the index. The three for
        # rare entries (asking, refused, actions) cost other entries nothing.
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
