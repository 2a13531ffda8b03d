// A sandbox for a test. The sandbox is created and used through the public API, and deleted when the test ends.
import assert from 'node:assert/strict'
import type { Platform } from './harness.ts'

export type Answer<Body = Record<string, unknown>> = { status: number; body: Body }

export type Box = {
  id: string
  record: Record<string, unknown>
  /** Calls the toolbox of this sandbox. `path` begins with a slash. */
  toolbox: (method: string, path: string, body?: unknown) => Promise<Answer>
  /** Runs a command and returns its output without the last newline. Fails the test if the exit code is not 0. */
  run: (command: string, options?: { timeout?: number; cwd?: string; envs?: Record<string, string> }) => Promise<string>
  /** Runs a command and returns its output and exit code, even if the exit code is not 0. */
  try: (command: string, options?: { timeout?: number; cwd?: string }) => Promise<{ exitCode: number; result: string }>
  [Symbol.asyncDispose]: () => Promise<void>
}

/** Creates a sandbox. It is started when this function returns, because `POST /sandbox` waits for the start. */
export const createBox = async (platform: Platform, body: Record<string, unknown> = {}): Promise<Box> => {
  const created = await platform.api('POST', '/sandbox', body)
  assert.equal(created.status, 200, JSON.stringify(created.body))
  const record = created.body as Record<string, unknown>
  assert.equal(record['state'], 'started', JSON.stringify(record))
  return boxOf(platform, record)
}

/** Returns a `Box` for a sandbox that exists already. */
export const boxOf = (platform: Platform, record: Record<string, unknown>): Box => {
  const id = String(record['id'])
  const toolbox: Box['toolbox'] = async (method, path, body) => {
    const reply = await fetch(`${record['toolboxProxyUrl']}/${id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${platform.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    return { status: reply.status, body: text === '' ? {} : JSON.parse(text) }
  }
  const attempt: Box['try'] = async (command, options = {}) => {
    const { status, body } = await toolbox('POST', '/process/execute', { command, timeout: 60, ...options })
    assert.equal(status, 200, JSON.stringify(body))
    return body as { exitCode: number; result: string }
  }
  return {
    id,
    record,
    toolbox,
    try: attempt,
    run: async (command, options) => {
      const { exitCode, result } = await attempt(command, options)
      assert.equal(exitCode, 0, `${command}: exit ${exitCode}\n${result}`)
      return result.replace(/\n$/, '')
    },
    [Symbol.asyncDispose]: async () => {
      await platform.api('DELETE', `/sandbox/${id}`)
    },
  }
}

/** Waits until `done` returns true. After `seconds`, throws an error that names `what`. */
export const until = async (what: string, done: () => Promise<boolean> | boolean, seconds = 30): Promise<void> => {
  const end = Date.now() + seconds * 1000
  while (!(await done())) {
    if (Date.now() > end) assert.fail(`not within ${seconds} s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
