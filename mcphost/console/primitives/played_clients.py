"""The client that a trial plays, as its operator chooses it: a preset, or a revision with capabilities.

The presets are what `docs/clients.md` records of tested clients. Of others nothing is claimed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from django import forms as django_forms

from mcphost.protocol.revisions import REVISION, SUPPORTED
from mcphost.protocol.tasks import EXTENSION
from mcphost.serving.execution.played_client import PlayedClient

FORMS: Final = "forms"
PAGES: Final = "pages"
SAMPLING: Final = "sampling"
SAMPLING_TOOLS: Final = "sampling_tools"
ROOTS: Final = "roots"
TASKS: Final = "tasks"
CAPABILITIES: Final[Mapping[str, str]] = {
    FORMS: "Forms (elicitation)",
    PAGES: "Pages to open (elicitation, URL mode)",
    SAMPLING: "Its model (sampling)",
    SAMPLING_TOOLS: "Tools for its model (sampling)",
    ROOTS: "Its folders (roots)",
    TASKS: "Tasks",
}
_SHORT: Final = {
    FORMS: "forms",
    PAGES: "pages",
    SAMPLING: "its model",
    SAMPLING_TOOLS: "tools for its model",
    ROOTS: "folders",
    TASKS: "tasks",
}
_ALL: Final[Sequence[str]] = tuple(CAPABILITIES)
_DECLARATIONS: Final[Mapping[str, tuple[str, str]]] = {
    FORMS: ("elicitation", "form"),
    PAGES: ("elicitation", "url"),
    SAMPLING: ("sampling", ""),
    SAMPLING_TOOLS: ("sampling", "tools"),
    ROOTS: ("roots", ""),
    TASKS: ("extensions", EXTENSION),
}
CUSTOM: Final = "custom"
EVERYTHING: Final = "everything"


def declarations(capabilities: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return `ClientCapabilities` in the shape of the stateless revision."""
    declared: dict[str, dict[str, Any]] = {}
    for capability in capabilities:
        name, part = _DECLARATIONS[capability]
        declared.setdefault(name, {}).update({part: {}} if part else {})
    return declared


def in_words(capabilities: Iterable[str]) -> str:
    """Return what a client can be asked for, as a list in a sentence."""
    return ", ".join(_SHORT[capability] for capability in capabilities) or "nothing"


def _has(capabilities: Mapping[str, Any], name: str, part: str) -> bool:
    if name == "elicitation" and part == "form":  # no modes means forms
        return capabilities.get(name) == {} or part in capabilities.get(name, ())
    return name in capabilities and (not part or part in capabilities[name])


@dataclass(frozen=True, slots=True)
class Preset:
    """A client: its revision, and what it can be asked for."""

    title: str
    revision: str = REVISION
    capabilities: Sequence[str] = ()

    @property
    def label(self) -> str:
        return f"{self.title} ({self.revision}: {in_words(self.capabilities)})"


PRESETS: Final[Mapping[str, Preset]] = {
    EVERYTHING: Preset("A client that can do everything", capabilities=_ALL),
    "sdk": Preset("SDKs: mcp 2.3.0, client 2.4.0", capabilities=(FORMS, PAGES, SAMPLING)),
    "sdk-session": Preset("SDKs: mcp 1.30.0, sdk 1.32.2", "2025-11-25", (FORMS, PAGES, SAMPLING)),
    "mcp-1.12": Preset("Python SDK: mcp 1.12.4", "2025-06-18", (FORMS, SAMPLING)),
    "mcp-1.9": Preset("Python SDK: mcp 1.9.4", "2025-03-26", (SAMPLING,)),
    "codex": Preset("Codex 0.171.0", "2025-06-18", (FORMS,)),
    "inspector": Preset("Inspector --cli 2.12.0", "2025-11-25"),
    "openai-agents": Preset("OpenAI Agents 0.24.0"),
    "nothing": Preset("A client that declares nothing"),
    "nothing-session": Preset("An old client that declares nothing", "2024-11-05"),
}


@dataclass(frozen=True, slots=True)
class ChosenClient:
    """What a page carries of the client. `preset` is a key of PRESETS, or CUSTOM."""

    preset: str = EVERYTHING
    revision: str = REVISION
    capabilities: Sequence[str] = _ALL

    @property
    def played(self) -> PlayedClient:
        return PlayedClient(self.revision, declarations(self.capabilities))

    @property
    def title(self) -> str:
        return PRESETS[self.preset].title if self.preset in PRESETS else "A client of your choice"

    @property
    def declared(self) -> str:
        return in_words(self.capabilities)

    @property
    def ignored(self) -> str:
        """What it declares, and its revision does not have."""
        client = self.played
        understood = client.capabilities
        lacking = [
            capability
            for capability in self.capabilities
            if not _has(understood, *_DECLARATIONS[capability])
        ]
        if client.session_revision is not None and client.session_revision.tasks:
            lacking = [capability for capability in lacking if capability != TASKS]
        return in_words(lacking) if lacking else ""


class ClientForm(django_forms.Form):
    """The fields that choose the client. What is not sent stays as it was before."""

    preset = django_forms.ChoiceField(
        label="The client that calls",
        choices=[
            *((key, preset.label) for key, preset in PRESETS.items()),
            (CUSTOM, "Another client: choose what it can do"),
        ],
        required=False,
        help_text="The tool runs as for this client: what it cannot be asked, it is not asked. Named clients are "
        "those whose capabilities were tested; what Claude Code, claude.ai, VS Code and others declare was not.",
    )
    revision = django_forms.ChoiceField(
        label="Protocol revision",
        choices=[
            (name, f"{name}, stateless" if name == REVISION else f"{name}, with sessions")
            for name in SUPPORTED
        ],
        required=False,
    )
    capabilities = django_forms.MultipleChoiceField(
        label="It declares",
        choices=list(CAPABILITIES.items()),
        required=False,
        widget=django_forms.CheckboxSelectMultiple(),
    )

    def __init__(self, data: Any, before: ChosenClient) -> None:
        super().__init__(data, prefix="client", initial=asdict(before))

    def chosen_client(self, before: ChosenClient) -> ChosenClient:
        """Return the client of a valid form."""
        sent = self.cleaned_data
        preset = sent["preset"] or before.preset
        if preset in PRESETS:
            return ChosenClient(preset, PRESETS[preset].revision, PRESETS[preset].capabilities)
        if not sent["revision"]:
            return before
        return ChosenClient(CUSTOM, sent["revision"], tuple(sent["capabilities"]))
