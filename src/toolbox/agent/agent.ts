// Operations of the agent in one sandbox, for the gate and the runner. All state is in the agent, so a restart of gate or runner
// loses nothing.
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
  /** Starts a command. If `signal` is aborted before the start, no process is left. After the start, `signal` has no effect. */
  exec(spec: CommandSpec, signal?: AbortSignal): Promise<RunningCommand>
  /**
   * Connects to a port of the sandbox: 127.0.0.1, or [::1] if that fails. The caller must close its half of the connection, too.
   */
  dial(port: number): Promise<Duplex>
  info(): Promise<{ version: string; bootId: string }>
  /** Sends SIGTERM to all processes, waits `graceMs`, then sends SIGKILL. Settles when PID 1 has ended. */
  shutdown(graceMs: number): Promise<void>
  /** Commands and terminals that continue after their connection to the agent, or the gate, has ended. */
  readonly jobs: Jobs
  /** Shells that keep their state between commands, and continue after the gate has ended. */
  readonly sessions: Sessions
  /** Access to files with the rights of `user` (a name or uid). Relative paths start at the user's home. */
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
    // Ignore a broken connection: it means that the agent has ended, as the caller requested.
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
