// What the gate, and the runner for a sandbox's life, can ask of the agent in one sandbox. Every operation has a connection of its own
// to the agent's socket, so a client holds nothing that a restart of ours could lose.
import type { Duplex } from 'node:stream'
import { type CommandSpec, type RunningCommand, startCommand } from './command.ts'
import { AgentGone, Connection, requestRaw } from './connection.ts'
import { type Files, filesAt } from './files.ts'
import { FieldWriter, kinds } from './frames.ts'
import { type Jobs, jobsAt } from './jobs.ts'
import { type Sessions, sessionsAt } from './sessions.ts'

export { type CommandSpec, type Exit, type Output, type RunningCommand, StartFailed } from './command.ts'
export { AgentGone, AgentRefused, isRefused } from './connection.ts'
export { type Entry, type FileContents, type Files, type UnpackRecord, unpackRecord } from './files.ts'
export type { Job, JobEvent, JobSpec, Jobs } from './jobs.ts'
export type { Piece, TakePiece } from './pour-output.ts'
export type { AgentSession, CommandEvent, SessionCommand, Sessions } from './sessions.ts'
export { ListTooLong } from './sessions.ts'

export interface Agent {
  /** At the signal it is not started any more, and nothing is kept of it; once it has started that means nothing. */
  exec(spec: CommandSpec, signal?: AbortSignal): Promise<RunningCommand>
  /** 127.0.0.1:port inside, or ::1. Each direction ends on its own: the caller ends its own side. */
  dial(port: number): Promise<Duplex>
  info(): Promise<{ version: string; bootId: string }>
  /** TERM to all, grace, KILL; settles when PID 1 has ended. */
  shutdown(graceMs: number): Promise<void>
  /** Commands and terminals that outlive the connection, and the gate. */
  readonly jobs: Jobs
  /** Shells that keep their state from one command to the next, and outlive the gate too. */
  readonly sessions: Sessions
  /** Files with the rights of this user, by name or uid; relative paths are below the user's home. */
  files(user: string): Files
}

const dial = async (socketPath: string, port: number): Promise<Duplex> => {
  const [socket, answer] = await requestRaw(socketPath, kinds.dial, new FieldWriter().u16(port).done())
  try {
    answer.end()
  } catch (error) {
    socket.destroy()
    throw error
  }
  return socket.hearOut()
}

const info = async (socketPath: string): Promise<{ version: string; bootId: string }> => {
  const [connection, answer] = await Connection.request(socketPath, kinds.info, Buffer.alloc(0))
  connection.close()
  const version = answer.string()
  const bootId = answer.string()
  answer.end()
  return { version, bootId }
}

const shutdown = async (socketPath: string, graceMs: number): Promise<void> => {
  const [connection] = await Connection.request(socketPath, kinds.shutdown, new FieldWriter().u32(graceMs).done())
  try {
    while ((await connection.nextOrEnd()) !== undefined);
  } catch (error) {
    // Broken off or ended in order: it is gone, as was asked.
    if (!(error instanceof AgentGone)) throw error
  } finally {
    connection.close()
  }
}

export const agentAt = (socketPath: string): Agent => ({
  exec: (spec, signal) => startCommand(socketPath, spec, signal),
  dial: (port) => dial(socketPath, port),
  info: () => info(socketPath),
  shutdown: (graceMs) => shutdown(socketPath, graceMs),
  jobs: jobsAt(socketPath),
  sessions: sessionsAt(socketPath),
  files: (user) => filesAt(socketPath, user),
})
