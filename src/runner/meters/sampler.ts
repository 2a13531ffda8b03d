// Reports the resource use of sandboxes to control at intervals. Unchanged use is reported only every five minutes, so idle
// sandboxes cause little traffic.
import type { Logger } from '#src/kit/log.ts'
import { repeat } from '#src/kit/repeat.ts'
import { type MeterReading, type MeterSample, mostSamples } from '#src/wire/meter-reading.ts'

type SamplerParts = {
  measureAll: () => Promise<ReadonlyMap<string, MeterReading>>
  /** Sends samples to control. Returns whether the samples could be sent. */
  say: (samples: readonly MeterSample[]) => boolean
  /** Seconds between two readings of what the sandboxes use. 0: no use is read or reported. */
  everySeconds: number
  log: Logger
  now?: () => number
}

const quietMs = 5 * 60_000
/** Smallest changes that are reported: percentage points of processor use, and bytes of memory or disk. */
const visiblePct = 1
const visibleBytes = 1024 * 1024

const isVisible = (before: MeterReading, now: MeterReading): boolean =>
  Math.abs(before.cpuUsedPct - now.cpuUsedPct) >= visiblePct ||
  (['cpuCount', 'memTotal', 'diskTotal'] as const).some((name) => before[name] !== now[name]) ||
  (['memUsed', 'memCache', 'diskUsed'] as const).some(
    (name) => Math.abs((before[name] ?? 0) - (now[name] ?? 0)) >= visibleBytes,
  )

export class Sampler implements Disposable {
  readonly #parts: SamplerParts
  readonly #now: () => number
  readonly #told = new Map<string, { reading: MeterReading; at: number }>()
  readonly #stop: () => void

  constructor(parts: SamplerParts) {
    const { everySeconds, log, now = Date.now } = parts
    this.#parts = parts
    this.#now = now
    this.#stop = repeat(
      everySeconds,
      () => this.look(),
      (err) => log.warn({ err }, 'what sandboxes use could not be read'),
    )
  }

  /** Reads the use of all sandboxes once, and reports the sandboxes whose use has changed. */
  async look(): Promise<void> {
    const { measureAll, say, everySeconds } = this.#parts
    const readings = await measureAll()
    const at = this.#now()
    // An unchanged sample is sent again after about `quietMs`, at the reading that is nearest to that time.
    const dueBefore = at - quietMs + (everySeconds * 1000) / 2
    for (const sandboxId of this.#told.keys()) if (!readings.has(sandboxId)) this.#told.delete(sandboxId)
    const news = [...readings].filter(([sandboxId, reading]) => {
      const told = this.#told.get(sandboxId)
      return told === undefined || told.at <= dueBefore || isVisible(told.reading, reading)
    })
    for (let from = 0; from < news.length; from += mostSamples) {
      const some = news.slice(from, from + mostSamples)
      if (!say(some.map(([sandboxId, reading]) => ({ sandboxId, ...reading })))) return
      for (const [sandboxId, reading] of some) this.#told.set(sandboxId, { reading, at })
    }
  }

  [Symbol.dispose]() {
    this.#stop()
  }
}
