"""Try it: run a tool before it is saved or published, in a document of its own.

The document shows foreign text, so it has the strict policy and no scripts; the tool's form and page
frame it. It carries the definition, the arguments and the sealed state from round to round, signed
for this user and tenant: the server holds nothing. A trial whose document is gone is ended: by the
response that does not carry it any more, or by the framing page, which sends what `END` has as it
leaves. What neither reaches expires soon (`deliveries.TRIAL_SECONDS`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_http_methods, require_POST

from mcphost.audit.records import Actor
from mcphost.catalogue import validation
from mcphost.catalogue.drafts import compile_draft
from mcphost.catalogue.errors import CatalogueError, InvalidPrimitiveError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.saved_calls import SavedRequest, save_call
from mcphost.catalogue.snapshots import ToolSnapshot
from mcphost.console.base import SignedInRequest, View, actor, mcp_url, of_tenant
from mcphost.console.forms import questions, schema_forms
from mcphost.console.forms.kind_forms import kind_for
from mcphost.console.primitive_words import WORDS
from mcphost.console.primitives import trial_conversation, trial_results
from mcphost.console.primitives.definitions import labelled
from mcphost.console.primitives.form import PrimitiveForm
from mcphost.console.primitives.played_clients import ChosenClient, ClientForm
from mcphost.console.primitives.primitives import row_of
from mcphost.console.primitives.saving import SavingForm
from mcphost.console.signin import may_enter
from mcphost.console.tenants.client_programs import ExampleCall
from mcphost.console.tenants.clients import Snippet, calling_programs
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.execution import trials
from mcphost.serving.execution.trials import DEFINING, REFUSAL, TrialEndedError, TrialRequest
from mcphost.serving.user_slots import TRIALS, Busy
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'self'; font-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
RETRY_SECONDS: Final = 2
CARRIED, RUN, ANSWER, END, SAVE = "_trial", "_run", "_answer", "_end", "_save_call"
_ENDED: Final = "Answers to its trials are no longer accepted. Nothing was run."
LOST: Final = "This trial cannot go on: its form is incomplete or too old. Press Try it again."

SIGN_IN_FROM: Final = {"tool_try": "tool_add", "tool_try_saved": "tool", "tool_try_end": "tool_add"}
"""The pages that a user comes to who signs in again: those that have the frame."""
OLD_SESSION: Final = (
    "You have signed in again since this was shown. Nothing was run. Press Try it again."
)
NO_ACCESS: Final = "You have no access here any more, or this tool is gone."

BUSY: Final = {
    Busy.USER: "Another trial of yours runs. Try again when it has ended.",
    Busy.TENANT: "Too many other users of this tenant run trials now. Try again in a moment.",
    Busy.ALL: "Too many trials of other users run now. Try again in a moment.",
}
_STOPPED: Final = "The operator stopped the trial."
_PAGE_LEFT: Final = "The page of the trial was left."
_REFUSED: Final = "The operator may not try the tool any more, or it is gone."
_SIGNED_OUT: Final = "The session of the operator has ended."
_UNFIT: Final = "The definition that is tried cannot be published any more."
_SALT: Final = "mcphost.console.trials"
_END_SALT: Final = f"{_SALT}:end"
_SECONDS: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class Carried:
    """What the page carries from round to round.

    `open_requests` are by key; `rounds` has the rounds so far, as `trial_conversation` writes them, and
    `began` when the first one began, in seconds since 1970. `call` is the id of the call; `tool_state` is as in `TrialRequest`. `client`
    has the fields of a `ChosenClient`; `answers` the responses of each round, by key. `structured` is the
    structured content of the last round.
    """

    definition: Mapping[str, Any]
    primitive: str = ""
    arguments: Mapping[str, Any] | None = None
    state: str = ""
    open_requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rounds: Sequence[Mapping[str, Any]] = ()
    began: float = 0.0
    call: str = ""
    tool_state: str = ""
    client: Mapping[str, Any] = field(default_factory=dict)
    answers: Sequence[Mapping[str, Any]] = ()
    structured: Any = None

    @property
    def chosen_client(self) -> ChosenClient:
        return ChosenClient(**self.client)

    @property
    def fields(self) -> PrimitiveFields:
        return PrimitiveFields(primitive_type=PrimitiveType.TOOL, **self.definition)

    @property
    def primitive_id(self) -> UUID | None:
        return UUID(self.primitive) if self.primitive else None


def _framed(view: View) -> View:
    """Give a refusal a page that the frame may show: the page for 403 would leave it empty."""

    @wraps(view)
    def answered(request: SignedInRequest, **rest: Any) -> HttpResponseBase:
        try:
            response = view(request, **rest)
        except Http404:
            response = HttpResponse(status=404)
        if response.status_code not in (403, 404):
            return response
        _end_refused(request, _REFUSED)
        return _page(request, status=response.status_code, problems=[NO_ACCESS])

    return xframe_options_sameorigin(answered)


def in_frame(guarded: View) -> View:
    """Give a request without a session, or of a user without roles, a page that the frame may show.

    `guarded` would redirect both to the sign-in, whose page no frame shows.
    """

    @wraps(guarded)
    def answered(request: HttpRequest, **rest: Any) -> HttpResponseBase:
        if request.user.is_authenticated and request.user.is_active:
            response = guarded(request, **rest)
            if response.status_code != 302 or may_enter(request.user):
                return response
            _end_refused(request, _REFUSED)
            return _not_entered(request, problems=[NO_ACCESS])
        _end_refused(request, _SIGNED_OUT)
        match = request.resolver_match
        page = SIGN_IN_FROM[(match and match.url_name) or "tool_try"]
        after = urlencode({"next": reverse(f"admin:{page}", kwargs=rest)})
        return _not_entered(request, sign_in=f"{reverse('admin:login')}?{after}")

    return answered


@xframe_options_sameorigin
def _not_entered(request: HttpRequest, **context: Any) -> HttpResponseBase:
    return _page(request, status=403, **context)


def is_framed(request: HttpRequest) -> bool:
    """Return whether the frame shows the response."""
    match = request.resolver_match
    return match is not None and match.url_name in SIGN_IN_FROM


@xframe_options_sameorigin
def of_ended_session(request: HttpRequest) -> HttpResponseBase:
    """Refuse a form from before the user signed in again; its trial ends."""
    _end_refused(request, _SIGNED_OUT)
    return _page(request, status=403, problems=[OLD_SESSION], ended=True)


@xframe_options_sameorigin
def too_large(request: HttpRequest, problems: Sequence[str]) -> HttpResponseBase:
    """Say that a form was refused unread."""
    return _page(request, status=400, problems=problems, too_large=True)


@_framed
@of_tenant(Permission.EDIT_TOOLS)
@require_http_methods(["GET", "HEAD", "POST"])
def unsaved(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Try a tool as the form of a new one has it."""
    if request.method != "POST":
        return _page(request)
    kind = kind_for(tenant.pk, PrimitiveType.TOOL, request.POST.get("kind", ""))
    return _posted(request, tenant, kind)


@_framed
@of_tenant(Permission.EDIT_TOOLS)
@require_http_methods(["GET", "HEAD", "POST"])
def saved(request: SignedInRequest, tenant: Tenant, primitive_id: UUID) -> HttpResponseBase:
    """Try the working copy of a tool, or what its form has now."""
    row = row_of(tenant, PrimitiveType.TOOL, primitive_id)
    if request.method != "POST":
        return _arguments(request, tenant, Carried(_definition(row.fields), str(row.id)))
    return _posted(request, tenant, row.fields.kind, row.fields, str(row.id))


@_framed
@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def end_trial(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """End a trial: the page that framed it was left."""
    with suppress(signing.BadSignature):
        call, of_tenant, user = _read_end(request)
        if (of_tenant, user) == (str(tenant.pk), request.user.pk):
            trials.end(UUID(call), tenant.pk, _PAGE_LEFT, actor(request))
    return HttpResponse(status=204)


def _end_carried(request: SignedInRequest, tenant: UUID, carried: Carried, reason: str) -> None:
    """End the trial that a page carried, if it waits for its operator."""
    if carried.open_requests:
        trials.end(UUID(carried.call), tenant, reason, actor(request))


def _end_refused(request: HttpRequest, reason: str) -> None:
    """End the trial of a user who may not go on with it."""
    with suppress(signing.BadSignature):
        call, tenant, _ = _read_end(request)
        trials.end(UUID(call), UUID(tenant), reason, Actor.system())


def _posted(
    request: SignedInRequest,
    tenant: Tenant,
    kind: str,
    before: PrimitiveFields | None = None,
    primitive: str = "",
) -> HttpResponseBase:
    """Go on with a trial; begin one if the tool's own form was sent."""
    if CARRIED in request.POST:
        try:
            text = request.POST.get(CARRIED, "")
            carried = Carried(**signing.loads(text, salt=_salt(request), max_age=_SECONDS))
        except signing.BadSignature:
            return _page(request, status=400, problems=[LOST], ended=True)
        return _continue_trial(request, tenant, carried)
    sent = (request.POST, request.FILES)
    form = PrimitiveForm(WORDS[PrimitiveType.TOOL], tenant.pk, kind, sent, before)
    if not form.is_valid():
        return _page(request, problems=_form_problems(form))
    fields = form.primitive_fields()
    try:
        validation.inspect(tenant.pk, fields)
    except InvalidPrimitiveError as refusal:
        return _page(request, problems=labelled(tenant.pk, fields, refusal.problems))
    return _arguments(request, tenant, Carried(_definition(fields), primitive))


def _arguments(
    request: SignedInRequest, tenant: Tenant, carried: Carried, data: Any = None
) -> HttpResponseBase:
    """Show the form for the arguments."""
    try:
        tool = compile_draft(tenant.pk, carried.fields, carried.primitive_id)
    except InvalidPrimitiveError as refusal:
        return _page(request, problems=labelled(tenant.pk, carried.fields, refusal.problems))
    form, client = _form(tool, data, carried), ClientForm(data, carried.chosen_client)
    if data is None or not (form.is_valid() and client.is_valid()):
        return _page(
            request, tool=tool, form=form, client=client, carried=_signed(request, carried)
        )
    fresh = replace(
        _without_trial(carried),
        arguments=form.arguments(),
        client=asdict(client.chosen_client(carried.chosen_client)),
    )
    return _run_round(request, tenant, fresh, tool, {})


def _continue_trial(request: SignedInRequest, tenant: Tenant, carried: Carried) -> HttpResponseBase:
    """Take the arguments, or the answers to all open requests; or save what has ended."""
    if SAVE in request.POST and carried.primitive and carried.rounds:
        return _save(request, carried)
    if ANSWER not in request.POST or not carried.open_requests:
        _end_carried(request, tenant.pk, carried, _STOPPED)
        data = request.POST if RUN in request.POST else None
        return _arguments(request, tenant, _without_trial(carried), data)
    try:
        tool = compile_draft(tenant.pk, carried.fields, carried.primitive_id)
    except InvalidPrimitiveError as refusal:
        _end_carried(request, tenant.pk, carried, _UNFIT)
        return _page(request, problems=labelled(tenant.pk, carried.fields, refusal.problems))
    request_forms = _request_forms(carried.open_requests, request.POST)
    if all(form.is_valid() for _, _, form in request_forms if form is not None):
        responses = {
            key: REFUSAL if form is None else form.response() for key, _, form in request_forms
        }
        return _run_round(request, tenant, carried, tool, responses)
    return _page(
        request,
        tool=tool,
        request_forms=request_forms,
        rounds=carried.rounds,
        call=carried.call,
        played=carried.chosen_client,
        carried=_signed(request, carried),
        end=_signed_end(request, carried),
    )


def _without_trial(carried: Carried) -> Carried:
    return replace(
        carried,
        state="",
        open_requests={},
        rounds=(),
        began=0.0,
        call="",
        tool_state="",
        answers=(),
        structured=None,
    )


def _run_round(
    request: SignedInRequest,
    tenant: Tenant,
    carried: Carried,
    tool: ToolSnapshot,
    responses: Mapping[str, Mapping[str, Any]],
) -> HttpResponseBase:
    """Run a round and show what it gave."""
    trial = TrialRequest(
        operator=request.user,
        tenant=tenant.pk,
        definition=carried.fields,
        arguments=carried.arguments or {},
        host=request.get_host(),
        source=str(request.META.get("REMOTE_ADDR", "")),
        primitive=carried.primitive_id,
        state=carried.state,
        responses=responses,
        tool_state=carried.tool_state,
        client=carried.chosen_client.played,
    )
    with TRIALS.of(request.user.pk, tenant.pk) as busy:
        if busy:
            response = _page(request, status=429, problems=[BUSY[busy]])
            response.headers["Retry-After"] = str(RETRY_SECONDS)
            return response
        try:
            trial_result = async_to_sync(trials.run)(trial)
        except PermissionDenied:
            return _page(request, status=403, problems=[NO_ACCESS])
        except InvalidPrimitiveError as refusal:
            _end_carried(request, tenant.pk, carried, _UNFIT)
            return _page(request, problems=labelled(tenant.pk, carried.fields, refusal.problems))
        except TrialEndedError as change:
            _end_carried(request, tenant.pk, carried, str(change))
            return _page(request, status=409, problems=[f"{change} {_ENDED}"], ended=True)
    outcome = trial_results.outcome(trial_result)
    began = carried.began or trial_result.began
    after = replace(
        carried,
        state=trial_result.state,
        open_requests=trial_result.requests,
        rounds=[*carried.rounds, trial_conversation.written(trial_result, outcome, began)],
        began=began,
        answers=[*carried.answers, *([_plain(responses)] if responses else [])],
        structured=(trial_result.result or {}).get("structuredContent"),
        call=str(trial_result.call),
        tool_state=trial_result.tool_state,
    )
    return _page(
        request,
        tool=tool,
        played=carried.chosen_client,
        trial_result=trial_result,
        outcome=outcome,
        rounds=after.rounds,
        call=after.call if trial_result.is_recorded else "",
        blocks=list(trial_results.blocks(trial_result.result or {})),
        request_forms=_request_forms(trial_result.requests),
        programs=_programs(request, tool, after),
        saving=_saving(after),
        form=None if trial_result.requests else _form(tool, None, after),
        client=ClientForm(None, after.chosen_client),
        carried=_signed(request, after),
        end=_signed_end(request, after),
    )


def _plain(responses: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: dict(response) for key, response in responses.items()}


def _saving(carried: Carried, data: Any = None) -> SavingForm | None:
    """The form that saves the call, once it has ended, of a tool that is saved."""
    if not carried.primitive or not carried.rounds or carried.open_requests:
        return None
    return SavingForm(data, carried.rounds[-1]["outcome"], carried.structured)


def _save(request: SignedInRequest, carried: Carried) -> HttpResponseBase:
    """Save the call that has ended."""
    form = _saving(carried, request.POST)
    tool = UUID(carried.primitive)
    context: dict[str, Any] = {
        "rounds": carried.rounds,
        "played": carried.chosen_client,
        "saved_tool": tool,
    }
    if form is not None and form.is_valid():
        sent = SavedRequest(carried.client, carried.arguments or {}, carried.answers)
        try:
            save_call(tool, form.cleaned_data["name"], sent, form.expectation(), actor(request))
        except PermissionDenied:
            return _page(request, status=403, problems=[NO_ACCESS])
        except CatalogueError as refusal:
            form.add_error(None, str(refusal))
        else:
            return _page(request, saved_name=form.cleaned_data["name"], **context)
    return _page(request, saving=form, carried=_signed(request, carried), **context)


def _programs(
    request: SignedInRequest, tool: ToolSnapshot, carried: Carried
) -> tuple[Snippet, ...]:
    """What makes the call outside of the console; nothing for a tool that is not saved."""
    if not carried.primitive:
        return ()
    client = carried.chosen_client
    called = ExampleCall(
        tool.name,
        tool.input_redactor.redact(carried.arguments or {}),
        tool.param_headers,
        [
            response
            for responses in carried.answers
            for response in responses.values()
            if "action" in response
        ],
        client.revision,
        client.played.capabilities,
    )
    return calling_programs(mcp_url(request, request.tenant.slug), called)


def _request_forms(
    requests: Mapping[str, Mapping[str, Any]], data: Any = None
) -> list[tuple[str, Mapping[str, Any], questions.QuestionForm | None]]:
    """Return the open requests, each with its key, and with its form if it has one."""
    is_form = {
        key: input_request["method"] == questions.METHOD for key, input_request in requests.items()
    }
    return [
        (key, input_request, questions.form_of(input_request, key, data) if is_form[key] else None)
        for key, input_request in requests.items()
    ]


def _form(tool: ToolSnapshot, data: Any, carried: Carried) -> schema_forms.ArgumentsForm:
    schema = tool.input_validator.schema
    assert isinstance(schema, Mapping)
    return schema_forms.form_of(schema, data, starting=carried.arguments)


def _page(request: HttpRequest, status: int = 200, **context: Any) -> HttpResponseBase:
    # The page that has the frame does not send a form in it which would be refused unread.
    context["most_bytes"] = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    response = render(request, "console/primitives/trial.html", context, status=status)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-store"
    return response


def _definition(fields: PrimitiveFields) -> dict[str, Any]:
    return {name: getattr(fields, name) for name in ("name", *DEFINING)}


def _signed(request: SignedInRequest, carried: Carried) -> str:
    plain = {name: getattr(carried, name) for name in Carried.__dataclass_fields__}
    return signing.dumps(plain, salt=_salt(request), compress=True)


def _signed_end(request: SignedInRequest, carried: Carried) -> str:
    """What ends the trial, and is small: a browser sends little for a page that it leaves. It says whose
    the trial is, since the session may have ended."""
    if not carried.open_requests:
        return ""
    return signing.dumps([carried.call, str(request.tenant.pk), request.user.pk], salt=_END_SALT)


def _read_end(request: HttpRequest) -> tuple[str, str, int]:
    """Return the call, the tenant and the user of the trial to end. Raises BadSignature."""
    text = request.POST.get(END, "")
    call, tenant, user = signing.loads(text, salt=_END_SALT, max_age=_SECONDS)
    return call, tenant, user


def _salt(request: SignedInRequest) -> str:
    # With the names of the fields, so that a page of an earlier release is taken for lost.
    form = ",".join((*Carried.__dataclass_fields__, "name", *DEFINING))
    return f"{_SALT}:{form}:{request.user.pk}:{request.tenant.pk}"


def _form_problems(form: PrimitiveForm) -> list[str]:
    """Return the problems of a form that is not valid, with the labels of their fields."""
    problems = []
    for form_part in (form, form.part):
        for name, sentences in getattr(form_part, "errors", {}).items():
            fields = getattr(form_part, "fields", {})
            label = fields[name].label if name in fields else ""
            problems += [
                f"{label}: {sentence}" if label else str(sentence) for sentence in sentences
            ]
    return problems or ["The form has mistakes. Save the draft to see them beside their fields."]
