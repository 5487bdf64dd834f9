"""The tables of the change log, its counter, the serving processes and their functions."""

import uuid

from django.db import models


class Change(models.Model):
    """A change announced to all processes. `seq` order is commit order, without holes."""

    seq = models.BigIntegerField(primary_key=True)
    tenant = models.UUIDField(null=True)
    name = models.TextField()
    object_id = models.TextField(default="", blank=True)
    at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "feed_change"
        ordering = ["seq"]

    def __str__(self) -> str:
        return f"{self.seq} {self.name} {self.object_id}".rstrip()


class Counter(models.Model):
    """The last assigned `seq`: one row. Its lock makes sequence order the commit order.

    `epoch` is random and set when the row is created. By it a reader notices that the counter began
    anew (a restored database, an emptied table), although the numbers overlap.
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
    """A serving process. Times are the database's, so that the clocks of machines do not matter.

    `facts` is what the process reports of itself; null for a process of a version without them.
    """

    id = models.UUIDField(primary_key=True)
    name = models.TextField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)
    draining = models.BooleanField(default=False)
    overloaded = models.BooleanField(default=False, db_default=False)
    facts = models.JSONField(null=True)

    class Meta:
        db_table = "feed_node"
        ordering = ["started_at", "name"]

    def __str__(self) -> str:
        return self.name


class NodeFunctions(models.Model):
    """The functions that a serving process has loaded: what their code declares, by reference.

    Written once, at the start of the process: a table of its own, because the heartbeat writes the
    row of the process every few seconds. Without a constraint of the database, because processes of
    the version before delete rows of `Node` alone.
    """

    node = models.OneToOneField(
        Node,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="functions",
        db_constraint=False,
    )
    declared = models.JSONField()

    class Meta:
        db_table = "feed_node_functions"
        ordering = ["node"]

    def __str__(self) -> str:
        return f"{self.node_id}: {len(self.declared)} functions"
