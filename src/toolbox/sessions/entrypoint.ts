// The entrypoint, which runs once at each start. Callers see it as a command of a session. In the agent it is a job, because a
// session needs a shell, and the image may have none.
import { Problem } from '#src/problems.ts'
import { complaintBytes, notProcessOne, wantedToBeFirst } from '#src/toolbox/running/not-process-one.ts'
import { hasRunShort, lookBack, type OutOfMemory } from '#src/toolbox/running/out-of-memory.ts'
import { type Agent, isRefused, type Job, type TakePiece } from '../agent/agent.ts'
import { entrypointJob as jobId } from '../agent/entrypoint.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { collectLogs, withLine, withShortage } from './logs.ts'
import { told } from './refusals.ts'
import type { Command, Logs, Session } from './schemas.ts'

export const entrypointId = 'entrypoint'
const commandId = 'entrypoint_command'
const findJob = async ({ agent }: ToolboxSandbox): Promise<Job | undefined> =>
  (await told(agent.jobs.list())).find(({ id }) => id === jobId)

const viewOf = async (sandbox: ToolboxSandbox, job: Job): Promise<Command> => ({
  id: commandId,
  command: job.metadata.toString(),
  ...(job.exit === null ? {} : { exitCode: job.exit.exitCode }),
  ...((await lookBack(sandbox, [job]))(job) === undefined ? {} : { oom: true as const }),
})

/** Returns the session of the entrypoint, which has no commands if there is no entrypoint. */
export const getEntrypoint = async (sandbox: ToolboxSandbox): Promise<Session> => {
  const job = await findJob(sandbox)
  return { sessionId: entrypointId, commands: job === undefined ? [] : [await viewOf(sandbox, job)] }
}

export const getEntrypointCommand = async (sandbox: ToolboxSandbox, id: string): Promise<Command> => {
  const job = id === commandId ? await findJob(sandbox) : undefined
  if (job === undefined) throw new Problem('process_not_found', 'There is no such command in this session.')
  return await viewOf(sandbox, job)
}

/** Ignores the error of a missing job: without an entrypoint there is no output. */
const unlessMissing = (error: unknown): void => {
  if (!isRefused(error, 'ENOENT')) throw error
}

async function* output({ jobs }: Agent, signal: AbortSignal, from = 0) {
  try {
    yield* jobs.attach(jobId, from, { follow: false, signal })
  } catch (error) {
    unlessMissing(error)
  }
}

/** Whether the sandbox ran out of memory while the entrypoint ran; undefined if the entrypoint has not ended. */
export const findEntrypointShortage = async (
  sandbox: ToolboxSandbox,
): Promise<{ shortage: OutOfMemory; exitCode: number } | undefined> => {
  const job = (await hasRunShort(sandbox)) ? await findJob(sandbox) : undefined
  const shortage = job && (await lookBack(sandbox, [job]))(job)
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
  if (found !== undefined) return withShortage(logs, found.shortage, { ...found, isMarked })
  // Some entrypoints complain that they are not process 1. Ask for the exit code only after such output, to save requests.
  const isComplaint = wantedToBeFirst(logs.stderr, failed) || wantedToBeFirst(logs.stdout, failed)
  const exitCode = isComplaint ? (await findJob(sandbox))?.exit?.exitCode : undefined
  return exitCode === undefined || exitCode === 0 ? logs : withLine(logs, notProcessOne, isMarked)
}

const failed = 1

/** Returns the line that is added to a followed log if the entrypoint failed because it was not process 1. */
export const findComplaint = async (sandbox: ToolboxSandbox): Promise<string | undefined> => {
  const job = await findJob(sandbox)
  if (!job?.exit || job.exit.exitCode === 0) return undefined
  const from = Math.max(job.startOffset, job.endOffset - complaintBytes)
  const events = output(sandbox.agent, AbortSignal.timeout(answersWithinMs), from)
  const { logs } = await told(collectLogs(events, sandbox.assignment.organizationId))
  return wantedToBeFirst(logs.output, job.exit.exitCode) ? notProcessOne : undefined
}

const answersWithinMs = 10_000

export const pourEntrypoint = async (
  { agent }: ToolboxSandbox,
  take: TakePiece,
  options: { follow: boolean; signal: AbortSignal },
): Promise<void> => await agent.jobs.pour(jobId, take, options).catch(unlessMissing)
