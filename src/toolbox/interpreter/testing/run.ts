// For tests: a client of one execution that records all messages.
import assert from 'node:assert/strict'
import type { WebSocket } from 'ws'
import type { Toolbox } from '../../testing/toolbox.ts'

export const contextPath = '/process/interpreter/context'

type Message = Record<string, string>
type Outcome = { messages: Message[]; code: number; reason: string }

/** Sends one frame, and records all messages until the close. */
export class Run {
  readonly socket: WebSocket
  readonly messages: Message[] = []
  readonly outcome: Promise<Outcome>
  hasEnded = false

  constructor(box: Toolbox, frame: string | Buffer) {
    this.socket = box.socket('/process/interpreter/execute')
    this.socket.on('open', () => this.socket.send(frame))
    this.socket.on('message', (data) => this.messages.push(JSON.parse(data.toString())))
    this.socket.on('error', () => undefined)
    this.outcome = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => {
        this.hasEnded = true
        resolve({ messages: this.messages, code, reason: reason.toString() })
      })
    })
  }

  text(type = 'stdout'): string {
    return this.messages.map((message) => (message['type'] === type ? message['text'] : '')).join('')
  }
}

export const start = (box: Toolbox, code: string, more: object = {}) => new Run(box, JSON.stringify({ code, ...more }))

/** Runs code, expects a clean end, and returns the printed text. */
export const printed = async (box: Toolbox, code: string, more: object = {}) => {
  const run = start(box, code, more)
  const { code: closeCode, messages } = await run.outcome
  assert.deepEqual([closeCode, messages.at(-1)], [1000, completed], JSON.stringify(messages))
  assert.equal(run.text('error'), '')
  return run.text()
}

export const completed = { type: 'control', text: 'completed' }

export const newContext = async (box: Toolbox, body: object = {}): Promise<string> =>
  (await box.post(contextPath, body)).body.id

/** Python code that waits for a file made by the test, so that the test does not depend on time. */
export const waitFor = (file: string) =>
  `import os, time\nwhile not os.path.exists(${JSON.stringify(file)}): time.sleep(0.01)\n`
