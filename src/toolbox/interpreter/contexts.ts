// The contexts of a sandbox. Each context is a job of the agent, with metadata, so contexts and their variables survive a restart
// of the gate.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Problem } from '#src/problems.ts'
import { isRefused, type Job } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { findDirectory } from '../pty/directory.ts'
import { asNotStarted, asTold } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { closeLane } from './lanes.ts'
import type { CreateContextRequest, InterpreterContext } from './schemas.ts'

/** Id of the context for calls that name no context. The context is made at the first such call, and is never listed. */
export const defaultContext = 'default'

const contextsMax = 64
/**
 * Maximum bytes of a context's messages (worker.py) that the agent stores on the sandbox's disk. If there are more, the oldest
 * unread messages are lost.
 */
const ringBytes = 16 * 1024 * 1024
const prefix = 'python.'
/**
 * Suffix of a context's second job name. Restarts use the two names in turn, so the old job remains if the new one fails to start.
 */
const second = '~'
const program = readFileSync(new URL('./worker.py', import.meta.url), 'utf8')
/**
 * The variable that passes the program to Python. If the program were an argument, `pkill -f` with any word of the program would
 * end every context.
 */
const programVariable = '_ALCOVE_PROGRAM'
const evalProgram = `import os;exec(os.environ.pop('${programVariable}'))`

type ContextRecord = { id: string; cwd: string; createdAt: string }
export type Context = ContextRecord & { job: Job }

const unknown = (id: string) => new Problem('not_found', `context not found: ${JSON.stringify(id.slice(0, 100))}`)

const readContext = (job: Job): Context | undefined => {
  if (!job.id.startsWith(prefix)) return undefined
  try {
    const { cwd, createdAt } = JSON.parse(job.metadata.toString())
    if (typeof cwd !== 'string' || typeof createdAt !== 'string') return undefined
    const id = job.id.slice(prefix.length, job.id.endsWith(second) ? -second.length : undefined)
    return { id, cwd, createdAt, job }
  } catch {
    return undefined
  }
}

const viewOf = ({ id, cwd, createdAt, job }: Context): InterpreterContext => {
  return { id, cwd, createdAt, active: job.state === 'running', language: 'python' }
}

/** Lists the jobs of contexts. A context has two jobs while it restarts, and also after an interrupted restart. */
const listJobs = async ({ agent }: ToolboxSandbox): Promise<Context[]> => {
  const jobs = await agent.jobs.list().catch((error) => {
    throw asTold(error)
  })
  return jobs.flatMap((job) => readContext(job) ?? [])
}

const listAll = async (sandbox: ToolboxSandbox): Promise<Context[]> => {
  const contexts = new Map<string, Context>()
  for (const context of await listJobs(sandbox)) {
    if ((contexts.get(context.id)?.job.state ?? 'ended') === 'ended') contexts.set(context.id, context)
  }
  return [...contexts.values()]
}

export const listContexts = async (sandbox: ToolboxSandbox): Promise<InterpreterContext[]> =>
  (await listAll(sandbox)).filter(({ id }) => id !== defaultContext).map(viewOf)

const startWorker = async (sandbox: ToolboxSandbox, known: ContextRecord, jobId: string): Promise<Context> => {
  const { user } = sandbox.assignment
  try {
    await sandbox.agent.jobs.spawn({
      id: jobId,
      argv: ['python3', '-u', '-c', evalProgram],
      env: { ...environmentOf(sandbox), [programVariable]: program },
      cwd: known.cwd,
      user,
      ringBytes,
      keepInput: true,
      metadata: Buffer.from(JSON.stringify({ cwd: known.cwd, createdAt: known.createdAt })),
    })
  } catch (error) {
    throw asNotStarted(error, known.cwd, user, 'There is no python3 in this sandbox.')
  }
  const made = (await listJobs(sandbox)).find(({ job }) => job.id === jobId)
  if (made === undefined) throw unknown(known.id)
  return made
}

const startNew = async (sandbox: ToolboxSandbox, id: string, cwd: string): Promise<Context> => {
  const known = { id, cwd: await findDirectory(sandbox, cwd), createdAt: new Date().toISOString() }
  return await startWorker(sandbox, known, prefix + id)
}

/** Restarts an ended context. Its old job is removed only after the new Python runs. */
const startAnew = async (sandbox: ToolboxSandbox, ended: Context): Promise<Context> => {
  const first = prefix + ended.id
  const jobId = ended.job.id === first ? first + second : first
  await removeJob(sandbox, jobId)
  const started = await startWorker(sandbox, ended, jobId)
  if (await removeJob(sandbox, ended.job.id)) return started
  // The context was deleted during its restart, so remove the new job too.
  await removeJob(sandbox, jobId)
  throw unknown(ended.id)
}

export const createContext = async (
  sandbox: ToolboxSandbox,
  { cwd }: CreateContextRequest,
): Promise<InterpreterContext> => {
  if ((await listContexts(sandbox)).length >= contextsMax) {
    throw new Problem('rate_limited', `This sandbox has ${contextsMax} interpreter contexts; delete one first.`)
  }
  return viewOf(await startNew(sandbox, randomUUID(), cwd ?? ''))
}

/** Returns the context with a running Python; restarts it if it has ended. */
export const readyContext = async (sandbox: ToolboxSandbox, contextId: string): Promise<Context> => {
  const found = (await listAll(sandbox)).find(({ id }) => id === contextId)
  if (found === undefined) {
    if (contextId === defaultContext) return await startNew(sandbox, defaultContext, '')
    throw unknown(contextId)
  }
  if (found.job.state !== 'ended') return found
  return await startAnew(sandbox, found)
}

/** Removes a job. Returns false if the job does not exist. */
const removeJob = async ({ agent }: ToolboxSandbox, jobId: string): Promise<boolean> => {
  try {
    await agent.jobs.remove(jobId)
    return true
  } catch (error) {
    if (isRefused(error, 'ENOENT')) return false
    throw asTold(error)
  }
}

/** Deletes a context and kills its processes. */
export const deleteContext = async (sandbox: ToolboxSandbox, contextId: string): Promise<void> => {
  if (contextId === defaultContext) throw new Problem('bad_request', 'The default context cannot be deleted.')
  const found = (await listJobs(sandbox)).filter(({ id }) => id === contextId)
  if (found.length === 0) throw unknown(contextId)
  closeLane(sandbox, contextId)
  const removed = await Promise.all(found.map(({ job }) => removeJob(sandbox, job.id)))
  if (!removed.includes(true)) throw unknown(contextId)
}
