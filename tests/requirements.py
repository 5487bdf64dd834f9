"""The behaviours that the server promises, each with the specification's page that requires it.

A test that proves one is marked `@pytest.mark.requirement("<id>")`; tests/test_requirements.py
fails for an entry without a test and for a mark without an entry. Behaviour of later parts of the
server is added when these are served. The pages are those of
`modelcontextprotocol.io/specification/<revision>/`.
"""

from dataclasses import dataclass
from typing import Literal

REVISION = "2026-07-28"
SESSIONS = "2025-11-25"
"""The latest session-based revision, which is quoted for all of them."""

SITE = "https://modelcontextprotocol.io/specification"
TASKS_SITE = "https://github.com/modelcontextprotocol/ext-tasks/tree/main/specification"
"""The extension io.modelcontextprotocol/tasks, which has one page, and no revision but the draft."""

Era = Literal["modern", "legacy"]


@dataclass(frozen=True)
class Requirement:
    """One promised behaviour: a summary of the specification, and its page and section."""

    id: str
    section: str
    text: str
    era: Era = "modern"
    revision: str = REVISION
    site: str = SITE

    @property
    def link(self) -> str:
        return f"{self.site}/{self.revision}/{self.section}"


_BASE = "basic/index"
_VERSIONS = "basic/versioning"
_HTTP = "basic/transports/streamable-http"
_AUTH = "basic/authorization/index"
_DISCOVERY = "basic/authorization/authorization-server-discovery"
_DISCOVER = "server/discover"
_TOOLS = "server/tools"
_PROMPTS = "server/prompts"
_RESOURCES = "server/resources"
_COMPLETION = "server/utilities/completion"
_CACHING = "server/utilities/caching"
_PAGES = "server/utilities/pagination"
_LOGGING = "server/utilities/logging"
_PROGRESS = "basic/patterns/progress"
_CANCEL = "basic/patterns/cancellation"
_LISTEN = "basic/patterns/subscriptions"
_MRTR = "basic/patterns/mrtr"
_ELICIT = "client/elicitation"
_SAMPLING = "client/sampling"

# (id, page, section, what it says)
_ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # Messages.
    ("base.request-id", _BASE, "requests", "an id is a string or an integer and never null"),
    ("base.response-id", _BASE, "result-responses", "a result carries the id of its request"),
    ("base.error-id", _BASE, "error-responses", "an error carries the id wherever one could be read"),
    ("base.error-shape", _BASE, "error-responses", "an error has an integer code and a message"),
    ("base.error-codes", _BASE, "error-codes", "no reserved code but the defined ones is emitted"),
    ("base.own-error-codes", _BASE, "error-codes", "codes of our own lie outside the reserved range"),
    ("base.result-type", _BASE, "result-responses", "every result has a resultType"),
    ("base.notification-unanswered", _BASE, "notifications", "a notification gets no response"),
    ("base.stateless", _BASE, "statelessness", "no answer depends on an earlier request"),
    ("base.meta-required", _BASE, "meta", "a request without the required _meta is -32602, HTTP 400"),
    ("base.client-info-optional", _BASE, "meta", "a request may leave clientInfo out"),
    ("base.undeclared-capability", _BASE, "meta", "what needs an undeclared capability is -32021, HTTP 400"),
    ("base.server-info", _BASE, "meta", "results name the server in _meta"),
    ("base.trace-context", _BASE, "meta", "a valid traceparent is taken up, another is ignored"),
    # JSON Schema.
    ("schema.dialect-2020-12", _BASE, "schema-dialect", "without $schema a schema is read as 2020-12"),
    ("schema.other-dialects", _BASE, "schema-dialect", "draft-07 is read by its own rules; others are refused by name"),
    ("schema.valid", _BASE, "schema-validation", "a schema that is invalid in its dialect is refused"),
    ("schema.no-network-reference", _BASE, "ref-resolution", "no $ref is ever fetched"),
    ("schema.bounded", _BASE, "composition-keyword-resource-use", "depth, size and subschemas are bounded"),
    # Versions and discovery.
    ("versions.unsupported", _VERSIONS, "protocol-version-negotiation", "an unknown version is -32022 with the supported ones"),
    ("versions.named-to-legacy-clients", _VERSIONS, "backward-compatibility-with-initialization-based-versions", "initialize is answered with the versions that are supported"),
    ("discover.implemented", _DISCOVER, "discoverresult", "server/discover tells versions and capabilities"),
    ("discover.server-info", _DISCOVER, "discoverresult", "server/discover names the server"),
    ("discover.instructions", _DISCOVER, "discoverresult", "server/discover carries the tenant's instructions"),
    ("discover.same-versions", _DISCOVER, "discoverresult", "an error names no version that discover does not"),
    # HTTP.
    ("http.one-endpoint", _HTTP, "security-endpoint", "one path answers POST; other methods are 405"),
    ("http.origin", _HTTP, "security-endpoint", "a foreign Origin is 403"),
    ("http.host", _HTTP, "security-endpoint", "a foreign Host is 403 (DNS rebinding)"),
    ("http.loopback-by-default", _HTTP, "security-endpoint", "only localhost is bound by default"),
    ("http.authentication", _HTTP, "security-endpoint", "a private tenant asks for a credential"),
    ("http.accept", _HTTP, "sending-messages", "a client that cannot read both kinds of answer is 406"),
    ("http.single-message", _HTTP, "sending-messages", "a batch is refused"),
    ("http.no-client-responses", _HTTP, "sending-messages", "a JSON-RPC response from a client is refused"),
    ("http.notification-accepted", _HTTP, "sending-messages", "an accepted notification is 202 without a body"),
    ("http.notification-refused", _HTTP, "sending-messages", "a notification that is not accepted is an HTTP error"),
    ("http.answer-type", _HTTP, "sending-messages", "an answer is one JSON object or one event stream"),
    ("http.related-notifications", _HTTP, "receiving-messages", "a stream carries only what relates to its request"),
    ("http.no-server-requests", _HTTP, "receiving-messages", "no stream ever carries a request to the client"),
    ("http.response-ends-stream", _HTTP, "receiving-messages", "the response is the last event of its stream"),
    ("http.no-buffering", _HTTP, "receiving-messages", "a stream tells proxies not to buffer it"),
    ("http.keep-alive", _HTTP, "receiving-messages", "a quiet stream sends comments"),
    ("http.unknown-method", _HTTP, "protocol-version-header", "an unknown method is -32601, HTTP 404"),
    ("http.parse-error", _HTTP, "sending-messages", "a body that is not JSON is -32700, HTTP 400"),
    # Headers.
    ("headers.version-required", _HTTP, "protocol-version-header", "a request without MCP-Protocol-Version is refused"),
    ("headers.version-matches", _HTTP, "protocol-version-header", "the version in the header is the one in the body"),
    ("headers.version-unsupported", _HTTP, "protocol-version-header", "an unsupported version is -32022, HTTP 400"),
    ("headers.method", _HTTP, "standard-request-headers", "Mcp-Method is there and is the method"),
    ("headers.name", _HTTP, "standard-request-headers", "Mcp-Name is there and is the name"),
    ("headers.mismatch", _HTTP, "server-validation", "a header that contradicts the body is -32020, HTTP 400"),
    ("headers.case-insensitive-names", _HTTP, "case-sensitivity", "names of headers are compared in any case, values are not"),
    ("headers.base64", _HTTP, "value-encoding", "encoded values are decoded, strictly, before they are compared"),
    ("headers.param-matches", _HTTP, "server-behavior-for-custom-headers", "Mcp-Param-* is the value in the body"),
    ("headers.param-missing", _HTTP, "server-behavior-for-custom-headers", "a value in the body without its header is refused"),
    ("headers.param-absent", _HTTP, "server-behavior-for-custom-headers", "no header is expected for null and for what is not given"),
    ("headers.param-characters", _HTTP, "server-behavior-for-custom-headers", "a header with invalid characters is refused"),
    ("headers.param-integers", _HTTP, "server-validation", "integers are compared as numbers"),
    ("headers.annotation-legal", _HTTP, "schema-extension", "an illegal x-mcp-header is refused when a tool is registered"),
    ("headers.annotation-secret", _TOOLS, "x-mcp-header", "no field with a secret's name is mirrored into a header"),
    # Tools.
    ("tools.capability", _TOOLS, "capabilities", "the tools capability is declared"),
    ("tools.list.served", _TOOLS, "listing-tools", "tools/list gives every tool the caller may see"),
    ("tools.list.deterministic-order", _TOOLS, "capabilities", "the same tools come in the same order"),
    ("tools.list.by-authorization", _TOOLS, "capabilities", "the list holds what the caller's scopes allow"),
    ("tools.list.not-by-connection", _TOOLS, "capabilities", "the list does not vary by connection or by earlier requests"),
    ("tools.names", _TOOLS, "tool-names", "a name has only letters, digits, _, - and ."),
    ("tools.names-unique", _TOOLS, "tool-names", "a name is unique within its server"),
    ("tools.names-case", _TOOLS, "tool-names", "names are compared in their case"),
    ("tools.input-schema", _TOOLS, "tool", "every tool has an input schema that is an object"),
    ("tools.call.served", _TOOLS, "calling-tools", "tools/call runs the tool and gives its result"),
    ("tools.call.without-arguments", _TOOLS, "calling-tools", "absent arguments are an empty object"),
    ("tools.call.content", _TOOLS, "tool-result", "every type of content can be returned"),
    ("tools.call.structured", _TOOLS, "output-schema", "structured content conforms to the output schema"),
    ("tools.call.structured-as-text", _TOOLS, "structured-content", "structured content comes as text too"),
    ("tools.call.unknown", _TOOLS, "error-handling", "an unknown tool is a protocol error, -32602"),
    ("tools.call.invalid-arguments", _TOOLS, "error-handling", "invalid arguments are an isError result that names the field"),
    ("tools.call.failure", _TOOLS, "error-handling", "a tool's failure is an isError result"),
    ("tools.call.access", _TOOLS, "security-considerations", "a tool that a caller may not see is an unknown tool"),
    ("tools.call.rate", _TOOLS, "security-considerations", "calls are limited per tenant and token"),
    ("tools.call.sanitized", _TOOLS, "security-considerations", "no internals of the server are in a result"),
    # Prompts.
    ("prompts.capability", _PROMPTS, "capabilities", "the prompts capability is declared"),
    ("prompts.list.served", _PROMPTS, "listing-prompts", "prompts/list gives every prompt the caller may see"),
    ("prompts.list.by-authorization", _PROMPTS, "capabilities", "the list holds what the caller's scopes allow"),
    ("prompts.get.served", _PROMPTS, "getting-a-prompt", "prompts/get gives the messages with the arguments in them"),
    ("prompts.get.content", _PROMPTS, "promptmessage", "every type of content can be in a message"),
    ("prompts.get.unknown", _PROMPTS, "error-handling", "an unknown prompt is -32602"),
    ("prompts.get.missing-argument", _PROMPTS, "error-handling", "a missing argument is -32602 and named"),
    ("prompts.get.validated", _PROMPTS, "implementation-considerations", "arguments are checked before the prompt is made"),
    ("prompts.get.internal-error", _PROMPTS, "error-handling", "a prompt that fails is -32603, without internals"),
    # Resources.
    ("resources.capability", _RESOURCES, "capabilities", "the resources capability is declared with subscribe and listChanged"),
    ("resources.list.served", _RESOURCES, "listing-resources", "resources/list gives every resource the caller may see"),
    ("resources.list.by-authorization", _RESOURCES, "capabilities", "the lists hold what the caller's scopes allow"),
    ("resources.templates.served", _RESOURCES, "resource-templates", "resources/templates/list gives every template the caller may see"),
    ("resources.read.text", _RESOURCES, "text-content", "text is read as text"),
    ("resources.read.binary", _RESOURCES, "binary-content", "binary content is read as a blob in base64"),
    ("resources.read.template", _RESOURCES, "resource-templates", "a URI that fits a template is read with its values"),
    ("resources.read.unknown", _RESOURCES, "error-handling", "an unknown resource is -32602 with its URI, never an empty answer"),
    ("resources.read.internal-error", _RESOURCES, "error-handling", "a resource that fails is -32603, without internals"),
    ("resources.read.access", _RESOURCES, "security-considerations", "a resource that a caller may not see is an unknown resource"),
    ("resources.uris", _RESOURCES, "security-considerations", "every URI is checked"),
    ("resources.traversal", _RESOURCES, "security-considerations", "no .. reaches a resource, encoded or not"),
    # Completion.
    ("completion.capability", _COMPLETION, "capabilities", "the completions capability is declared"),
    ("completion.prompt", _COMPLETION, "requesting-completions", "arguments of prompts are completed"),
    ("completion.template", _COMPLETION, "reference-types", "variables of templates are completed"),
    ("completion.context", _COMPLETION, "requesting-completions", "what was filled in already is taken into account"),
    ("completion.at-most-100", _COMPLETION, "completion-results", "at most 100 values, and whether there are more"),
    ("completion.unknown", _COMPLETION, "error-handling", "unknown references and arguments are -32602"),
    ("completion.access", _COMPLETION, "security", "nothing is completed of what a caller may not see"),
    ("completion.rate", _COMPLETION, "security", "completions are limited per tenant and token"),
    # Caching.
    ("caching.hints", _CACHING, "cacheable-results", "discover, lists and reads carry ttlMs and cacheScope"),
    ("caching.ttl", _CACHING, "time-to-live-ttl-field", "ttlMs is an integer, zero or more"),
    ("caching.scope", _CACHING, "cache-scope-field", "public only where everybody gets the same"),
    ("caching.scope-of-pages", _CACHING, "interaction-with-pagination", "all pages of a list have one cacheScope"),
    # Pages.
    ("pages.complete", _PAGES, "pagination-model", "following the cursors gives every entry once"),
    ("pages.stable-cursors", _PAGES, "implementation-guidelines", "a cursor holds on every node and after a change"),
    ("pages.invalid-cursor", _PAGES, "error-handling", "an invalid cursor is -32602"),
    # Progress, logs, cancellation.
    ("progress.asked-for", _PROGRESS, "behavior-requirements", "progress is sent only for the token of its own request"),
    ("progress.token", _PROGRESS, "progress-flow", "a token is a string or an integer"),
    ("progress.rises", _PROGRESS, "progress-flow", "progress rises with every notification"),
    ("progress.ends", _PROGRESS, "implementation-notes", "no progress after the response"),
    ("logging.capability", _LOGGING, "capabilities", "the logging capability is declared"),
    ("logging.asked-for", _LOGGING, "per-request-log-level", "no log message without a log level"),
    ("logging.level", _LOGGING, "per-request-log-level", "only messages at or above the level"),
    ("logging.own-stream", _LOGGING, "per-request-log-level", "only on the stream of its own request"),
    ("logging.unknown-level", _LOGGING, "error-handling", "an unknown level is -32602"),
    ("cancellation.hang-up", _CANCEL, "transport-specific-cancellation", "a hang-up cancels the request's work"),
    ("cancellation.silence", _HTTP, "cancellation", "nothing is sent for a cancelled request"),
    ("cancellation.timeout", _CANCEL, "timeouts", "a tool that runs too long is ended"),
    # Multi round-trip requests.
    ("mrtr.input-required", _MRTR, "inputrequiredresult", "what is missing is asked for in the result, with a state"),
    ("mrtr.retry", _MRTR, "basic-workflow", "the retry with answers and state goes on with the call"),
    ("mrtr.requests", _MRTR, "supported-requests", "tools, prompts and resources ask; nothing else does"),
    ("mrtr.any-node", _MRTR, "basic-workflow", "a retry needs nothing but what it brings, whoever serves it and whatever happened before"),
    ("mrtr.undeclared", _MRTR, "server-requirements-basic-workflow", "nothing is asked for that the client did not declare"),
    ("mrtr.missing", _MRTR, "error-handling", "what is missing in the answers is asked for again"),
    ("mrtr.extra", _MRTR, "error-handling", "answers that nobody asked for are ignored"),
    ("mrtr.invalid", _MRTR, "error-handling", "an answer that breaks the schema acts on nothing and is asked for again"),
    ("mrtr.malformed", _MRTR, "error-handling", "inputResponses that are none are -32602 with what is wrong"),
    ("mrtr.state-verified", _MRTR, "server-requirements-basic-workflow", "a state that was not made here is refused"),
    ("mrtr.state-protected", _MRTR, "server-requirements-basic-workflow", "no bit of a state can be changed"),
    ("mrtr.state-bound", _MRTR, "server-requirements-basic-workflow", "a state is refused for another principal, request, tenant, and after its time"),
    ("mrtr.state-only", _MRTR, "inputrequiredresult", "a result with nothing but a state leaves inputRequests out, and clients come back with the state"),
    ("mrtr.sep-2322-example", _MRTR, "basic-workflow", "the example of SEP-2322 works as it is written there"),
    ("mrtr.one-set", _MRTR, "server-requirements-basic-workflow", "states that descend from one another without an answer share one set of answers"),
    ("mrtr.claimed-once", _MRTR, "server-requirements-basic-workflow", "a round that acts runs once for each state, however often it is sent"),
    ("elicitation.actions", _ELICIT, "response-actions", "accepting, declining and cancelling are three things"),
    # Subscriptions.
    ("listen.acknowledged-first", _LISTEN, "acknowledgment", "the first message acknowledges the subscription"),
    ("listen.acknowledged-subset", _LISTEN, "acknowledgment", "it names what will be honoured and leaves out the rest"),
    ("listen.only-what-was-asked", _LISTEN, "opening-a-stream", "no type is sent that was not asked for"),
    ("listen.subscription-id", _LISTEN, "receiving-notifications", "every notification names the id of its request"),
    ("listen.hang-up", _LISTEN, "cancellation", "a hang-up ends the subscription"),
    ("listen.graceful-end", _LISTEN, "graceful-closure", "the server ends a subscription by its result"),
    # Authorization.
    ("auth.invalid-token", _AUTH, "token-handling", "an invalid or expired token is 401, on a public tenant too"),
    ("auth.audience", _AUTH, "token-handling", "a token is good for its own audience only"),
    ("auth.every-request", _AUTH, "token-requirements", "every request is authorized anew"),
    ("auth.not-in-query", _AUTH, "token-requirements", "a token in the query string is no credential"),
    ("auth.challenge", _AUTH, "scope-selection-strategy", "the 401 challenge names the scope"),
    ("auth.insufficient-scope", _AUTH, "runtime-insufficient-scope-errors", "a missing scope is 403 with a challenge that names it"),
    ("auth.resource-metadata", _DISCOVERY, "protected-resource-metadata-discovery-requirements", "the metadata of the endpoint is named by the challenge and found by the path"),
    ("auth.server-metadata", _DISCOVERY, "authorization-server-metadata-discovery", "clients find the authorization server in the order of the specification, with the issuer that they expect"),
    ("auth.storage", "basic/authorization/security-considerations", "token-theft", "tokens are stored as digests only"),
    # Questions.
    ("elicitation.flat", _ELICIT, "requested-schema", "a form is a flat object of the listed kinds of fields"),
    ("elicitation.no-secrets", _ELICIT, "form-mode-security", "no form asks for a secret"),
    ("elicitation.no-links", _ELICIT, "safe-url-handling", "no text of a form holds a web address"),
    ("elicitation.url", _ELICIT, "safe-url-handling", "a page is opened over HTTPS, without credentials in its address"),
    ("elicitation.person", _ELICIT, "identifying-the-user", "only the user who was asked can confirm what a page of ours asks"),
    ("elicitation.content", _ELICIT, "form-mode-security", "what was filled in fits the schema, or is asked for again"),
    ("elicitation.consent", _ELICIT, "response-actions", "of a page that was opened only the consent is known"),
    ("sampling.tools", _SAMPLING, "tools-in-sampling", "tools are offered only to clients with sampling.tools"),
    ("sampling.tool-results", _SAMPLING, "tool-use-and-result-balance", "each use of a tool is followed by its result"),
    ("roots.file", "client/roots", "root", "a root is a file:// URI"),
    ("mrtr.responses", _MRTR, "error-handling", "what answers nothing is -32602 and named by its key"),
)  # fmt: skip

_TRANSPORT = "basic/transports"
_LIFE = "basic/lifecycle"
_SESSION_TASKS = "basic/utilities/tasks"
_TASKS = "tasks"

_OF_SESSIONS: tuple[tuple[str, str, str, str], ...] = (
    ("session.negotiated", _LIFE, "version-negotiation", "a client gets the revision that it asks for, or the newest"),
    ("session.capabilities", _LIFE, "capability-negotiation", "initialize tells what the server can do"),
    ("session.id", _TRANSPORT, "session-management", "initialize gives an id of visible ASCII characters"),
    ("session.required", _TRANSPORT, "session-management", "a request without a session id is 400"),
    ("session.gone", _TRANSPORT, "session-management", "a session that ended, or is another's, is 404"),
    ("session.delete", _TRANSPORT, "session-management", "DELETE ends a session"),
    ("session.version-header", _TRANSPORT, "protocol-version-header", "a version that does not exist is 400; without one the session's holds"),
    ("session.accepted", _TRANSPORT, "sending-messages-to-the-server", "notifications and answers are 202 without a body"),
    ("session.refused", _TRANSPORT, "sending-messages-to-the-server", "what cannot be accepted is 400, with an error whose id is null where none was read"),
    ("session.answer-last", _TRANSPORT, "sending-messages-to-the-server", "the answer is the last event of its stream"),
    ("session.hang-up", _TRANSPORT, "sending-messages-to-the-server", "a hang-up is no cancellation"),
    ("session.primed", _TRANSPORT, "sending-messages-to-the-server", "a stream begins with an event that can be resumed from"),
    ("session.retry", _TRANSPORT, "sending-messages-to-the-server", "a stream that is closed early says when to come back"),
    ("session.related", _TRANSPORT, "sending-messages-to-the-server", "requests to the client relate to the request whose stream they are on"),
    ("session.listen", _TRANSPORT, "listening-for-messages-from-the-server", "GET opens a stream of what has to do with no request"),
    ("session.one-stream", _TRANSPORT, "multiple-connections", "each message is on one stream only"),
    ("session.resumed", _TRANSPORT, "resumability-and-redelivery", "Last-Event-ID brings what came after it on that stream, and nothing else"),
    ("session.events-own", _TRANSPORT, "resumability-and-redelivery", "no event of another session is shown"),
    ("session.cancelled", "basic/utilities/cancellation", "behavior-requirements", "what is cancelled is not answered"),
    ("session.ping", "basic/utilities/ping", "behavior-requirements", "a ping is answered with an empty result"),
    ("elicitation.complete", _ELICIT, "completion-notifications-for-url-mode-elicitation", "a client is told when what a page was opened for is complete"),
    ("session.subscribed", "server/resources", "subscriptions", "a subscribed resource that changed is told of"),
    ("session.not-found", "server/resources", "error-handling", "a resource that is not there is -32002"),
    ("session.params", "basic/index", "responses", "an error has one of the codes that its revision knows"),
)  # fmt: skip

# The experimental tasks of SESSIONS. (id, page, section, what it says)
_OF_SESSION_TASKS: tuple[tuple[str, str, str, str], ...] = (
    ("session-tasks.declared", _SESSION_TASKS, "server-capabilities", "initialize tells which requests can be tasks"),
    ("session-tasks.undeclared", _SESSION_TASKS, "task-support-and-handling", "a revision without tasks ignores that one is wanted"),
    ("session-tasks.forbidden", _SESSION_TASKS, "tool-level-negotiation", "a tool that is never a task is -32601 as one"),
    ("session-tasks.required", _SESSION_TASKS, "tool-level-negotiation", "a tool that must be a task is -32601 otherwise"),
    ("session-tasks.created", _SESSION_TASKS, "result-retrieval", "a call as a task is answered with the task, which works"),
    ("session-tasks.ids", _SESSION_TASKS, "task-id-requirements", "ids are made by the server, and differ"),
    ("session-tasks.lifecycle", _SESSION_TASKS, "task-status-lifecycle", "a task that has ended stays as it is"),
    ("session-tasks.ttl", _SESSION_TASKS, "ttl-and-resource-management", "the time to live that is granted is told"),
    ("session-tasks.expired", _SESSION_TASKS, "ttl-and-resource-management", "a task is gone when its time is over"),
    ("session-tasks.blocked", _SESSION_TASKS, "result-retrieval", "tasks/result waits for the end"),
    ("session-tasks.result", _SESSION_TASKS, "result-retrieval", "tasks/result returns what the call would have returned"),
    ("session-tasks.error", _SESSION_TASKS, "result-retrieval", "tasks/result returns the error of the call as one"),
    ("session-tasks.failed", _SESSION_TASKS, "task-execution-errors", "a result with isError is failed"),
    ("session-tasks.asked", _SESSION_TASKS, "input-required-status", "tasks/result sends the questions of its task, which name it"),
    ("session-tasks.related", _SESSION_TASKS, "associating-task-related-messages", "nothing names a task that belongs to none"),
    ("session-tasks.param", _SESSION_TASKS, "associating-task-related-messages", "the taskId of the params counts, not that of the metadata"),
    ("session-tasks.pages", _SESSION_TASKS, "task-listing", "tasks/list has a cursor if there is more"),
    ("session-tasks.cancelled", _SESSION_TASKS, "task-cancellation-1", "a cancelled task is cancelled before it is answered, and its tool stops"),
    ("session-tasks.cancelled-late", _SESSION_TASKS, "task-cancellation-1", "a task that has ended cannot be cancelled: -32602"),
    ("session-tasks.bound", _SESSION_TASKS, "task-isolation-and-access-control", "a task of another caller is an unknown one, and in no list of others"),
    ("session-tasks.unbound", _SESSION_TASKS, "task-isolation-and-access-control", "anonymous sessions do not see one another's tasks"),
)  # fmt: skip

# (id, page, section, what it says)
_OF_TASKS: tuple[tuple[str, str, str, str], ...] = (
    ("tasks.declared", _TASKS, "capability-negotiation", "no task is created for a client that does not declare the extension on its request"),
    ("tasks.required", _TASKS, "capability-negotiation", "what can only be a task is -32021 without the extension, with the capability that is missing"),
    ("tasks.named", _TASKS, "capability-negotiation", "the server declares the extension"),
    ("tasks.result-type", _TASKS, "polymorphic-results", "a handle, and nothing else, has the resultType task"),
    ("tasks.durable", _TASKS, "task-creation", "a task can be got as soon as its handle is sent"),
    ("tasks.asked-before", _TASKS, "task-creation", "what is asked before a call becomes a task is asked by multi round-trip requests"),
    ("tasks.payload", _TASKS, "task-polling", "each status has its payload and no other"),
    ("tasks.completed", _TASKS, "task-execution-errors", "a result is that of the call, and completed even with isError"),
    ("tasks.failed", _TASKS, "task-execution-errors", "an error of JSON-RPC is failed, with the error and a status message"),
    ("tasks.limited", _TASKS, "task-polling", "a client that polls far too often is refused for a while"),
    ("tasks.keys", _TASKS, "task-update-requests", "no key of a question is used again"),
    ("tasks.partial", _TASKS, "task-update-requests", "questions may be answered one by one"),
    ("tasks.ignored", _TASKS, "task-update-requests", "answers to keys that are not open are acknowledged and ignored"),
    ("tasks.cancelled", _TASKS, "task-cancellation", "a cancellation is acknowledged, and ends the tool"),
    ("tasks.ended", _TASKS, "task-status", "what has ended stays as it is"),
    ("tasks.notified", _TASKS, "task-status-notifications", "each change is notified with the whole task"),
    ("tasks.notified-own", _TASKS, "task-status-notifications", "only the caller's own tasks are acknowledged and notified"),
    ("tasks.notified-able", _TASKS, "task-status-notifications", "without the extension a subscription to tasks is -32021"),
    ("tasks.no-progress", _TASKS, "task-status-notifications", "no progress and no log messages of a task are sent"),
    ("tasks.header", _TASKS, "streamable-http-routing-headers", "Mcp-Name is the id of the task"),
    ("tasks.unknown", _TASKS, "protocol-errors", "an id that is unknown is -32602"),
    ("tasks.unable", _TASKS, "protocol-errors", "methods of tasks are -32021 without the extension"),
    ("tasks.unguessable", _TASKS, "security-considerations", "ids cannot be guessed from one another"),
    ("tasks.bound", _TASKS, "security-considerations", "a task is bound to its tenant and credential"),
    ("tasks.authorized", _TASKS, "security-considerations", "each request about a task is authenticated"),
)  # fmt: skip

REQUIREMENTS: dict[str, Requirement] = {
    **{id: Requirement(id, f"{page}#{section}", text) for id, page, section, text in _ENTRIES},
    **{
        id: Requirement(id, f"{page}#{section}", text, "legacy", SESSIONS)
        for id, page, section, text in (*_OF_SESSIONS, *_OF_SESSION_TASKS)
    },
    **{
        id: Requirement(id, f"{page}#{section}", text, revision="draft", site=TASKS_SITE)
        for id, page, section, text in _OF_TASKS
    },
}
