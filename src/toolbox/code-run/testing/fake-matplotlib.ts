// For tests: the parts of matplotlib that charts.py uses, so that the tests run where matplotlib is not installed.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const axes = `
class Text:
    def __init__(self, text): self.text = text
    def get_text(self): return self.text

class Labelled:
    def get_label(self): return self.label

class Wedge(Labelled):
    def __init__(self, label, theta1, theta2): self.label, self.theta1, self.theta2, self.r = label, theta1, theta2, 1

class Bar:
    def __init__(self, x, width, height): self.x, self.width, self.height = x, width, height
    def get_x(self): return self.x
    def get_y(self): return 0
    def get_width(self): return self.width
    def get_height(self): return self.height

class BarContainer(Labelled, list):
    orientation = "vertical"

class PathCollection(Labelled):
    def __init__(self, label, points): self.label, self.points = label, points
    def get_offsets(self): return self.points

class Line(Labelled):
    def __init__(self, label, xs, ys): self.label, self.xs, self.ys = label, xs, ys
    def get_xdata(self): return self.xs
    def get_ydata(self): return self.ys

class Axis:
    converter = None

class StrCategoryConverter: pass
class DateConverter: pass

class Axes:
    name = "rectilinear"
    def __init__(self):
        self.lines, self.patches, self.collections, self.containers = [], [], [], []
        self.xaxis, self.yaxis, self.title, self.ticks, self.texts = Axis(), Axis(), "", [0, 1], ["0", "1"]
    def get_title(self): return self.title
    def get_visible(self): return True
    def get_xlabel(self): return "x"
    def get_ylabel(self): return "y"
    def get_xticks(self): return self.ticks
    def get_yticks(self): return [0, 5]
    def get_xticklabels(self): return [Text(text) for text in self.texts]
    def get_yticklabels(self): return [Text("0"), Text("5")]
    def get_xscale(self): return "linear"
    def get_yscale(self): return "log"
    def plot(self, xs, ys, label="_child0"): self.lines.append(Line(label, xs, ys))
    def scatter(self, points, label="_child0"): self.collections.append(PathCollection(label, points))
    def bar(self, names, values, label="_container0"):
        container = BarContainer(Bar(i - 0.4, 0.8, value) for i, value in enumerate(values))
        container.label = label
        self.containers.append(container)
        self.ticks, self.texts, self.xaxis.converter = list(range(len(names))), names, StrCategoryConverter()
    def pie(self, sizes, labels):
        at = 0
        for size, label in zip(sizes, labels):
            self.patches.append(Wedge(label, at, at + 360 * size / sum(sizes)))
            at += 360 * size / sum(sizes)
    def bxp(self, stats):
        line = Line("_median", [0], [0])
        self.lines.append(line)
        return {"medians": [line]}
`

const figure = `
class Figure:
    def __init__(self, number): self.number, self.axes, self._suptitle = number, [], None
    def savefig(self, file, format, **options): file.write(b"\\x89PNG %d" % self.number)
`

const pyplot = `
import os
from matplotlib.axes import Axes
from matplotlib.figure import Figure
backend = os.environ.get("MPLBACKEND")
figures = {}
def figure(number=None):
    number = number or len(figures) + 1
    return figures.setdefault(number, Figure(number))
def axes(figure_=None):
    figure_ = figure_ or figure()
    figure_.axes.append(Axes())
    return figure_.axes[-1]
def get_fignums(): return sorted(figures)
def close(which): figures.clear()
def show(): raise RuntimeError("there is no screen")
`

/** Writes the fake package and returns the PYTHONPATH that contains it. */
export const makeFakeMatplotlib = (directory: string): string => {
  const place = join(directory, 'python', 'matplotlib')
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, '__init__.py'), '')
  writeFileSync(join(place, 'axes.py'), axes)
  writeFileSync(join(place, 'figure.py'), figure)
  writeFileSync(join(place, 'pyplot.py'), pyplot)
  return join(directory, 'python')
}
