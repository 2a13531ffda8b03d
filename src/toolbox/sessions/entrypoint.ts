// The entrypoint: the command that the sandbox's image or snapshot names, run once each time the sandbox starts. To callers
// it is a command of a session; in the agent it is a job, because an image need not have a shell that a session could be.
import { Problem } from '#src/problems.ts'
import { type Agent, isRefused, type Job, StartFailed, type TakePiece } from '../agent/agent.ts'
import { findPastShortage, hasRunShort, type OutOfMemory } from '../exec/out-of-memory.ts'
import { plainWord } from '../exec/plain.ts'
import { environmentOf, type ToolboxSandbox } from '../sandbox.ts'
import { collectLogs, keptOutputBytes, withShortage } from './logs.ts'
import { told } from './refusals.ts'
import type { Command, Logs, Session } from './schemas.ts'

export const entrypointId = 'entrypoint'
const commandId = 'entrypoint_command'
const jobId = 'entrypoint'
/** As much as the agent remembers of a job, and no less than lists show of any command. */
const shownBytes = 4096

type Starting = Pick<ToolboxSandbox, 'assignment'> & { agent: Pick<Agent, 'jobs'> }

/** As it would be typed. */
const lineOf = (argv: readonly string[]): string =>
  argv.map((word) => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')

const shownLineOf = (argv: readonly string[]): Buffer => {
  const line = Buffer.from(lineOf(argv))
  if (line.length <= shownBytes) return line
  const more = '…'
  const cut = new TextDecoder().decode(line.subarray(0, shownBytes - Buffer.byteLength(more)), { stream: true })
  return Buffer.from(cut + more)
}

/** Asked for again while the sandbox runs, it does nothing. What cannot be started says so in its own log. */
export const startEntrypoint = async (sandbox: Starting, argv: readonly string[], cwd?: string): Promise<void> => {
  try {
    await sandbox.agent.jobs.spawn({
      id: jobId,
      argv,
      env: environmentOf(sandbox),
      user: sandbox.assignment.user,
      ...(cwd === undefined ? {} : { cwd }),
      ringBytes: keptOutputBytes,
      keepFailed: true,
      keepBeginning: true,
      metadata: shownLineOf(argv),
    })
  } catch (error) {
    if (!(isRefused(error, 'EEXIST') || error instanceof StartFailed)) throw error
  }
}

const findJob = async ({ agent }: ToolboxSandbox): Promise<Job | undefined> =>
  (await told(agent.jobs.list())).find(({ id }) => id === jobId)

const viewOf = (sandbox: ToolboxSandbox, job: Job): Command => ({
  id: commandId,
  command: job.metadata.toString(),
  ...(job.exit === null ? {} : { exitCode: job.exit.exitCode }),
  ...(findPastShortage(sandbox, job) === undefined ? {} : { oom: true as const }),
})

/** Without commands where there is no entrypoint. */
export const getEntrypoint = async (sandbox: ToolboxSandbox): Promise<Session> => {
  const job = await findJob(sandbox)
  return { sessionId: entrypointId, commands: job === undefined ? [] : [viewOf(sandbox, job)] }
}

export const getEntrypointCommand = async (sandbox: ToolboxSandbox, id: string): Promise<Command> => {
  const job = id === commandId ? await findJob(sandbox) : undefined
  if (job === undefined) throw new Problem('process_not_found', 'There is no such command in this session.')
  return viewOf(sandbox, job)
}

/** Where nothing was started, nothing was written. */
const unlessMissing = (error: unknown): void => {
  if (!isRefused(error, 'ENOENT')) throw error
}

async function* output({ jobs }: Agent, signal: AbortSignal) {
  try {
    yield* jobs.attach(jobId, 0, { follow: false, signal })
  } catch (error) {
    unlessMissing(error)
  }
}

/** Nothing while it runs. */
export const findEntrypointShortage = async (
  sandbox: ToolboxSandbox,
): Promise<{ shortage: OutOfMemory; exitCode: number } | undefined> => {
  const job = hasRunShort(sandbox) ? await findJob(sandbox) : undefined
  const shortage = job && findPastShortage(sandbox, job)
  return shortage && job.exit ? { shortage, exitCode: job.exit.exitCode } : undefined
}

export const readEntrypointLogs = async (
  sandbox: ToolboxSandbox,
  signal: AbortSignal,
  isMarked = false,
): Promise<Logs> => {
  const { agent, assignment } = sandbox
  const { logs } = await told(collectLogs(output(agent, signal), assignment.organizationId, isMarked))
  const found = await findEntrypointShortage(sandbox)
  return found === undefined ? logs : withShortage(logs, found.shortage, { ...found, isMarked })
}

export const pourEntrypoint = async (
  { agent }: ToolboxSandbox,
  take: TakePiece,
  options: { follow: boolean; signal: AbortSignal },
): Promise<void> => await agent.jobs.pour(jobId, take, options).catch(unlessMissing)
