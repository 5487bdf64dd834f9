"""Make invisible characters visible: control, bidirectional and zero-width characters.

Text from outside can hold them to look like other text. `UnseenMiddleware` replaces them in all HTML,
wherever a template shows it, by their code point: U+202E becomes ⟨U+202E⟩. What a form field holds
stays as it is, because it is sent back; `templates/console/forms/field.html` names them beside it.
"""

import re
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

_EMOJI: Final = "\u2190-\u2bff\U0001f000-\U0001faff"
# Controls but tab and line breaks, format and private-use characters, and the letters, marks and
# spaces that have no width. Joiners and variation selectors are let be where they form an emoji.
_UNSEEN: Final = (
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800"
    "\u3164\ue000-\uf8ff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff\ud800-\udfff"
    "]"
    r"|\r(?!\n)"
    f"|(?<![#*0-9\xa9\xae\u203c-\u3299{_EMOJI}])[\ufe0e\ufe0f]"
    f"|(?<![\ufe0f{_EMOJI}])\u200d|\u200d(?![{_EMOJI}])"
)
_unseen: Final = re.compile(_UNSEEN)
# What stays as it is in a page: the values of fields, and JSON for scripts.
_in_page: Final = re.compile(
    rf'(<textarea\b.*?</textarea>|<script\b.*?</script>|\svalue="[^"]*")|{_UNSEEN}', re.DOTALL
)
_MAX_NAMED: Final = 8


def with_code_points(text: str) -> str:
    """Return the text with the characters that are not seen replaced by their code points."""
    return _unseen.sub(lambda match: _name(match[0]), text)


def code_points(text: str) -> str:
    """Return the code points of the characters in the text that are not seen, each once."""
    distinct = dict.fromkeys(f"U+{ord(character):04X}" for character in _unseen.findall(text))
    more = ["…"] if len(distinct) > _MAX_NAMED else []
    return ", ".join([*list(distinct)[:_MAX_NAMED], *more])


def shown_page(html: str) -> str:
    """Return the page with such characters replaced everywhere but in the values of its fields."""
    if _unseen.search(html) is None:
        return html
    return _in_page.sub(lambda match: match[1] or _name(match[0]), html)


def _name(character: str) -> str:
    return f"\u27e8U+{ord(character):04X}\u27e9"


class UnseenMiddleware(MiddlewareMixin):
    """Make them visible on every page."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not isinstance(response, HttpResponse) or not _is_html(response):
            return response
        before = response.content.decode(errors="replace")
        after = shown_page(before)
        if after is not before:
            response.content = after.encode()
            if "Content-Length" in response:
                response["Content-Length"] = str(len(response.content))
        return response


def _is_html(response: HttpResponse) -> bool:
    return response.get("Content-Type", "").startswith("text/html") and "Content-Encoding" not in (
        response
    )
