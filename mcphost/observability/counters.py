"""Every number about the process, in one place: how often, how long, how many right now.

A closed set, so that a number that nobody can look up in docs/observability.md does not exist. Rooms
count here where things happen; `exposition` shows it.
"""

from mcphost.observability import labels
from mcphost.observability.instruments import OTHER, Metrics, Number

__all__ = ["Number", "measure", "metrics", "snapshot"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

metrics = Metrics()
measure = metrics.measure
snapshot = metrics.snapshot

# Requests to MCP endpoints.
requests = metrics.counter("requests", "Requests to MCP endpoints that have begun.")
request_seconds = metrics.histograms(
    "request_duration_seconds",
    "From the headers of a request to the end of its answer, by method and by status class.",
    _SECONDS,
    method=labels.METHODS,
    status=labels.STATUSES,
)
metrics.asked("requests_running", "Requests that have begun and not ended.")
refusals = metrics.counters(
    "refusals", "Requests answered with an error.", code=tuple(labels.CODES.values())
)
streams_open = metrics.gauge("streams_open", "Event streams open.")
streams_cut = metrics.counter("streams_cut", "Streams cut because their client did not read.")
listeners_open = metrics.gauge(
    "listeners_open", "Streams of subscriptions/listen and of GET in sessions open."
)

# Rounds of tools, prompts and resources.
rounds = metrics.counter("rounds", "Rounds that have begun.")
round_seconds = metrics.histograms(
    "round_duration_seconds",
    "How long rounds ran, without their records.",
    _SECONDS,
    kind=labels.KINDS,
    sort=labels.SORTS,
    outcome=labels.OUTCOMES,
)
metrics.asked("rounds_running", "Rounds that have begun and not ended.")
claims = metrics.counters(
    "claims", "Rounds that were claimed, or were another's.", result=labels.CLAIMS
)
metrics.asked("threads_busy", "Threads of tools in use, lost ones among them.")
metrics.asked("threads_idle", "Threads of tools that wait for work.")
metrics.asked("threads_lost", "Threads of tools that did not end in time and still run.")

# Records.
records_written = metrics.counter("records_written", "Records committed.")
records_lost = metrics.counter("records_lost", "Records that could not be committed in time.")
records_refused = metrics.counter("records_refused", "Records that the database refused.")
commit_seconds = metrics.histograms(
    "commit_duration_seconds", "How long transactions with records took.", _SECONDS
)
commit_rows = metrics.histograms("commit_rows", "Records in one transaction.", _ROWS)
metrics.asked("records_waiting", "Submissions of records that the writer has not taken up yet.")

# Traces.
spans_sent = metrics.counter("spans_sent", "Spans that the collector took.")
spans_lost = metrics.counter("spans_lost", "Spans that could not be sent.")

# The process.
feed_polls = metrics.counters("feed_polls", "Looks at the change feed.", result=labels.POLLS)
feed_changes = metrics.counter("feed_changes", "Changes read from the feed.")
feed_gaps = metrics.counter("feed_gaps", "Gaps in the feed, after which caches were dropped.")
metrics.asked("feed_silent_seconds", "Since the feed was last read.")
loop_blocks = metrics.counter("loop_blocks", "Times that the event loop stood still.")
loop_blocked_seconds = metrics.counter(
    "loop_blocked_seconds", "How long the event loop stood still, in all."
)


def refused(code: int) -> None:
    """Count an answer with the error `code` of JSON-RPC."""
    refusals.add(labels.CODES.get(code, OTHER))


def committed(rows: int, seconds: float) -> None:
    """Count a transaction that committed so many records."""
    records_written.add(rows)
    commit_rows.observe(rows)
    commit_seconds.observe(seconds)


def request_ended(seconds: float, method: str, status: int) -> None:
    """Count a request whose answer had an HTTP `status`; 0 when nobody was there for one."""
    request_seconds.observe(seconds, method, labels.STATUSES[status // 100])


measure("requests_running", lambda: requests.value - request_seconds.count())
measure("rounds_running", lambda: rounds.value - round_seconds.count())
