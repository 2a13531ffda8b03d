// Takes the chart lines out of a program's output: `chartMark`, one chart as JSON, and a newline. All other output passes through
// unchanged.
import { BoundedOutput } from '#src/toolbox/running/output.ts'

export const chartMark = Buffer.from('dtn_artifact_k39fd2:')

const chartBytes = 8 * 1024 * 1024
const allChartsBytes = 32 * 1024 * 1024
const chartCount = 64
/**
 * Maximum number of objects and arrays in all charts of one program. In memory, an object may take twenty times as much as its
 * JSON.
 */
const allContainers = 250_000
const newline = 0x0a

const containersIn = (text: string): number => {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '{' || character === '[') count += 1
  }
  return count
}

/** Returns the chart that a line of output contains, or `undefined`. The program may put anything into this object. */
const chartIn = (line: string): object | undefined => {
  try {
    const { type, value } = JSON.parse(line)
    return type === 'chart' && typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

export class ArtifactSieve implements Disposable {
  readonly charts: object[] = []
  readonly #rest: BoundedOutput
  /** Number of bytes of `chartMark` that the current line has matched so far. -1: the current line is ordinary output. */
  #matched = 0
  #line: BoundedOutput | undefined
  #chartBytesLeft = allChartsBytes
  #containersLeft = allContainers

  constructor(rest: BoundedOutput) {
    this.#rest = rest
  }

  take(data: Buffer): void {
    for (let at = 0; at < data.length; ) {
      if (this.#line !== undefined || this.#matched < 0) at = this.#takeLine(data, at)
      else at = this.#takeMark(data, at)
    }
  }

  /** Handles the last line, which may lack a newline. Call this when the output has ended. */
  end(): void {
    if (this.#matched > 0) this.#rest.add(chartMark.subarray(0, this.#matched))
    this.#matched = 0
    this.#finishChart()
  }

  #takeMark(data: Buffer, at: number): number {
    if (data[at] !== chartMark[this.#matched]) {
      this.#rest.add(chartMark.subarray(0, this.#matched))
      this.#matched = -1
      return at
    }
    this.#matched += 1
    if (this.#matched === chartMark.length) {
      this.#matched = 0
      this.#line = new BoundedOutput(this.#rest.owner, Math.min(chartBytes, this.#chartBytesLeft))
    }
    return at + 1
  }

  #takeLine(data: Buffer, at: number): number {
    const found = data.indexOf(newline, at)
    const next = found < 0 ? data.length : found + 1
    const target = this.#line ?? this.#rest
    target.add(data.subarray(at, next))
    if (found >= 0) {
      this.#matched = 0
      this.#finishChart()
    }
    return next
  }

  #finishChart(): void {
    if (this.#line === undefined) return
    const isWhole = this.#line.droppedBytes === 0
    if (isWhole && this.charts.length < chartCount) this.#putChart(this.#line.text())
    this.#chartBytesLeft -= this.#line.keptBytes
    this.#line[Symbol.dispose]()
    this.#line = undefined
  }

  #putChart(line: string): void {
    const containers = containersIn(line)
    if (containers > this.#containersLeft) return
    const chart = chartIn(line)
    if (chart === undefined) return
    this.charts.push(chart)
    this.#containersLeft -= containers
  }

  [Symbol.dispose](): void {
    this.#line?.[Symbol.dispose]()
    this.#line = undefined
  }
}
