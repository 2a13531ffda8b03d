import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { suite, test } from 'node:test'
import { startToolbox } from '../testing/toolbox.ts'
import { makeFakeMatplotlib } from './testing/fake-matplotlib.ts'

const can = (code: string) => {
  try {
    // The PATH of these tests' toolbox has these directories too, so this check and the toolbox find the same Python.
    execFileSync('python3', ['-c', code], { stdio: 'ignore', env: { PATH: '/usr/local/bin:/usr/bin:/bin' } })
    return true
  } catch {
    return false
  }
}
const needsPython = can('pass') ? {} : { skip: 'needs python3' }
const needsMatplotlib = can('import matplotlib') ? {} : { skip: 'needs matplotlib' }

const run = async (code: string) => {
  await using box = await startToolbox()
  const envs = { PYTHONPATH: makeFakeMatplotlib(box.directory) }
  const { status, body } = await box.post('/process/code-run', { code, language: 'python', envs })
  assert.equal(status, 200)
  return body
}

const chartOf = async (code: string) => {
  const { result, artifacts, exitCode } = await run(`import matplotlib.pyplot as plt\n${code}\nplt.show()`)
  assert.deepEqual([exitCode, result, artifacts?.charts.length], [0, '', 1])
  const [{ png, ...chart }] = artifacts.charts
  assert.match(Buffer.from(png, 'base64').toString('latin1'), /PNG/)
  return chart
}

const plane = {
  x_label: 'x',
  y_label: 'y',
  x_ticks: [0, 1],
  y_ticks: [0, 5],
  x_tick_labels: ['0', '1'],
  y_tick_labels: ['0', '5'],
  x_scale: 'linear',
  y_scale: 'log',
}

suite('charts of Python code', needsPython, () => {
  test('a line chart has its points and labels, with null for a number that is not finite', async () => {
    assert.deepEqual(
      await chartOf(
        'ax = plt.axes(); ax.title = "T"; ax.plot([1, 2.5], [3, float("nan")], label="a"); ax.plot([1], [1])',
      ),
      {
        type: 'line',
        title: 'T',
        ...plane,
        elements: [
          {
            label: 'a',
            points: [
              [1, 3],
              [2.5, null],
            ],
          },
          { label: '', points: [[1, 1]] },
        ],
      },
    )
  })

  test('a chart with dates on an axis has the scale datetime', async () => {
    const chart = await chartOf(
      'import datetime; from matplotlib.axes import DateConverter\nax = plt.axes(); ax.xaxis.converter = DateConverter(); ax.plot([datetime.date(2024, 1, 2)], [1])',
    )
    assert.deepEqual([chart.x_scale, chart.elements[0].points], ['datetime', [['2024-01-02', 1]]])
  })

  test('a scatter chart has its points, with or without a fitted line', async () => {
    assert.deepEqual(await chartOf('ax = plt.axes(); ax.scatter([(1, 2)], label="s"); ax.plot([0], [0])'), {
      type: 'scatter',
      ...plane,
      elements: [{ label: 's', points: [[1, 2]] }],
    })
  })

  test('a bar chart has a label, a group and a value for each bar', async () => {
    assert.deepEqual(await chartOf('plt.axes().bar(["u", "v"], [3, 4.5], label="g")'), {
      type: 'bar',
      ...plane,
      x_tick_labels: ['u', 'v'],
      x_scale: 'categorical',
      elements: [
        { label: 'u', group: 'g', value: '3' },
        { label: 'v', group: 'g', value: '4.5' },
      ],
    })
  })

  test('a pie chart has a label, an angle and a radius for each slice', async () => {
    assert.deepEqual(await chartOf('plt.axes().pie([1, 3], ["p", "q"])'), {
      type: 'pie',
      elements: [
        { label: 'p', angle: 90, radius: 1 },
        { label: 'q', angle: 270, radius: 1 },
      ],
    })
  })

  test('a box_and_whisker chart has the minimum, quartiles, median, maximum and outliers', async () => {
    const stats = '[{"label": "b", "whislo": 1, "q1": 2, "med": 3, "q3": 4, "whishi": 5, "fliers": [9]}]'
    assert.deepEqual(await chartOf(`plt.axes().bxp(${stats})`), {
      type: 'box_and_whisker',
      ...plane,
      elements: [{ label: 'b', min: 1, first_quartile: 2, median: 3, third_quartile: 4, max: 5, outliers: [9] }],
    })
  })

  test('a figure with several plots is a composite_chart with one chart per plot', async () => {
    const { elements, ...chart } = await chartOf(
      'f = plt.figure(); a = plt.axes(f); a.title = "A"; a.plot([1], [2]); plt.axes(f).pie([1], ["p"])\nfrom matplotlib.axes import Text\nf._suptitle = Text("both")',
    )
    assert.deepEqual(chart, { type: 'composite_chart', title: 'both' })
    assert.deepEqual(
      elements.map(({ type, title }: { type: string; title?: string }) => [type, title]),
      [
        ['line', 'A'],
        ['pie', undefined],
      ],
    )
  })

  test('a figure of an unknown kind is a chart of type unknown, without elements', async () => {
    assert.deepEqual(await chartOf('plt.axes().title = "picture"'), { type: 'unknown', title: 'picture' })
    assert.deepEqual(await chartOf('plt.axes().lines = None'), { type: 'unknown' })
  })

  test('plt.show() returns each open figure as a chart and closes it, and printed output keeps its order', async () => {
    const { result, artifacts } = await run(
      'import matplotlib.pyplot as plt\nprint("a")\nplt.axes(plt.figure(1)); plt.axes(plt.figure(2))\nplt.show()\nprint("b", plt.get_fignums(), plt.backend)\nplt.show()',
    )
    assert.equal(result, 'a\nb [] Agg\n')
    assert.equal(artifacts.charts.length, 2)
  })

  test('Python code that imports matplotlib is the main module, and its errors show the lines of that code', async () => {
    const { exitCode, result } = await run(
      '"""matplotlib"""\nfrom __future__ import annotations\nimport sys\nprint(__name__, __doc__, sys.argv)\ndef f():\n  raise ValueError("x")\nf()',
    )
    assert.equal(exitCode, 1)
    assert.equal(
      result.replace(/^ {4}.*\n/gm, ''),
      "__main__ matplotlib ['-']\nTraceback (most recent call last):\n" +
        '  File "<stdin>", line 7, in <module>\n  File "<stdin>", line 6, in f\nValueError: x\n',
    )
  })

  test('a syntax error in Python code that imports matplotlib has the line number of the caller’s code', async () => {
    const { exitCode, result } = await run('import matplotlib\n\nx = = 1')
    assert.equal(exitCode, 1)
    assert.match(result, /^ {2}File "<stdin>", line 3\n/)
    assert.match(result, /SyntaxError/)
  })

  test('Python code that imports matplotlib can call sys.exit, and a missing module is an ordinary error', async () => {
    assert.equal((await run('import matplotlib, sys\nsys.exit(5)')).exitCode, 5)
    const { result } = await run('import matplotlib.nothing')
    assert.match(result, /line 1, in <module>\n(?:.*\n)*ModuleNotFoundError/)
  })
})

test('figures made with the real matplotlib become charts', needsMatplotlib, async () => {
  await using box = await startToolbox()
  const code = 'import matplotlib.pyplot as plt\nplt.boxplot([1, 2, 3]); plt.title("t"); plt.show()'
  const { body } = await box.post('/process/code-run', { code, language: 'python' })
  assert.deepEqual([body.artifacts?.charts[0].type, body.artifacts?.charts[0].title], ['box_and_whisker', 't'])
  const coloured = 'import matplotlib.pyplot as plt\nplt.scatter([1, 2], [3, 4], c=[5, 6])\nplt.colorbar()\nplt.show()'
  const { body: bar } = await box.post('/process/code-run', { code: coloured, language: 'python' })
  assert.equal(bar.artifacts?.charts[0].type, 'scatter')
})
