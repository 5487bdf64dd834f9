"""Small tools, prompts and resources to try a client with, each one a way of writing them."""

import asyncio
import base64
import struct
import time
import zlib
from hashlib import sha256
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import BaseModel, Field

from mcphost.sdk import (
    Annotations,
    Context,
    Image,
    Message,
    ResourceLink,
    Text,
    ToolAnnotations,
    ToolError,
    complete,
    prompt,
    resource,
    tool,
)

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


@tool(title="Echo", annotations=READ_ONLY)
async def echo(text: str) -> str:
    """Return the text it was given."""
    return text


@tool(title="Add", annotations=READ_ONLY)
async def add(a: float, b: float) -> float:
    """Add two numbers. The return type gives the output schema."""
    return a + b


@tool(title="Countdown", annotations=READ_ONLY)
async def countdown(
    ctx: Context,
    start: Annotated[int, Field(ge=1, le=60, description="The number to count down from.")] = 5,
    seconds: Annotated[float, Field(ge=0, le=2, description="How long one count takes.")] = 0.5,
) -> str:
    """Count down to zero, and tell how far it is. Hang up to stop it."""
    ctx.info(f"counting down from {start}")
    for done in range(start):
        ctx.progress(done, start, f"{start - done}…")
        await asyncio.sleep(seconds)
    ctx.progress(start, start, "Lift-off!")
    return "Lift-off!"


class Weather(BaseModel):
    """What the sky over a city is made up to be like."""

    city: str
    conditions: Literal["sunny", "cloudy", "rain", "snow"]
    temperature: Annotated[int, Field(description="In degrees Celsius.")]
    humidity: Annotated[int, Field(ge=0, le=100, description="In percent.")]


@tool(title="Weather", annotations=READ_ONLY)
async def weather(city: Annotated[str, Field(min_length=1, max_length=80)]) -> Weather:
    """Make up the weather of a city: always the same one, as structured content."""
    if city.strip().lower() == "atlantis":
        raise ToolError("Atlantis has no weather: it is under water.")
    sky, warmth, damp = sha256(city.strip().lower().encode()).digest()[:3]
    temperature = warmth % 40 - 5
    conditions: tuple[Literal["sunny", "cloudy", "rain", "snow"], ...] = (
        "sunny",
        "cloudy",
        "snow" if temperature < 1 else "rain",
    )
    return Weather(
        city=city,
        conditions=conditions[sky % 3],
        temperature=temperature,
        humidity=damp % 101,
    )


@tool(title="Picture", annotations=READ_ONLY)
async def picture(
    red: Annotated[int, Field(ge=0, le=255)] = 30,
    green: Annotated[int, Field(ge=0, le=255)] = 110,
    blue: Annotated[int, Field(ge=0, le=255)] = 170,
) -> list[Text | Image]:
    """Paint a square in one colour: a text and an image in one result."""
    png = paint(64, bytes((red, green, blue)))
    return [
        Text(text=f"A square in #{red:02x}{green:02x}{blue:02x}"),
        Image(data=base64.b64encode(png).decode(), mime_type="image/png"),
    ]


def paint(size: int, colour: bytes) -> bytes:
    """A square PNG of one colour: a header, the pixels and an end, each with its checksum."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = (b"\0" + colour * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


class Report(BaseModel):
    """What became of a slow report."""

    title: str
    lines: list[str]


@tool(title="Slow report", annotations=READ_ONLY, time_limit=30, threads=2)
def slow_report(
    ctx: Context,
    title: str,
    sections: Annotated[int, Field(ge=1, le=10)] = 3,
    seconds: Annotated[float, Field(ge=0, le=2, description="How long one section takes.")] = 0.5,
) -> Report:
    """Write a report the blocking way: a plain function runs in a thread of its own."""
    lines = []
    for number in range(1, sections + 1):
        time.sleep(seconds)
        lines.append(f"Section {number} of {sections}: all is well.")
        ctx.progress(number, sections)
    return Report(title=title, lines=lines)


class Receipt(BaseModel):
    """Says that a note was taken to its recipient, or would have been if this were not a demo."""

    receipt: str
    recipient: str
    characters: int


@tool(
    title="Send a note",
    annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=False),
)
async def send_note(
    ctx: Context,
    recipient: Annotated[str, Field(min_length=1, max_length=80)],
    note: Annotated[str, Field(min_length=1, max_length=2000)],
) -> Receipt:
    """Pretend to send a note. It is not read-only, so its call is on record before it runs."""
    ctx.info({"recipient": recipient, "characters": len(note)}, logger="demo.send_note")
    return Receipt(receipt=f"note-{ctx.call_id}", recipient=recipient, characters=len(note))


CITIES = ("Amsterdam", "Athens", "Berlin", "Bern", "Lisbon", "Oslo", "Paris", "Prague", "Rome")


@prompt(title="Plan a trip")
async def plan_trip(
    city: Annotated[str, Field(title="City", description="Where to go.", min_length=1)],
    days: Annotated[int, Field(title="Days", description="For how long.", ge=1, le=14)] = 3,
    style: Annotated[
        Literal["relaxed", "busy", "on a budget"], Field(title="Style", description="How.")
    ] = "relaxed",
) -> list[Message]:
    """Ask for a plan of a few days in a city, with its weather in mind."""
    sky = await weather(city)
    return [
        Message(f"Plan {days} {style} days in {city} for me."),
        Message(f"It is going to be {sky.conditions}, {sky.temperature} °C.", role="assistant"),
        Message("Then plan with that in mind, morning, afternoon and evening."),
    ]


@prompt(title="Report the weather")
async def weather_report(
    city: Annotated[str, Field(title="City", description="Where.", min_length=1)],
) -> list[Message | ResourceLink]:
    """Ask for a report on the weather of a city, with a link to it, which not every client can read."""
    uri = f"demo://weather/{quote(city, safe='')}"
    return [
        Message(f"Write a short report on the weather of {city}."),
        ResourceLink(name=f"Weather of {city}", uri=uri, mime_type="application/json"),
    ]


@complete(plan_trip, "city")
async def cities(typed: str) -> list[str]:
    """The cities that begin with what was typed."""
    return [city for city in CITIES if city.lower().startswith(typed.lower())]


@resource(
    "demo://about", title="About this demo", mime_type="text/markdown",
    annotations=Annotations(audience=["user", "assistant"], priority=0.8),
)  # fmt: skip
def about() -> str:
    """What there is to try here."""
    return (
        "# The demo tenant\n\n"
        "- Call `countdown` to see progress, and hang up to stop it.\n"
        "- Call `update_work_item` to be asked something: resolve bug 4522, as a duplicate perhaps.\n"
        "- Call `deploy`: it asks first, and then tells how far it is.\n"
        "- Get the prompt `plan_trip`: its city is completed as you type.\n"
        "- Read `demo://weather/Oslo`, or of any other city.\n"
    )


@resource("demo://square.png", title="A square", mime_type="image/png")
async def square() -> bytes:
    """A picture, to see how binary contents arrive."""
    return paint(64, bytes((30, 110, 170)))


@resource("demo://weather/{city}", title="Weather of a city")
async def weather_of(city: str) -> Weather:
    """The made-up weather of a city, as a resource for each of them."""
    return await weather(city)


complete(weather_of, "city")(cities)
