"""The feed's table and the one row that numbers it."""

import uuid

from django.db import models


class Change(models.Model):
    """Something that other processes must hear about. `seq` order is commit order, without holes."""

    seq = models.BigIntegerField(primary_key=True)
    tenant = models.UUIDField(null=True)
    what = models.TextField()
    object_id = models.TextField(default="", blank=True)
    at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "feed_change"
        ordering = ["seq"]

    def __str__(self) -> str:
        return f"{self.seq} {self.what} {self.object_id}".rstrip()


class Counter(models.Model):
    """The last `seq` handed out: one row, and the lock that makes commit order of sequence order.

    `epoch` is drawn when the row is made, so that a reader notices a counter that began again
    (a database put back from a copy, an emptied table) although its numbers look familiar.
    """

    id = models.SmallIntegerField(primary_key=True)
    value = models.BigIntegerField()
    epoch = models.UUIDField(default=uuid.uuid4)

    class Meta:
        db_table = "feed_counter"
        ordering = ["id"]

    def __str__(self) -> str:
        return str(self.value)


class Node(models.Model):
    """A process that serves. Times are the database's, so that clocks of machines do not matter."""

    id = models.UUIDField(primary_key=True)
    name = models.TextField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)
    draining = models.BooleanField(default=False)

    class Meta:
        db_table = "feed_node"
        ordering = ["started_at", "name"]

    def __str__(self) -> str:
        return self.name
