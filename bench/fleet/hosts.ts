// Simulates many hosts in one process. Each has a link to control, reads its list of sandboxes, sends heartbeats and use, and
// reports each assignment as done. `fleet.ts` starts this process, and reads its counters by messages.
import { WebSocket } from 'ws'
import { mostSamples } from '#src/wire/meter-reading.ts'
import type { Assignment, FromRunner, ToRunner } from '#src/wire/runner-link.ts'

/** `hosts`: the ids and tokens of the hosts. `doneAfterMs`: how long a simulated host takes for an assignment. */
export type FleetStart = {
  base: string
  hosts: readonly { id: string; token: string }[]
  doneAfterMs: number
  meterSeconds: number
}
export type FleetCounts = { linked: number; listed: number; assigned: number; reported: number; relinks: number }

const counts: FleetCounts = { linked: 0, listed: 0, assigned: 0, reported: 0, relinks: 0 }
const pageSize = 200
const reconnectMs = { least: 100, most: 5000 }

const capabilities = {
  cpu: 64,
  memoryGiB: 256,
  diskGiB: 4000,
  runtime: 'simulated',
  runtimeVersion: '1',
  hardDiskLimit: true,
  pause: 'memory',
  fork: 'disk',
  volumes: 'disk',
} as const

class Host {
  readonly #start: FleetStart
  readonly #token: string
  readonly #started = new Set<string>()
  #failures = 0

  constructor(start: FleetStart, token: string) {
    this.#start = start
    this.#token = token
    this.#connect()
  }

  #connect() {
    const { base, meterSeconds } = this.#start
    const socket = new WebSocket(`${base.replace('http', 'ws')}/runners/link`, {
      headers: { authorization: `Bearer ${this.#token}` },
      perMessageDeflate: false,
    })
    const timers: NodeJS.Timeout[] = []
    const say = (message: FromRunner) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
    }
    socket.once('open', () => {
      counts.linked += 1
      this.#failures = 0
      say({ type: 'hello', address: 'unix:/simulated.sock', images: ['default'], capabilities, version: '0.1.0' })
      const meters = setInterval(() => this.#sayMeters(say), meterSeconds * 1000)
      timers.push(meters)
    })
    socket.on('message', (data) => {
      const message = JSON.parse(String(data)) as ToRunner
      if (message.type === 'welcome') {
        timers.push(setInterval(() => say({ type: 'alive' }), message.heartbeatSeconds * 1000))
      }
      if (message.type === 'assign') this.#take(message.assignment, say)
      if (message.type === 'list') void this.#readList(say)
    })
    socket.on('error', () => {})
    socket.once('close', () => {
      for (const timer of timers) clearInterval(timer)
      if (this.#failures === 0) {
        counts.linked -= 1
        counts.relinks += 1
      }
      this.#failures += 1
      const waitMs = Math.min(reconnectMs.least * 2 ** this.#failures, reconnectMs.most)
      setTimeout(() => this.#connect(), waitMs * (0.5 + Math.random() / 2))
    })
  }

  #take({ sandboxId, generation, target, archive }: Assignment, say: (message: FromRunner) => void) {
    counts.assigned += 1
    const written =
      archive === undefined ? {} : { archive: { id: archive.id, sha256: 'a'.repeat(64), bytes: 1, storedBytes: 1 } }
    setTimeout(() => {
      if (target === 'started') this.#started.add(sandboxId)
      else this.#started.delete(sandboxId)
      counts.reported += 1
      say({
        type: 'report',
        report: { sandboxId, generation, state: target, ...(target === 'archived' ? written : {}) },
      } as FromRunner)
    }, this.#start.doneAfterMs)
  }

  #sayMeters(say: (message: FromRunner) => void) {
    const samples = [...this.#started].map((sandboxId) => ({
      sandboxId,
      ...{ cpuCount: 1, cpuUsedPct: 3.1, memTotal: 2 ** 30, memUsed: 2 ** 27, memCache: 2 ** 26 },
      ...{ diskTotal: 3 * 2 ** 30, diskUsed: 2 ** 28 },
    }))
    for (let at = 0; at < samples.length; at += mostSamples) {
      say({ type: 'meters', samples: samples.slice(at, at + mostSamples) })
    }
  }

  /** Reads control's whole list of this host's sandboxes, as a runner does when control asks it to. */
  async #readList(say: (message: FromRunner) => void) {
    for (let after = ''; ; ) {
      const url = `${this.#start.base}/sandbox/for-runner?envOnce=true&limit=${pageSize}${after && `&after=${after}`}`
      const reply = await fetch(url, { headers: { authorization: `Bearer ${this.#token}` } }).catch(() => undefined)
      if (reply?.ok !== true) return
      const page = (await reply.json()) as { id: string; state: string; assignment: Assignment }[]
      for (const { state, assignment } of page) {
        if (assignment.target === 'started') this.#started.add(assignment.sandboxId)
        if (assignment.target !== state) this.#take(assignment, say)
      }
      if (page.length < pageSize) break
      after = page.at(-1)!.id
    }
    counts.listed += 1
  }
}

process.on('message', (message: FleetStart | 'counts') => {
  if (message === 'counts') process.send?.(counts)
  else for (const { token } of message.hosts) new Host(message, token)
})
process.on('disconnect', () => process.exit())
