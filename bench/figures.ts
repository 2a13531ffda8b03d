// Lists the figures: everything that bench/run.ts measures of a server, each with its lower bounds (floors.ts). A measurement takes
// few samples, so that two servers and the lower bounds can be measured in turns.
import { once } from 'node:events'
import type { WebSocket } from 'ws'
import { type Floors, plainServer, repeat } from './floors.ts'
import { openReader } from './reader.ts'
import { type Samples, timed } from './samples.ts'
import type { Sandbox, Served } from './served.ts'

export type Taken = {
  /** The times of the measured server, in milliseconds. */
  ours: Samples
  /**
   * The times of each lower bound, in milliseconds. The server cannot be faster than all lower bounds together (the sum of their
   * medians).
   */
  floors: Samples[]
}

export type Figure = { name: string; floor: string; take: () => Promise<Taken> }

export const previewPort = 3000
const megabytes = 128
const keystrokes = 20

/** A terminal in a sandbox, for the measurement of how long typed text takes to come back. */
class Terminal {
  readonly #socket: WebSocket
  #heard = ''
  #listen = () => {}

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data, isBinary) => {
      if (!isBinary) return
      this.#heard += String(data)
      this.#listen()
    })
  }

  /** Types keys and resolves when the terminal has sent back the text `echo`. */
  async type(keys: string, echo: string): Promise<void> {
    this.#heard = ''
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#listen = () => this.#heard.includes(echo) && resolve()
    this.#socket.send(keys)
    await promise
  }
}

const openTerminal = async (served: Served, box: Sandbox) => {
  await served.toolbox('POST', box, '/process/pty', { id: 'typing', cols: 200, rows: 24 })
  const socket = served.socket(box, '/process/pty/typing/connect')
  const terminal = new Terminal(socket)
  await once(socket, 'open')
  await terminal.type('PS1=rea""dy; echo\r', 'ready')
  return terminal
}

/** Prepares a sandbox, a warm pool, a server behind a preview, a terminal and sessions. Returns the benchmarks that use them. */
export const prepare = async (
  served: Served,
  floors: Floors,
  rounds: number,
): Promise<{ box: Sandbox; figures: Figure[] }> => {
  const become = async (box: Sandbox, verb: string, state: string) => {
    let now = await served.api('POST', `/sandbox/${box.id}/${verb}`, {})
    while (now.state !== state) now = await served.api('GET', `/sandbox/${box.id}`)
  }
  const make = async () => {
    const box = await served.api('POST', '/sandbox', { autoStopInterval: 0 })
    let now = box
    while (now.state !== 'started') now = await served.api('GET', `/sandbox/${box.id}`)
    return box
  }
  const box = await make()
  const paused = await make()
  const restarted = await make()
  const session = (sessionId: string) => served.toolbox('POST', box, '/process/session', { sessionId })
  const inSession = async (sessionId: string, command: string, runAsync = false) => {
    const answer = await served.toolbox('POST', box, `/process/session/${sessionId}/exec`, { command, runAsync })
    return (JSON.parse(answer.toString()) as { cmdId: string }).cmdId
  }
  for (const id of ['exec', 'logs', 'server']) await session(id)
  await inSession('server', `node -e "${plainServer(previewPort).replaceAll('"', '\\"')}"`, true)
  while (
    await served.preview(box, previewPort).then(
      () => false,
      () => true,
    )
  );
  await served.execute(box, `head -c ${megabytes}M /dev/zero > big`)
  const terminal = await openTerminal(served, box)
  await served.api('POST', '/warm-pools', { snapshot: 'default', pool: 2 })
  const isPoolFull = async () =>
    (await served.api<{ currentSize: number }[]>('GET', '/warm-pools'))[0]?.currentSize === 2

  const few = Math.ceil(rounds / 10)
  const a = () => floors.http(rounds)
  const b = (...argv: string[]) => floors.agent(served, box, rounds, ...argv)
  const files = async (work: () => Promise<unknown>): Promise<Taken> => ({
    ours: await repeat(1, work),
    floors: [[(await floors.cat(served, box, 'big', '/dev/null')).ended]],
  })
  /** Measures a verb (`index` 0), or the start that undoes it (`index` 1). */
  const verbs =
    (box: Sandbox, [verb, state]: [string, string], index: 0 | 1): Figure['take'] =>
    async () => {
      const ours: Samples = []
      for (let round = 0; round < few; round++) {
        const there = await timed(() => become(box, verb, state))
        const back = await timed(() => become(box, 'start', 'started'))
        ours.push([there, back][index]!)
      }
      return { ours, floors: [await a(), await floors.row(rounds)] }
    }
  const toPaused: [string, string] = ['pause', 'paused']
  const toStopped: [string, string] = ['stop', 'stopped']
  const toFirstExec = async (make: () => Promise<Sandbox>): Promise<Taken> => {
    const began = performance.now()
    const made = await make()
    await served.execute(made, 'true')
    const ours = [performance.now() - began]
    await served.api('DELETE', `/sandbox/${made.id}`)
    const http = await a()
    return { ours, floors: [http, http, await b('true'), await floors.row(rounds)] }
  }
  /** Pause in ms before a measurement. Meanwhile the server makes a network ready for the next sandbox. */
  const restMs = 300

  const figures: Figure[] = [
    {
      name: 'a call that does nothing',
      floor: 'a',
      take: async () => ({ ours: await repeat(rounds, () => served.api('GET', '/users/me')), floors: [await a()] }),
    },
    {
      name: 'a sandbox is read',
      floor: 'a',
      take: async () => ({
        ours: await repeat(rounds, () => served.api('GET', `/sandbox/${box.id}`)),
        floors: [await a()],
      }),
    },
    {
      name: 'execute',
      floor: 'a + b',
      take: async () => ({
        ours: await repeat(rounds, () => served.execute(box, 'true')),
        floors: [await a(), await b('true')],
      }),
    },
    {
      name: 'code-run, Python',
      floor: 'a + b (python3 -c)',
      take: async () => ({
        ours: await repeat(few, () =>
          served.toolbox('POST', box, '/process/code-run', { code: 'pass', language: 'python' }),
        ),
        floors: [await a(), await floors.agent(served, box, few, 'python3', '-c', 'pass')],
      }),
    },
    {
      name: 'session exec',
      floor: 'a + b',
      take: async () => ({
        ours: await repeat(rounds, () => inSession('exec', 'true')),
        floors: [await a(), await b('true')],
      }),
    },
    {
      name: 'PTY echo',
      floor: 'a',
      take: async () => {
        const ours = await repeat(keystrokes, () => terminal.type('x', 'x'))
        await terminal.type('\x15\r', 'ready')
        return { ours, floors: [await a()] }
      },
    },
    {
      name: `download of ${megabytes} MiB`,
      floor: 'cat',
      take: () => files(() => served.curl(box, '/files/download?path=big', '-o', '/dev/null')),
    },
    {
      name: `upload of ${megabytes} MiB`,
      floor: 'cat, fsync',
      take: async () => {
        const send = ['-T', floors.bigFile(megabytes), '-X', 'POST']
        const ours = await repeat(1, () => served.curl(box, '/files/upload?path=sent', ...send))
        return { ours, floors: [[(await floors.cat(served, box, 'big', 'copy')).synced]] }
      },
    },
    {
      name: `follow of ${megabytes} MiB`,
      floor: 'cat',
      take: async () => {
        const reader = await openReader()
        return await files(async () => {
          const id = await inSession('logs', 'cat big', true)
          await served.readLog(reader, box, `/process/session/logs/command/${id}/logs?follow=true`)
        })
      },
    },
    {
      name: 'preview GET',
      floor: 'direct',
      take: async () => ({
        ours: await repeat(rounds, () => served.preview(box, previewPort)),
        floors: [await floors.direct(served, box, previewPort, rounds)],
      }),
    },
    {
      name: 'warm create to first exec',
      floor: '2a + b + c',
      take: async () => {
        while (!(await isPoolFull())) await new Promise((resolve) => setTimeout(resolve, 100))
        return await toFirstExec(() => served.api('POST', '/sandbox', {}))
      },
    },
    {
      name: 'fork to first exec',
      floor: '2a + b + c',
      take: async () => {
        await new Promise((resolve) => setTimeout(resolve, restMs))
        return await toFirstExec(() => served.api('POST', `/sandbox/${restarted.id}/fork`, {}))
      },
    },
    { name: 'pause', floor: 'a + c', take: verbs(paused, toPaused, 0) },
    { name: 'resume', floor: 'a + c', take: verbs(paused, toPaused, 1) },
    { name: 'stop', floor: 'a + c', take: verbs(restarted, toStopped, 0) },
    { name: 'start', floor: 'a + c', take: verbs(restarted, toStopped, 1) },
  ]
  return { box, figures }
}
