// For tests of sessions: queues commands of a session and reads their output.
import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import type { CommandEvent, Sessions } from '../agent.ts'
import type { SessionSpec } from '../sessions.ts'

export const spec = (id: string, more: Partial<SessionSpec> = {}): SessionSpec => ({
  ...{ id, shell: 'bash', env: {}, cwd: '/', user: userInfo().username, ringBytes: 1 << 20 },
  ...more,
})

let lastId = 0
export const queue = async (sessions: Sessions, session: string, text: string, keepInput = false): Promise<string> => {
  const id = `c${++lastId}`
  await sessions.exec(session, { id, text, keepInput, echoInput: false })
  return id
}

type CommandOutput = { stdout: string; stderr: string; all: string; lost: number; end: CommandEvent | undefined }

export const read = async (events: AsyncIterable<CommandEvent>): Promise<CommandOutput> => {
  const told: CommandOutput = { stdout: '', stderr: '', all: '', lost: 0, end: undefined }
  for await (const event of events) {
    if (event.type === 'exit') told.end = event
    else if (event.type === 'truncated') told.lost += event.lostBytes
    else {
      told[event.stream] += event.data.toString('latin1')
      told.all += event.data.toString('latin1')
    }
  }
  return told
}

/** Runs a command, and returns its output on each stream and its exit code. */
export const run = async (
  sessions: Sessions,
  session: string,
  text: string,
): Promise<[string, string, number | null]> => {
  const { stdout, stderr, end } = await read(sessions.attach(session, await queue(sessions, session, text), 0))
  assert.equal(end?.type, 'exit')
  return [stdout, stderr, end.end?.exitCode ?? null]
}

export const untilSeen = async (
  sessions: Sessions,
  session: string,
  command: string,
  wanted: RegExp,
): Promise<string> => {
  let seen = ''
  for await (const event of sessions.attach(session, command, 0)) {
    if (event.type === 'output') seen += event.data.toString()
    if (wanted.test(seen)) return seen
  }
  return assert.fail(`the command ended without ${wanted}: ${seen}`)
}
