"""Prints the contents of a program's figures as JSON, for the answer to the caller.

The toolbox runs this file before Python code that draws. Then pyplot.show() prints one line of JSON for each open figure.
Nothing is imported or changed before the program itself imports pyplot. For a figure that cannot be read, the line contains
only the picture and the title.
"""

import sys

MARK = "dtn_artifact_k39fd2:"
# Maximum length of a chart line, because the toolbox drops lines above 8 MiB. A longer chart is sent with its picture only.
LONGEST_LINE = 6 * 1024 * 1024
MOST_PARTS = 16


def plain(value):
    """Converts a value for JSON: numbers stay numbers, dates become text, and numbers that are not finite become null."""
    import datetime
    import math
    import numbers

    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        try:
            value = value.item()
        except (TypeError, ValueError):
            return str(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return str(value)


def label_of(artist):
    """Returns the label of an artist, or "". If the program gave no label, matplotlib makes one that begins with an underscore."""
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") else label


def number_text(value):
    return format(float(value), ".15g")


def scale_of(axis, name):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)
    kind = type(converter).__name__
    if "Category" in kind:
        return "categorical"
    if "Date" in kind:
        return "datetime"
    return name


def plane_of(ax):
    """Returns the fields that every chart with two axes has."""
    return {
        "x_label": ax.get_xlabel(),
        "y_label": ax.get_ylabel(),
        "x_ticks": [plain(tick) for tick in ax.get_xticks()],
        "y_ticks": [plain(tick) for tick in ax.get_yticks()],
        "x_tick_labels": [label.get_text() for label in ax.get_xticklabels()],
        "y_tick_labels": [label.get_text() for label in ax.get_yticklabels()],
        "x_scale": scale_of(ax.xaxis, ax.get_xscale()),
        "y_scale": scale_of(ax.yaxis, ax.get_yscale()),
    }


def pie_elements(ax):
    return [
        {"label": label_of(patch), "angle": plain(abs(patch.theta2 - patch.theta1)), "radius": plain(patch.r)}
        for patch in ax.patches
        if type(patch).__name__ == "Wedge"
    ]


def box_elements(ax):
    """Returns the boxes of a box plot, from the statistics that were drawn. Leaves out boxes whose lines were removed."""
    elements = []
    for stats, drawn in getattr(ax, "_charted_boxes", []):
        if not drawn.get("medians") or drawn["medians"][0] not in list(ax.lines):
            continue
        for index, box in enumerate(stats):
            elements.append(
                {
                    "label": str(box.get("label") or index + 1),
                    "min": plain(box["whislo"]),
                    "first_quartile": plain(box["q1"]),
                    "median": plain(box["med"]),
                    "third_quartile": plain(box["q3"]),
                    "max": plain(box["whishi"]),
                    "outliers": [plain(value) for value in box.get("fliers", [])],
                }
            )
    return elements


def only_says(text, tick):
    """Whether the text of a tick is only its number. matplotlib writes the minus sign U+2212 instead of a hyphen."""
    try:
        return abs(float(text.replace("\u2212", "-")) - tick) <= 0.01 * max(abs(tick), 1)
    except ValueError:
        return False


def nearest_tick(ticks, labels, at):
    """Returns the label of the tick nearest to a bar: the bars of one group stand next to the tick of the group. If the nearest
    tick is too far away, or its label is empty or only a number, returns the position of the bar as text."""
    pairs = sorted((abs(float(tick) - at), float(tick), label.get_text()) for tick, label in zip(ticks, labels))
    gaps = [abs(float(b) - float(a)) for a, b in zip(ticks, ticks[1:])]
    reach = min(gaps) / 2 if gaps else 0.5
    if not pairs or pairs[0][0] > reach or not pairs[0][2] or only_says(pairs[0][2], pairs[0][1]):
        return number_text(at)
    return pairs[0][2]


def bar_elements(ax):
    elements = []
    for container in ax.containers:
        if type(container).__name__ != "BarContainer":
            continue
        lying = getattr(container, "orientation", "vertical") == "horizontal"
        ticks = list(ax.get_yticks() if lying else ax.get_xticks())
        labels = list(ax.get_yticklabels() if lying else ax.get_xticklabels())
        for bar in container:
            at = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
            value = bar.get_width() if lying else bar.get_height()
            elements.append(
                {
                    "label": nearest_tick(ticks, labels, float(at)),
                    "group": label_of(container),
                    "value": number_text(value),
                }
            )
    return elements


def scatter_elements(ax):
    return [
        {"label": label_of(cloud), "points": [[plain(x), plain(y)] for x, y in cloud.get_offsets()]}
        for cloud in ax.collections
        if type(cloud).__name__ == "PathCollection"
    ]


def line_elements(ax):
    return [
        {"label": label_of(line), "points": [[plain(x), plain(y)] for x, y in zip(line.get_xdata(), line.get_ydata())]}
        for line in ax.lines
    ]


# The first kind whose function finds something decides the type of the chart: a box plot also has lines, and a scatter plot
# may have a fitted line.
KINDS = (
    ("pie", pie_elements, False),
    ("box_and_whisker", box_elements, True),
    ("bar", bar_elements, True),
    ("scatter", scatter_elements, True),
    ("line", line_elements, True),
)


def chart_of(ax, fallback_title):
    chart = {"type": "unknown"}
    title = ax.get_title() or fallback_title
    if title:
        chart["title"] = title
    if getattr(ax, "name", "rectilinear") == "3d":
        return chart
    for kind, read, is_plane in KINDS:
        elements = read(ax)
        if elements:
            chart["type"] = kind
            chart.update(plane_of(ax) if is_plane else {})
            chart["elements"] = elements
            break
    return chart


def picture(figure, **options):
    import base64
    import io

    file = io.BytesIO()
    figure.savefig(file, format="png", **options)
    return base64.b64encode(file.getvalue()).decode("ascii")


def part_picture(figure, ax):
    box = ax.get_tightbbox(figure.canvas.get_renderer()).transformed(figure.dpi_scale_trans.inverted())
    return picture(figure, bbox_inches=box)


def part_of(figure, ax):
    part = chart_of(ax, "")
    try:
        part["png"] = part_picture(figure, ax)
    except Exception:
        pass
    return part


def is_colorbar(ax):
    """Whether the axes are a color bar, which explains another chart and is no chart itself."""
    return "_colorbar" in ax.__dict__


def figure_chart(figure):
    # Draw the figure before reading it, because only then do the ticks have their texts.
    png = picture(figure)
    above = getattr(figure, "_suptitle", None)
    title = above.get_text() if above is not None else ""
    try:
        axes = [ax for ax in figure.axes if ax.get_visible() and not is_colorbar(ax)]
        if len(axes) == 1:
            chart = chart_of(axes[0], title)
        elif axes:
            parts = [part_of(figure, ax) for ax in axes[:MOST_PARTS]]
            chart = {"type": "composite_chart", "elements": parts}
        else:
            chart = {"type": "unknown"}
    except Exception:
        chart = {"type": "unknown"}
    if title and "title" not in chart:
        chart["title"] = title
    chart["png"] = png
    return chart


def say(chart):
    import json
    import os

    text = json.dumps({"type": "chart", "value": chart}, allow_nan=False)
    if len(text) > LONGEST_LINE:
        text = json.dumps({"type": "chart", "value": dict(chart, elements=[])}, allow_nan=False)
    sys.stdout.flush()
    data = (MARK + text + "\n").encode("ascii")
    # Write to the descriptor and not to sys.stdout, which the program may have redirected.
    while data:
        data = data[os.write(1, data) :]


def watch_pyplot(pyplot):
    """Replaces the functions that show a figure on a screen: they print the figure as JSON, and close it."""
    import matplotlib.axes
    import matplotlib.figure

    def show(*_args, **_kwargs):
        for number in pyplot.get_fignums():
            say(figure_chart(pyplot.figure(number)))
        pyplot.close("all")

    def show_figure(figure, *_args, **_kwargs):
        say(figure_chart(figure))
        pyplot.close(figure)

    pyplot.show = show
    matplotlib.figure.Figure.show = show_figure

    draw_boxes = getattr(matplotlib.axes.Axes, "bxp", None)
    if draw_boxes is None:
        return

    def bxp(ax, bxpstats, *args, **kwargs):
        drawn = draw_boxes(ax, bxpstats, *args, **kwargs)
        ax.__dict__.setdefault("_charted_boxes", []).append((bxpstats, drawn))
        return drawn

    matplotlib.axes.Axes.bxp = bxp


class PyplotWatch:
    """An import hook that calls `watch_pyplot` when the program imports pyplot, and then removes itself."""

    def find_spec(self, name, _path=None, _target=None):
        if name != "matplotlib.pyplot":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            watch_pyplot(module)

        spec.loader.exec_module = exec_module
        return spec


def prepare():
    import os

    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.meta_path.insert(0, PyplotWatch())


prepare()
