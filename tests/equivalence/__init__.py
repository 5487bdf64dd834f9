"""Compare the path of a `tools/call` with recorded transcripts, byte for byte.

A scenario (`requests`, `tools`, `sessions`, `interruptions`) drives the real ASGI application in this
process, with a clock that only the scenario moves and ids that are counted. Its transcript has what
can be observed from outside: the responses (status, headers in order, body or events), the records
as written with their opened payloads, the changes of the metrics, and the log lines. It must equal
the transcript in `transcripts/`, so code on the path can be rearranged without fear.

After an intended change of behaviour record again, and review the difference in git:

    python -m tests.equivalence --record                     # all scenarios
    python -m tests.equivalence --record -k disconnects      # some, chosen as pytest does

What a transcript does not show as it is (`naming`):

- Ids have names or are numbered in the order of their first appearance, because those of tenants,
  tokens and processes are random. Equal ids stay equal.
- Sealed tokens (`requestState`, session ids, ids of input requests) are opened: their bytes are
  random, their content is not. The length of a body shows the length of its token.
- Of a traceback only the last line is shown: the other lines name the functions that may change.
- Metrics of the change log, the event loop's watch and the size of commits are left out: they
  depend on threads that run beside the path.

The transcripts are of SQLite. On PostgreSQL the path differs in the writer's statements only, which
the tests of `audit` cover.
"""
