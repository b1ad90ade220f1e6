"""Charts and sheets of pictures, drawn by Pillow alone.

Drawn at three times the size and made smaller in the end: Pillow's lines have no soft edges of their own."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SCALE = 3
INK, FAINT, PAPER = "#222222", "#dddddd", "#ffffff"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito: for colour-blind eyes, too
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 46  # around the axes


def font(size):
    return ImageFont.load_default(size * SCALE)


def ticks(low, high, is_log):
    """Round numbers from low to high: powers of ten, or steps of 1, 2 or 5."""
    if is_log:
        return [10.0**k for k in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]
    rough = (high - low) / 6
    step = 10.0 ** math.floor(math.log10(rough))
    step *= next(m for m in (1, 2, 5, 10) if m * step >= rough)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def short(number):
    if abs(number) >= 1e6:
        return f"{number / 1e6:g}M"
    return f"{number / 1000:g}k" if abs(number) >= 1e4 else f"{number:.4g}"


class Chart:
    """Curves and points over two axes; image() draws what line() and points() were given. limits: ((left, right), (low, high)), beyond
    which nothing is drawn, where the data shall not decide."""

    def __init__(self, title, x, y, *, log_x=False, log_y=False, size=(560, 360), limits=None):
        self.title, self.names, self.size, self.limits = title, (x, y), size, limits
        self.log = (log_x, log_y)
        self.curves, self.legend = [], []

    def line(self, x, y, label=None, *, colour=None, width=2, dots=False):
        self._add(x, y, label, colour, width, dots)

    def points(self, x, y, label=None, *, colour=None, radius=3.0):
        self._add(x, y, label, colour, 0, radius)

    def _add(self, x, y, label, colour, width, dots):
        colour = colour or COLOURS[len(self.legend) % len(COLOURS)]
        self.curves.append((np.asarray(x, float), np.asarray(y, float), colour, width, 2.5 if dots is True else float(dots)))
        if label:
            self.legend.append((label, colour))

    def _range(self, axis):
        values = np.concatenate([curve[axis] for curve in self.curves])
        low, high = float(values.min()), float(values.max())
        if self.log[axis]:
            return low / 1.3, high * 1.3
        margin = 0.04 * (high - low or 1)
        return low - margin, high + margin

    def _place(self, values, axis):
        """Pixels of numbers on an axis."""
        low, high = self.ranges[axis]
        if self.log[axis]:
            values, low, high = np.log10(values), math.log10(low), math.log10(high)
        share = (np.asarray(values, float) - low) / (high - low)
        first, last = (LEFT, self.size[0] - RIGHT) if axis == 0 else (self.size[1] - BOTTOM, TOP)
        return (first + share * (last - first)) * SCALE

    def _draw_axes(self, draw):
        width, height = self.size[0] * SCALE, self.size[1] * SCALE
        box = [LEFT * SCALE, TOP * SCALE, width - RIGHT * SCALE, height - BOTTOM * SCALE]
        for value in ticks(*self.ranges[0], self.log[0]):
            x = float(self._place(value, 0))
            draw.line([x, box[1], x, box[3]], FAINT, SCALE)
            draw.text((x, box[3] + 5 * SCALE), short(value), INK, font(11), anchor="ma")
        for value in ticks(*self.ranges[1], self.log[1]):
            y = float(self._place(value, 1))
            draw.line([box[0], y, box[2], y], FAINT, SCALE)
            draw.text((box[0] - 6 * SCALE, y), short(value), INK, font(11), anchor="rm")
        draw.rectangle(box, outline=INK, width=SCALE)
        draw.text(((box[0] + box[2]) / 2, 9 * SCALE), self.title, INK, font(14), anchor="ma")
        draw.text(((box[0] + box[2]) / 2, height - 8 * SCALE), self.names[0], INK, font(12), anchor="ms")

    def _draw_name_of_y(self, picture):
        text = Image.new("L", (picture.height, 20 * SCALE), 0)
        ImageDraw.Draw(text).text((text.width / 2, 10 * SCALE), self.names[1], 255, font(12), anchor="mm")
        text = text.rotate(90, expand=True)
        middle = (TOP + self.size[1] - BOTTOM) * SCALE // 2
        picture.paste(INK, (3 * SCALE, middle - text.height // 2), text)

    def _draw_curve(self, draw, x, y, colour, width, dots):
        (left, right), (low, high) = self.ranges
        inside = (x >= left) & (x <= right) & (y >= low) & (y <= high)
        places = list(zip(self._place(x[inside], 0).tolist(), self._place(y[inside], 1).tolist()))
        if width and len(places) > 1:
            draw.line(places, colour, width * SCALE, joint="curve")
        radius = dots * SCALE
        for px, py in places if dots else ():
            draw.ellipse([px - radius, py - radius, px + radius, py + radius], fill=colour)

    def _draw_legend(self, draw, at_left):
        wide = max(draw.textlength(label, font(12)) for label, _ in self.legend) + 30 * SCALE
        tall = (18 * len(self.legend) + 8) * SCALE
        x = (LEFT + 10) * SCALE if at_left else (self.size[0] - RIGHT - 10) * SCALE - wide
        y = (TOP + 10) * SCALE
        draw.rounded_rectangle([x, y, x + wide, y + tall], 4 * SCALE, fill=PAPER, outline=FAINT, width=SCALE)
        for i, (label, colour) in enumerate(self.legend):
            line = y + (13 + 18 * i) * SCALE
            draw.line([x + 8 * SCALE, line, x + 20 * SCALE, line], colour, 4 * SCALE)
            draw.text((x + 25 * SCALE, line), label, INK, font(12), anchor="lm")

    def image(self, *, legend="right"):
        self.ranges = self.limits or [self._range(0), self._range(1)]
        picture = Image.new("RGB", (self.size[0] * SCALE, self.size[1] * SCALE), PAPER)
        draw = ImageDraw.Draw(picture)
        self._draw_axes(draw)
        for curve in self.curves:
            self._draw_curve(draw, *curve)
        if self.legend:
            self._draw_legend(draw, legend == "left")
        self._draw_name_of_y(picture)
        return picture.reduce(SCALE)


def sheet(pictures, captions, columns, *, title=None, cell=None):
    """Pictures in rows, a caption below each; `cell` is the size to which each is brought, with hard pixels."""
    if cell:
        pictures = [picture.convert("RGB").resize(cell, Image.Resampling.NEAREST) for picture in pictures]
    rows = [pictures[i:i + columns] for i in range(0, len(pictures), columns)]
    wide, top = max(p.width for p in pictures) + 12, 36 if title else 12
    tops = [top + sum(max(p.height for p in row) + 30 for row in rows[:i]) for i in range(len(rows) + 1)]
    whole = Image.new("RGB", (columns * wide + 12, tops[-1]), PAPER)
    texts = Image.new("L", (whole.width * SCALE, whole.height * SCALE), 0)
    draw = ImageDraw.Draw(texts)
    if title:
        draw.text((texts.width / 2, 20 * SCALE), title, 255, font(14), anchor="mm")
    for i, (picture, caption) in enumerate(zip(pictures, captions)):
        x, y = 12 + i % columns * wide, tops[i // columns]
        whole.paste(picture, (x, y))
        ImageDraw.Draw(whole).rectangle([x - 1, y - 1, x + picture.width, y + picture.height], outline=FAINT)
        draw.text(((x + picture.width / 2) * SCALE, (y + picture.height + 5) * SCALE), caption, 255, font(12), anchor="ma")
    whole.paste(INK, (0, 0), texts.reduce(SCALE))
    return whole


def grey(array):
    """A picture of numbers from 0 to 1."""
    return Image.fromarray(np.clip(np.rint(np.asarray(array, float) * 255), 0, 255).astype(np.uint8))


def beside(*pictures, columns=None):
    """Pictures of one size in rows of so many; in one row unless said."""
    columns = columns or len(pictures)
    width, height = pictures[0].size
    whole = Image.new("RGB", (width * columns, height * -(-len(pictures) // columns)), PAPER)
    for i, picture in enumerate(pictures):
        whole.paste(picture, (i % columns * width, i // columns * height))
    return whole
