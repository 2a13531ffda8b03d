// Creates, lists, resizes and kills terminals in the sandbox. Clients are served by connect.ts.
import { Problem } from '#src/problems.ts'
import { checkEnvironment } from '#src/toolbox/running/environment.ts'
import { isRefused, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { asNotStarted, asTold } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { findDirectory } from './directory.ts'
import { encodeRecord, jobIdOf, type Pty, readPty, viewOf } from './record.ts'
import type { CreatePtyRequest, PtyInfo, ResizeRequest } from './schemas.ts'
import { shellsFor } from './shell.ts'

/**
 * Maximum number of output bytes stored for a terminal, on the sandbox's disk. A client with more unread output loses the oldest
 * output.
 */
const ringBytes = 16 * 1024 * 1024
const ptysMax = 128
/** Maximum number of ended terminals. They are kept because the removal of a terminal kills its background processes. */
const endedMax = 32

/** Variables of every shell. Without LANG, shells treat typed text as ASCII. */
const base = { LANG: 'C.UTF-8' }

const noShell = 'This sandbox has neither bash nor sh.'
const notFound = (id: string) =>
  new Problem('not_found', `There is no PTY session ${JSON.stringify(id.slice(0, 255))}.`)

const listAll = async ({ agent }: ToolboxSandbox): Promise<Pty[]> => {
  const jobs = await agent.jobs.list().catch((error) => {
    throw asTold(error)
  })
  return jobs.flatMap((job) => readPty(job) ?? [])
}

const findPty = async (sandbox: ToolboxSandbox, id: string): Promise<Pty | undefined> =>
  (await listAll(sandbox)).find(({ record }) => record.id === id)

export const listPtys = async (sandbox: ToolboxSandbox): Promise<PtyInfo[]> =>
  (await listAll(sandbox)).filter(({ hasEnded }) => !hasEnded).map(viewOf)

export const getPty = async (sandbox: ToolboxSandbox, id: string): Promise<Pty> => {
  const pty = await findPty(sandbox, id)
  if (pty === undefined || pty.hasEnded) throw notFound(id)
  return pty
}

/** Throws for errors that can be found before a shell is started. */
export const checkNewPty = async (sandbox: ToolboxSandbox, { id, envs }: CreatePtyRequest): Promise<void> => {
  // No URL reaches these ids: `create-connect` is another endpoint, and clients normalize `.` and `..`.
  if (['create-connect', '.', '..'].includes(id)) {
    throw new Problem('bad_request', `A PTY session cannot be called "${id}".`)
  }
  checkEnvironment(envs ?? {})
  const all = await listAll(sandbox)
  const living = all.filter(({ hasEnded }) => !hasEnded)
  if (living.some(({ record }) => record.id === id)) throw taken(id)
  if (living.length >= ptysMax) {
    throw new Problem('rate_limited', `This sandbox has ${ptysMax} PTY sessions; delete one first.`)
  }
}

const taken = (id: string) => new Problem('already_exists', `A PTY session ${JSON.stringify(id)} already exists.`)

/** Removes an ended terminal that has this id, and the oldest ended terminals above the limit. */
const forgetEnded = async (sandbox: ToolboxSandbox, id: string): Promise<void> => {
  const ended = (await listAll(sandbox)).filter(({ hasEnded }) => hasEnded)
  const oldestFirst = ended.sort((one, other) => Number(one.job.endedAt) - Number(other.job.endedAt))
  const surplus = oldestFirst.slice(0, Math.max(0, ended.length - endedMax))
  for (const { job } of new Set([...surplus, ...ended.filter(({ record }) => record.id === id)])) {
    await sandbox.agent.jobs.remove(job.id).catch((error) => {
      if (!isRefused(error, 'ENOENT')) throw asTold(error)
    })
  }
}

/**
 * Creates a terminal; the caller has called `checkNewPty`. With `lazyStart` the shell starts with the first client, otherwise
 * immediately.
 */
export const createPty = async (sandbox: ToolboxSandbox, request: CreatePtyRequest): Promise<Pty> => {
  const { id, lazyStart, envs } = { ...request, lazyStart: request.lazyStart ?? false, envs: request.envs ?? {} }
  const { user } = sandbox.assignment
  await forgetEnded(sandbox, id)
  const cwd = await findDirectory(sandbox, request.cwd ?? '')
  let failure: unknown
  for (const argv of shellsFor(lazyStart)) {
    try {
      await sandbox.agent.jobs.spawn({
        id: jobIdOf(id),
        argv,
        env: { ...base, ...environmentOf(sandbox, envs) },
        ...(request.cwd ? { cwd: request.cwd } : {}),
        user,
        ringBytes,
        terminal: { cols: request.cols ?? 80, rows: request.rows ?? 24 },
        metadata: encodeRecord({ id, cwd, lazyStart, envs }),
      })
      const made = await findPty(sandbox, id)
      if (made === undefined) throw notFound(id)
      return made
    } catch (error) {
      if (isRefused(error, 'EEXIST')) throw taken(id)
      failure = error
      if (!(error instanceof StartFailed && error.stage === 'exec' && error.errno === 'ENOENT')) break
    }
  }
  throw asNotStarted(failure, request.cwd ?? '', user, noShell)
}

export const resizePty = async (sandbox: ToolboxSandbox, id: string, size: ResizeRequest): Promise<PtyInfo> => {
  const pty = await findPty(sandbox, id)
  if (pty === undefined) throw notFound(id)
  const ended = new Problem('gone', `The shell of PTY session ${JSON.stringify(id)} has ended.`)
  if (pty.hasEnded) throw ended
  await sandbox.agent.jobs.resize(pty.job.id, size.cols, size.rows).catch((error) => {
    throw isRefused(error, 'ENOENT') || isRefused(error, 'ESRCH') ? ended : asTold(error)
  })
  return { ...viewOf(pty), ...size }
}

/** Kills the shell and all processes that it started. */
export const deletePty = async (sandbox: ToolboxSandbox, id: string): Promise<void> => {
  const { job } = await getPty(sandbox, id)
  await sandbox.agent.jobs.remove(job.id).catch((error) => {
    throw isRefused(error, 'ENOENT') ? notFound(id) : asTold(error)
  })
}
