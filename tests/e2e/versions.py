"""Tools in two versions of their code, which nodes have one after the other."""

from typing import Final

_HEAD: Final = """
import os
from pathlib import Path
from pydantic import BaseModel
from mcphost.sdk import Context, tool

class Word(BaseModel):
    word: str

class Number(BaseModel):
    number: int

def note(text: str) -> None:
    with Path(os.environ["EFFECTS"]).open("a") as file:
        file.write(f"upgraded {text}\\n")

async def found(place: str) -> str:
    return f"{place} found"

@tool
async def known(ctx: Context, number: int) -> str:
    \"\"\"Asks, and acts.\"\"\"
    answer = await ctx.elicit("word", f"Which word for {number}?", Word)
    note(f"{number} {answer.word}")
    return f"{number} {answer.word}"
"""
_TRAVEL: Final = """
@tool(version="1")
async def travel(ctx: Context) -> str:
    \"\"\"Asks for a seat and a meal.\"\"\"
    seat = await ctx.elicit("seat", "Which seat?", Number)
    meal = await ctx.elicit("meal", "Which meal?", Number)
    return f"old: seat {seat.number}, meal {meal.number}"
"""
OLD: Final = _HEAD + _TRAVEL
NEW: Final = (
    _HEAD
    + """
@tool
async def brand_new(ctx: Context, number: int) -> str:
    \"\"\"Asks, and acts.\"\"\"
    answer = await ctx.elicit("word", f"Which word for {number}?", Word)
    note(f"{number} {answer.word}")
    return f"{number} {answer.word}"

@tool(tasks="always")
async def brand_new_task(ctx: Context, number: int) -> str:
    \"\"\"Asks, and acts, as a task.\"\"\"
    answer = await ctx.elicit("word", f"Which word for {number}?", Word)
    note(f"{number} {answer.word}")
    return f"{number} {answer.word}"
"""
    + _TRAVEL
)
NEWEST: Final = (
    _HEAD
    + """
@tool(version="2")
async def travel(ctx: Context) -> str:
    \"\"\"Asks for a seat, for luggage, and in other words for a meal.\"\"\"
    where = await ctx.step("find", found, "place")
    seat = await ctx.elicit("seat", "Which seat?", Number)
    luggage = await ctx.elicit("luggage", "How many bags?", Number)
    meal = await ctx.elicit("meal", "What would you like to eat?", Number)
    return f"new: seat {seat.number}, bags {luggage.number}, meal {meal.number}, {where}"
"""
)
FILE: Final = "upgraded.py"
