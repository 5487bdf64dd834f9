"""The metrics of the process: counts, durations, and the current numbers that packages register.

A closed set, so that every metric is documented in docs/observability.md. Packages count here where
things happen; `exposition` renders the metrics.
"""

from mcphost.observability import labels
from mcphost.observability.instruments import OTHER_LABEL, Metrics, Number

__all__ = ["Number", "measure", "metrics", "snapshot"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

metrics = Metrics()
measure = metrics.measure
snapshot = metrics.snapshot

# Requests to MCP endpoints.
requests = metrics.counter("requests", "Requests to MCP endpoints, counted when they begin.")
request_seconds = metrics.histograms(
    "request_duration_seconds",
    "From a request's headers to the end of its response, by method and status class.",
    _SECONDS,
    method=labels.METHODS,
    status=labels.STATUSES,
)
metrics.probed_gauge("requests_running", "Requests in progress.")
refusals = metrics.counters(
    "refusals", "Requests answered with an error.", code=tuple(labels.CODES.values())
)
streams_open = metrics.gauge("streams_open", "Open event streams.")
streams_cut = metrics.counter("streams_cut", "Streams closed because the client read too slowly.")
listeners_open = metrics.gauge(
    "listeners_open", "Open subscriptions/listen requests and GET streams of sessions."
)
sessions_displaced = metrics.counter(
    "sessions_displaced", "Sessions ended because their caller opened more than its limit."
)

# Rounds of tools, prompts and resources.
rounds = metrics.counter("rounds", "Rounds started.")
round_seconds = metrics.histograms(
    "round_duration_seconds",
    "Duration of rounds, without writing their records.",
    _SECONDS,
    kind=labels.KINDS,
    type=labels.PRIMITIVE_TYPES,
    outcome=labels.OUTCOMES,
)
metrics.probed_gauge("rounds_running", "Rounds in progress.")
rounds_shed = metrics.counters(
    "rounds_shed",
    "Rounds that ended after a step for the call to continue in another process, by reason.",
    reason=labels.SHED,
)
claims = metrics.counters("claims", "Attempts to claim a round, by result.", result=labels.CLAIMS)
metrics.probed_gauge("threads_busy", "Tool threads in use, including lost ones.")
metrics.probed_gauge("threads_idle", "Idle tool threads.")
metrics.probed_gauge("threads_lost", "Tool threads still running after their time limit.")

# Tasks.
tasks_created = metrics.counter("tasks_created", "Calls that became tasks.")
tasks_of_load = metrics.counter(
    "tasks_of_load",
    "Calls that became tasks and would have been refused for lack of a place or a thread.",
)
tasks_ended = metrics.counters(
    "tasks_ended", "Tasks that ended, by state; expired ones do not count.", state=labels.TASK_ENDS
)
tasks_taken_over = metrics.counter("tasks_taken_over", "Tasks freed from processes that died.")
task_rounds_retried = metrics.counter(
    "task_rounds_retried", "Rounds of tasks that failed and are run again."
)
metrics.probed_gauge("task_rounds_running", "Rounds of tasks in progress.")
tasks_working = metrics.gauge("tasks_working", "Tasks of all processes that work, as last counted.")
tasks_waiting = metrics.gauge("tasks_waiting", "Working tasks that wait for answers.")
tasks_due = metrics.gauge("tasks_due", "Working tasks that wait for a process.")

# The sandbox of scripts, and outgoing requests.
sandbox_jobs = metrics.counters(
    "sandbox_jobs",
    "Jobs of the sandbox, by what was done and how it ended.",
    work=labels.SANDBOX_JOBS,
    ended=labels.SANDBOX_OUTCOMES,
)
sandbox_wait_seconds = metrics.histograms(
    "sandbox_wait_seconds", "How long jobs waited for a worker, refused ones too.", _SECONDS
)
sandbox_workers_killed = metrics.counters(
    "sandbox_workers_killed",
    "Workers of the sandbox killed, by reason.",
    reason=labels.SANDBOX_KILLS,
)
metrics.probed_gauge("sandbox_workers_busy", "Workers of the sandbox that have a job.")
metrics.probed_gauge("sandbox_workers_idle", "Workers of the sandbox that wait for a job.")
metrics.probed_gauge("sandbox_waiting", "Jobs that wait for a worker of the sandbox.")
metrics.probed_gauge(
    "sandbox_own_users", "1 if workers of the sandbox have users of their own, else 0."
)
egress_requests = metrics.counters(
    "egress_requests", "Outgoing requests of tools, by what came of them.", response=labels.EGRESS
)

# Users.
passwords = metrics.counters("passwords", "Password checks, by result.", result=labels.PASSWORDS)

# Records.
records_written = metrics.counter("records_written", "Records committed.")
records_lost = metrics.counter("records_lost", "Records that could not be committed in time.")
records_refused = metrics.counter("records_refused", "Records that the database refused.")
commit_seconds = metrics.histograms(
    "commit_duration_seconds", "Duration of transactions that write records.", _SECONDS
)
commit_rows = metrics.histograms("commit_rows", "Records per transaction.", _ROWS)
metrics.probed_gauge("database_waiting", "Requests waiting for an unreachable database.")
metrics.probed_gauge("records_waiting", "Submissions waiting in the record writer's queue.")
metrics.probed_gauge(
    "summaries_lag_seconds", "How far lists and figures of calls are behind the record."
)
payloads_wrong = metrics.gauge(
    "payloads_wrong", "Payloads that are not what was recorded, as last verified."
)

# Traces.
spans_sent = metrics.counter("spans_sent", "Spans sent to the collector.")
spans_lost = metrics.counter("spans_lost", "Spans that could not be sent.")

# The process.
change_log_polls = metrics.counters(
    "change_log_polls", "Polls of the change log.", result=labels.POLLS
)
change_log_changes = metrics.counter("change_log_changes", "Changes read from the change log.")
change_log_gaps = metrics.counter(
    "change_log_gaps", "Gaps in the change log, after which caches were dropped."
)
metrics.probed_gauge("change_log_silent_seconds", "Seconds since the change log was last read.")
loop_blocks = metrics.counter("loop_blocks", "Times that the event loop was blocked.")
loop_blocked_seconds = metrics.counter(
    "loop_blocked_seconds", "Total time that the event loop was blocked."
)
metrics.probed_gauge("loop_lag_seconds", "How late the event loop runs what is due, smoothed.")
metrics.probed_gauge("loop_lag_limit_seconds", "The lag over which calls are shed; 0 is off.")
metrics.probed_gauge("overloaded", "1 while the event loop's lag is over its limit, else 0.")
metrics.probed_gauge(
    "shares_over",
    "Callers and tenants whose share of concurrent calls is exceeded in this process.",
)
metrics.probed_gauge(
    "shares_limit_seconds", "Seconds for which a share counts as exceeded; 0 is off."
)
metrics.probed_gauge("processes_free", "Other processes that serve and are not overloaded.")


def refused(code: int) -> None:
    """Count a response with the JSON-RPC error `code`."""
    refusals.add(labels.CODES.get(code, OTHER_LABEL))


def committed(rows: int, seconds: float) -> None:
    """Count a transaction that committed `rows` records in `seconds`."""
    records_written.add(rows)
    commit_rows.observe(rows)
    commit_seconds.observe(seconds)


def request_ended(seconds: float, method: str, status: int) -> None:
    """Count a request that ended with an HTTP `status`; 0 if the client had disconnected."""
    request_seconds.observe(seconds, method, labels.STATUSES[status // 100])


measure("requests_running", lambda: requests.value - request_seconds.count())
measure("rounds_running", lambda: rounds.value - round_seconds.count())
