"""Names in the place of what is random: ids and sealed tokens."""

import re
from typing import Any
from uuid import UUID

from mcphost.sealing.tokens import Purpose, SealError
from mcphost.vault import sealer
from tests.cast import Cast

_ID = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])"
)
_SEALED = re.compile(r"mcps1\.([a-z0-9]{1,16})\.[A-Za-z0-9_-]+")
_PERSON = re.compile(r"(?<=person:)\d+")
_PURPOSES = (Purpose.STATE, Purpose.SESSION, Purpose.REQUEST_ID)


class Names:
    """Replaces random texts in a transcript. Opening tokens reads the database."""

    def __init__(self, cast: Cast) -> None:
        tenants = {"acme": cast.acme, "globex": cast.globex, "commons": cast.commons}
        self._tenants = [tenant.id for tenant in tenants.values()]
        self._ids = {tenant.id.hex: f"<{name}>" for name, tenant in tenants.items()}
        people = {name: getattr(cast, name) for name in ("owner", "member", "stranger")}
        self._actors = {str(person.user.pk): f"<{name}>" for name, person in people.items()}
        self._known = {
            person.mcp_token.split("_")[1]: f"<token of the {name}>"
            for name, person in people.items()
        }

    def know(self, text: str, name: str) -> None:
        self._known[text] = f"<{name}>"

    def replace(self, value: Any) -> Any:
        match value:
            case str():
                return self._text(value)
            case list():
                return [self.replace(one) for one in value]
            case dict():
                return {self._text(name): self._field(name, one) for name, one in value.items()}
            case _:
                return value

    def _field(self, name: str, value: Any) -> Any:
        if name == "actor_id" and value in self._actors:
            return self._actors[value]
        return self.replace(value)

    def _text(self, text: str) -> str:
        text = _SEALED.sub(self._opened, text)
        text = _PERSON.sub(lambda found: self._actors.get(found[0], found[0]), text)
        for known, name in self._known.items():
            text = text.replace(known, name)
        return _ID.sub(self._number, text)

    def _number(self, found: re.Match[str]) -> str:
        key = found[0].replace("-", "")
        return self._ids.setdefault(key, f"<id {len(self._ids) - len(self._tenants) + 1}>")

    def _opened(self, found: re.Match[str]) -> str:
        for purpose in _PURPOSES:
            for tenant in self._tenants:
                try:
                    payload = sealer.unseal(purpose, tenant, found[0])
                except SealError:
                    continue
                self.know(found[1], "ring key")
                return f"<{purpose} {self._content(purpose, payload)}>"
        return f"<unreadable token of {len(found[0])} bytes>"

    def _content(self, purpose: Purpose, payload: bytes) -> str:
        if purpose is Purpose.STATE:
            return payload.decode()
        session = purpose is Purpose.SESSION
        ids = [payload[:16]] if session else [payload[at : at + 16] for at in (0, 16)]
        rest = payload[16:].decode() if session else ""
        return " ".join(filter(None, [*(str(UUID(bytes=one)) for one in ids), rest]))
