// Sessions of a sandbox. The gate stores no state of sessions: the agent has all of it.
import { createHash, randomUUID } from 'node:crypto'
import { otherBody } from '#src/http/idempotency-key.ts'
import { Problem } from '#src/problems.ts'
import { hasRunShort, lookBack, type OutOfMemory, watchMemory } from '#src/toolbox/running/out-of-memory.ts'
import { type AgentSession, isRefused, type SessionCommand, StartFailed, type TakePiece } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { keptOutputBytes } from '../agent/kept-output.ts'
import type { Given } from '../held-bodies.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import {
  entrypointId,
  findComplaint,
  findEntrypointShortage,
  getEntrypointCommand,
  pourEntrypoint,
  readEntrypointLogs,
} from './entrypoint.ts'
import { collectLogs, withShortage } from './logs.ts'
import { told } from './refusals.ts'
import type { Command, CommandParams, ExecRequest, ExecResult, Logs, Session } from './schemas.ts'

const commandBytes = 1024 * 1024
const inputBytes = 1024 * 1024
/** Exit code in answers for a command that never ran. */
const neverRan = -1

const checkNotReserved = (id: string) => {
  if (id === entrypointId) throw new Problem('bad_request', 'The session "entrypoint" belongs to the sandbox itself.')
}

type FindShortage = Awaited<ReturnType<typeof lookBack>>

const commandView = (command: SessionCommand, findShortage: FindShortage): Command => ({
  id: command.id,
  command: command.isWholeText ? command.text : `${command.text}…`,
  ...(command.state === 'ended' ? { exitCode: command.end?.exitCode ?? neverRan } : {}),
  ...(findShortage(command) === undefined ? {} : { oom: true as const }),
})

const sessionView = ({ id, commands }: AgentSession, findShortage: FindShortage): Session => ({
  sessionId: id,
  commands: commands.map((command) => commandView(command, findShortage)),
})

export const createSession = async (sandbox: ToolboxSandbox, id: string): Promise<Session> => {
  checkNotReserved(id)
  if (id.trim() === '' || id === '.' || id === '..') {
    throw new Problem('bad_request', 'body.sessionId must not be blank, "." or ".."')
  }
  const { agent, assignment } = sandbox
  const spec = { id, env: environmentOf(sandbox), user: assignment.user, ringBytes: keptOutputBytes }
  const opening = agent.sessions.open({ ...spec, shell: 'bash' }).catch((error: unknown) => {
    const isMissing = error instanceof StartFailed && error.stage === 'exec' && error.errno === 'ENOENT'
    if (!isMissing) throw error
    return agent.sessions.open({ ...spec, shell: 'sh' })
  })
  await told(opening)
  return { sessionId: id, commands: [] }
}

export const listSessions = async (sandbox: ToolboxSandbox): Promise<Session[]> => {
  const sessions = await told(sandbox.agent.sessions.list())
  const commands = sessions.flatMap((session) => session.commands)
  const findShortage = await lookBack(sandbox, commands)
  return sessions.map((session) => sessionView(session, findShortage))
}

export const getSession = async (sandbox: ToolboxSandbox, id: string): Promise<Session> => {
  const session = await told(sandbox.agent.sessions.get(id))
  return sessionView(session, await lookBack(sandbox, session.commands))
}

export const deleteSession = async ({ agent }: ToolboxSandbox, id: string): Promise<void> => {
  checkNotReserved(id)
  await told(agent.sessions.remove(id))
}

export const getCommand = async (sandbox: ToolboxSandbox, params: CommandParams): Promise<Command> => {
  const { sessionId, commandId } = params
  if (sessionId === entrypointId) return await getEntrypointCommand(sandbox, commandId)
  const command = await told(sandbox.agent.sessions.command(sessionId, commandId))
  return commandView(command, await lookBack(sandbox, [command]))
}

/** Id of a new command. A repeated call gets the same id, by which the agent recognizes the command. */
const commandIdOf = (idempotencyKey: string | undefined): string =>
  idempotencyKey === undefined ? randomUUID() : createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 32)

/** A command to run, with its id in the agent. */
type Exec = { id: string; given: Given<ExecRequest> }

const readExec = (sessionId: string, given: Given<ExecRequest>, idempotencyKey: string | undefined): Exec => {
  const { command } = given.body
  checkNotReserved(sessionId)
  if (command.trim() === '') throw new Problem('bad_request', 'body.command must not be blank')
  if (Buffer.byteLength(command) > commandBytes) throw new Problem('too_large', 'A command has at most 1 MiB.')
  return { id: commandIdOf(idempotencyKey), given }
}

/** Checks that a command with this id has the same text. A repeated Idempotency-Key gives the same id. */
const checkIsSame = async ({ agent }: ToolboxSandbox, sessionId: string, { id, given }: Exec): Promise<void> => {
  const { text } = await agent.sessions.command(sessionId, id)
  if (given.body.command !== text) throw otherBody()
}

/** Queues a command and returns its id. */
export const startCommand = async (
  sandbox: ToolboxSandbox,
  sessionId: string,
  given: Given<ExecRequest>,
  idempotencyKey: string | undefined,
): Promise<string> => {
  const exec = readExec(sessionId, given, idempotencyKey)
  const { command: text, suppressInputEcho } = given.body
  const spec = { id: exec.id, text, keepInput: true, echoInput: suppressInputEcho !== true }
  await told(
    sandbox.agent.sessions.exec(sessionId, spec).catch((error) => {
      if (!isRefused(error, 'EEXIST')) throw error
      return checkIsSame(sandbox, sessionId, exec)
    }),
  )
  return exec.id
}

/** Runs a new command and follows it. Frees the memory of the command's text once the agent has received it. */
const followNew = ({ agent }: ToolboxSandbox, sessionId: string, { id, given }: Exec, signal: AbortSignal) => {
  const spec = { id, text: given.body.command, keepInput: false, echoInput: false }
  return agent.sessions.execAndFollow(sessionId, spec, { onTaken: given.letGo, signal })
}

/** Runs and follows a command. If the command was sent before, only follows it. */
async function* execAndFollow(sandbox: ToolboxSandbox, sessionId: string, exec: Exec, signal: AbortSignal) {
  try {
    yield* followNew(sandbox, sessionId, exec, signal)
  } catch (error) {
    if (!isRefused(error, 'EEXIST')) throw error
    await checkIsSame(sandbox, sessionId, exec)
    exec.given.letGo?.()
    yield* sandbox.agent.sessions.attach(sessionId, exec.id, 0, { signal })
  }
}

const hasEnded = async ({ agent }: ToolboxSandbox, sessionId: string): Promise<boolean> => {
  try {
    return (await agent.sessions.get(sessionId)).state === 'ended'
  } catch (error) {
    if (isRefused(error, 'ENOENT')) return true
    throw error
  }
}

/** Runs a command and waits for its end. The command continues if the caller disconnects. */
export const runCommand = async (
  sandbox: ToolboxSandbox,
  sessionId: string,
  given: Given<ExecRequest>,
  {
    idempotencyKey,
    signal,
    isMarked = false,
  }: { idempotencyKey: string | undefined; signal: AbortSignal; isMarked?: boolean },
): Promise<ExecResult> => {
  const exec = readExec(sessionId, given, idempotencyKey)
  const findOutOfMemory = watchMemory(sandbox)
  const { logs, exit } = await told(
    collectLogs(execAndFollow(sandbox, sessionId, exec, signal), sandbox.assignment.organizationId, isMarked),
  )
  if (exit === undefined) throw new Problem('gone', 'The caller has hung up.')
  if (exit.end === null && (await told(hasEnded(sandbox, sessionId)))) throw new Problem('session_ended')
  const exitCode = exit.end?.exitCode ?? neverRan
  return { cmdId: exec.id, ...withShortage(logs, await findOutOfMemory(exitCode), { exitCode, isMarked }), exitCode }
}

/** Whether the sandbox ran out of memory while a command ran; undefined if the command has not ended. */
const findShortage = async (
  sandbox: ToolboxSandbox,
  { sessionId, commandId }: CommandParams,
): Promise<{ shortage: OutOfMemory; exitCode: number } | undefined> => {
  if (!(await hasRunShort(sandbox))) return undefined
  if (sessionId === entrypointId) return await findEntrypointShortage(sandbox)
  const command = await told(sandbox.agent.sessions.command(sessionId, commandId))
  const shortage = (await lookBack(sandbox, [command]))(command)
  return shortage && { shortage, exitCode: command.end?.exitCode ?? neverRan }
}

/** Returns the line that ends the log of a failed command. Undefined if the gate does not know why it failed. */
export const lastLineOf = async (sandbox: ToolboxSandbox, params: CommandParams): Promise<string | undefined> => {
  const found = await findShortage(sandbox, params)
  if (found === undefined) return params.sessionId === entrypointId ? await findComplaint(sandbox) : undefined
  return found.exitCode === 0 ? undefined : found.shortage.line
}

export const readLogs = async (
  sandbox: ToolboxSandbox,
  { sessionId, commandId }: CommandParams,
  signal: AbortSignal,
  isMarked = false,
): Promise<Logs> => {
  if (sessionId === entrypointId) {
    await getEntrypointCommand(sandbox, commandId)
    return await readEntrypointLogs(sandbox, signal, isMarked)
  }
  const events = sandbox.agent.sessions.attach(sessionId, commandId, 0, { follow: false, signal })
  const { logs } = await told(collectLogs(events, sandbox.assignment.organizationId, isMarked))
  const found = await findShortage(sandbox, { sessionId, commandId })
  return found === undefined ? logs : withShortage(logs, found.shortage, { ...found, isMarked })
}

/** Passes the log of a command to `take`. The caller has checked that the command exists. */
export const pourLogs = (
  sandbox: ToolboxSandbox,
  { sessionId, commandId }: CommandParams,
  take: TakePiece,
  options: { follow: boolean; signal: AbortSignal },
): Promise<void> =>
  sessionId === entrypointId
    ? pourEntrypoint(sandbox, take, options)
    : sandbox.agent.sessions.pour(sessionId, commandId, take, options)

/** Sends one or more lines to a command that was started with open input. */
export const sendInput = async (
  { agent }: ToolboxSandbox,
  { sessionId, commandId }: CommandParams,
  data: string,
): Promise<void> => {
  checkNotReserved(sessionId)
  const bytes = Buffer.from(data.endsWith('\n') ? data : `${data}\n`)
  if (bytes.length > inputBytes) throw new Problem('too_large', 'Input has at most 1 MiB.')
  await told(agent.sessions.input(sessionId, commandId, bytes))
}
