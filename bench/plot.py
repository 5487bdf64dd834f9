"""The figures as a picture: horizontal bars, written by hand as SVG."""

from collections.abc import Sequence
from html import escape

from bench.figures import Figure

WIDTH = 760
LABEL_WIDTH = 270
RIGHT = 170
ROW = 46
BAR = 26
TOP = 56
MCPHOST_COLOUR = "#0f766e"
PEER_COLOUR = "#94a3b8"
INK = "#0f172a"
FONT = "font-family='system-ui, sans-serif'"


def svg(title: str, note: str, figures: Sequence[Figure]) -> str:
    """CPU per call of each server, the least first."""
    ordered = sorted(figures, key=lambda figure: figure.cpu)
    height = TOP + ROW * len(ordered) + 34
    scale = (WIDTH - LABEL_WIDTH - RIGHT) / max(figure.cpu for figure in ordered)
    rows = [_row(index, figure, scale) for index, figure in enumerate(ordered)]
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' role='img'>",
            f"<title>{escape(title)}</title>",
            f"<rect width='{WIDTH}' height='{height}' rx='8' fill='#ffffff'/>",
            _text(24, 32, title, size=17, weight=600),
            *rows,
            _text(24, height - 14, note, size=12),
            "</svg>",
            "",
        ]
    )


def _row(index: int, figure: Figure, scale: float) -> str:
    y = TOP + ROW * index
    length = max(2, round(figure.cpu * scale))
    is_mcphost = figure.label.startswith("mcphost")
    bar = f"width='{length}' height='{BAR}' rx='3' fill='{MCPHOST_COLOUR if is_mcphost else PEER_COLOUR}'"
    value = f"{figure.cpu * 1e6:,.0f} µs · {figure.rate:,.0f}/s"
    return "\n".join(
        [
            _text(
                LABEL_WIDTH - 12,
                y + 18,
                figure.label,
                anchor="end",
                weight=600 if is_mcphost else 400,
            ),
            f"<rect x='{LABEL_WIDTH}' y='{y}' {bar}/>",
            _text(LABEL_WIDTH + length + 8, y + 18, value, size=12),
        ]
    )


def _text(
    x: int, y: int, text: str, *, size: int = 14, weight: int = 400, anchor: str = "start"
) -> str:
    style = f"{FONT} font-size='{size}' font-weight='{weight}' fill='{INK}'"
    return f"<text x='{x}' y='{y}' {style} text-anchor='{anchor}'>{escape(text)}</text>"
