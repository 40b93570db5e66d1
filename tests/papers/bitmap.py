"""A drawing of `tests/benchmarks/curves.py` as PNG: JupyterLab shows no SVG of a notebook that it does not trust."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from PIL import Image, ImageDraw, ImageFont

FINER = 2
"""Pixels are drawn so many times as fine in both directions, then averaged."""
COLOURS = 128
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}

Point = tuple[float, float]


def png(svg: str) -> bytes:
    """The PNG of a drawing: its lines, paths (M, h, v, H, V, z), circles and texts, on white."""
    root = ElementTree.fromstring(svg)
    wide, tall = (int(number) for number in root.attrib["viewBox"].split()[2:])
    image = Image.new("RGB", (FINER * wide, FINER * tall), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(FINER * float(root.attrib["font-size"]))
    for element in root.iter():
        shape, look = element.tag.rpartition("}")[2], element.attrib
        if shape == "text":
            at = FINER * float(look["x"]), FINER * float(look["y"])
            bold = FINER / 4 if look.get("font-weight") == "bold" else 0
            draw.text(
                at,
                element.text or "",
                look.get("fill", "black"),
                font,
                ANCHORS[look.get("text-anchor", "start")],
                stroke_width=bold,
            )
        elif shape == "circle":
            x, y, r = (FINER * float(look[name]) for name in ("cx", "cy", "r"))
            draw.ellipse((x - r, y - r, x + r, y + r), look["fill"])
        elif shape in ("path", "polyline"):
            points = list(_points(look["d"]) if shape == "path" else _pairs(look["points"]))
            if "stroke" not in look:
                draw.polygon(points, look["fill"])
                continue
            width = round(FINER * float(look.get("stroke-width", 1)))
            pattern = [FINER * float(length) for length in look.get("stroke-dasharray", "").split()]
            for line in _dashes(points, pattern) if pattern else [points]:
                if len(line) > 1:
                    draw.line(line, look["stroke"], width, joint="curve")
    small = image.resize((wide, tall), Image.Resampling.BOX).quantize(COLOURS, dither=Image.Dither.NONE)
    file = io.BytesIO()
    small.save(file, "PNG", optimize=True)
    return file.getvalue()


def _pairs(text: str) -> Iterator[Point]:
    for pair in text.split():
        x, y = pair.split(",")
        yield FINER * float(x), FINER * float(y)


def _points(path: str) -> Iterator[Point]:
    """The corners of a path that begins with M."""
    x = y = 0.0
    for letter, numbers in re.findall(r"([MhvHVz])([^MhvHVz]*)", path):
        values = [float(number) for number in numbers.split()]
        if letter == "M":
            x, y = values
        elif letter in "hH":
            x = values[0] + (x if letter == "h" else 0)
        elif letter in "vV":
            y = values[0] + (y if letter == "v" else 0)
        if letter != "z":
            yield FINER * x, FINER * y


def _dashes(points: list[Point], pattern: list[float]) -> Iterator[list[Point]]:
    """The drawn pieces of a broken line: lengths drawn and left out take turns."""
    left, at, line = pattern[0], 0, points[:1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        whole = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        done = 0.0
        while whole - done > left:
            done += left
            line.append((x0 + (x1 - x0) * done / whole, y0 + (y1 - y0) * done / whole))
            if at % 2 == 0:
                yield line
            at, line = at + 1, line[-1:]
            left = pattern[at % len(pattern)]
        left -= whole - done
        line.append((x1, y1))
    if at % 2 == 0:
        yield line
