"""The page that explains the terms of the console."""

from dataclasses import dataclass

from django.http import HttpResponseBase
from django.views.decorators.http import require_safe

from mcphost.console.base import SignedInRequest, show


@dataclass(frozen=True, slots=True)
class Term:
    """A term and its meaning; the anchor of its entry on the page follows from its name."""

    name: str
    meaning: str

    @property
    def anchor(self) -> str:
        return self.name.lower().replace(" ", "-")


TERMS = (
    Term(
        "Answer",
        "What came back for a question: a filled-in form, or that the person declined or cancelled. The tool goes "
        "on with it in the next round. The protocol calls it an input response.",
    ),
    Term(
        "Audit log",
        "The list of who changed or viewed what, and when. Entries are never edited.",
    ),
    Term(
        "Call",
        "One use of a tool, prompt or resource, from the client's first request to the result. It has "
        "one or more rounds.",
    ),
    Term("Caller", "The member or service account for which a client makes a call."),
    Term(
        "Client",
        "The program that connects to a tenant's address and acts for a user, such as Claude Code, "
        "VS Code or Cursor.",
    ),
    Term("Draft", "A tool, prompt or resource that was never published. Clients do not see it."),
    Term("Entry", "One line of a call or of the audit log, written before the result is sent."),
    Term(
        "Grant",
        "The permission of a tenant to use a Python function. Platform staff grant and revoke it.",
    ),
    Term(
        "Input request",
        "The name of a question in the protocol and in code. Its answer is called an input response there.",
    ),
    Term(
        "Kind",
        "How a tool runs: as an HTTP request, as a script, or as a Python function.",
    ),
    Term(
        "Key",
        "One of the platform's keys, with which the request states that clients hold are sealed.",
    ),
    Term(
        "MCP",
        "Model Context Protocol: how clients find and use tools, prompts and resources of a server.",
    ),
    Term("Member", "A user who has a role in a tenant: owner, operator, auditor or member."),
    Term(
        "Outcome",
        "How the last round of a call ended, or what the call waits for. A call is turned down if a person declined or "
        "cancelled a question and its tool ended with an error: that is not counted as an error.",
    ),
    Term(
        "Payload",
        "The content of an entry: arguments, results, questions and answers. It is encrypted, "
        "only auditors read it, and reading it is itself recorded.",
    ),
    Term("Prompt", "A prepared conversation with arguments that users fill in."),
    Term(
        "Published",
        "Offered to clients. Changes are saved to a working copy and reach clients when it is published.",
    ),
    Term(
        "Python function",
        "A function in a file of the tools folders. Developers write it, platform staff grant it.",
    ),
    Term("Refusal", "A state, an answer or a message that this server rejected, with the reason."),
    Term(
        "Question",
        "What a tool asks a person while it runs: a form to fill in, a URL to open. It may also ask "
        "the client's model, or for its folders. The call waits for the answer. The protocol calls "
        "it an input request.",
    ),
    Term(
        "Request state",
        "The sealed token that a client holds while its call waits for an answer. Only this server "
        "can open it.",
    ),
    Term("Resource", "A text or a file that clients read by its URI."),
    Term("Round", "One run of a tool, until it is finished or needs an answer."),
    Term(
        "Scope",
        "What a token may do: `mcp:list` lists, `mcp:call` calls; a tool may require a scope of its own.",
    ),
    Term("Script", "A tool written in Python in this console, run in a sandbox."),
    Term(
        "Secret",
        "A value, such as an API key, that tools send to the hosts it is for. No page shows it.",
    ),
    Term(
        "Service account",
        "An account for a program that does not act for a person. Owners issue its tokens.",
    ),
    Term(
        "Target", "What a call or an entry is about: a tool, a prompt, a URI, a user or a setting."
    ),
    Term("Task", "A call that goes on after its request. The client follows it with a handle."),
    Term("Template", "One URI pattern that serves many resources."),
    Term(
        "Tenant",
        "An MCP server of its own on this platform, with an address, members, tokens and tools.",
    ),
    Term(
        "Token",
        "What a client proves its identity with. It acts for a member or a service account, and is "
        "shown once.",
    ),
    Term(
        "Tool", "An HTTP request, a script or a Python function that models can call by its name."
    ),
    Term("Version", "What was published at one time. A call names the version that it ran."),
    Term(
        "Working copy", "The saved, unpublished state of a tool, prompt or resource that is edited."
    ),
)


@require_safe
def page(request: SignedInRequest) -> HttpResponseBase:
    """Show all terms, in alphabetical order."""
    return show(request, "glossary.html", "Glossary", terms=sorted(TERMS, key=lambda t: t.anchor))
