// For tests: a client of a terminal that records all messages.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WebSocket } from 'ws'
import { bytesOf } from '#src/http/socket.ts'
import { until } from '../../agent/testing/native-agent.ts'
import { startToolbox, type Toolbox } from '../../testing/toolbox.ts'

/** Starts a toolbox that removes all jobs at the end. Interactive shells ignore SIGTERM, so the agent would wait for them. */
export const startBox: typeof startToolbox = async (changes = {}) => {
  // A login shell reads the profile of its home. The home is empty, so that this machine's profile does not matter.
  const home = mkdtempSync(join(tmpdir(), 'alcove-home-'))
  const box = await startToolbox({ ...changes, env: { PATH: process.env['PATH'] ?? '', HOME: home, ...changes.env } })
  const { jobs } = box.native.agent
  return {
    ...box,
    [Symbol.asyncDispose]: async () => {
      for (const { id } of await jobs.list()) await jobs.remove(id)
      await box[Symbol.asyncDispose]()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

export const connectedMessage = { type: 'control', status: 'connected' }

export class Terminal {
  readonly socket: WebSocket
  /** Parsed text frames, in order of arrival. */
  readonly controls: Record<string, unknown>[] = []
  /** Resolves with the status of a refused upgrade, or the code and reason of the close. */
  readonly end: Promise<{ status?: number; body?: string; code?: number; reason?: string }>
  #pieces: Buffer[] = []
  hasEnded = false

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data, isBinary) => {
      if (isBinary) this.#pieces.push(bytesOf(data))
      else this.controls.push(JSON.parse(data.toString()))
    })
    this.end = new Promise<Awaited<Terminal['end']>>((resolve) => {
      socket.on('error', () => undefined)
      socket.on('unexpected-response', async (_request, answer) => {
        let body = ''
        for await (const piece of answer.setEncoding('utf8')) body += piece
        resolve({ status: answer.statusCode ?? 0, body })
      })
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    }).finally(() => {
      this.hasEnded = true
    })
  }

  get output(): Buffer {
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0] ?? Buffer.alloc(0)
  }

  get text(): string {
    return this.output.toString()
  }

  async connected(): Promise<this> {
    await until(() => this.controls.length > 0 || this.hasEnded, 'the first message')
    assert.deepEqual(this.controls[0], connectedMessage)
    return this
  }

  async shows(wanted: RegExp): Promise<RegExpExecArray> {
    await until(() => wanted.test(this.text), String(wanted)).catch((error: Error) => {
      assert.fail(`${error.message} in ${JSON.stringify(this.text.slice(-2000))}`)
    })
    return wanted.exec(this.text)!
  }

  type(text: string | Uint8Array): void {
    this.socket.send(typeof text === 'string' ? Buffer.from(text) : text)
  }

  hangUp(): void {
    this.socket.terminate()
  }
}

export const pty = '/process/pty'
export const exitControl = 'X-Daytona-Pty-Exit-Control'
export const envsToken = (value: unknown) =>
  `X-Daytona-Pty-Envs~${Buffer.from(JSON.stringify(value)).toString('base64url')}`

export const connect = async (box: Toolbox, id: string, offered: string[] = [exitControl]) =>
  await new Terminal(box.socket(`${pty}/${encodeURIComponent(id)}/connect`, offered)).connected()

/** Returns the ids in the list of terminals. */
export const listed = async (box: Toolbox) => (await box.get(pty)).body.sessions.map(({ id }: { id: string }) => id)
