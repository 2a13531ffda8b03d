// Makes a sandbox for one command, and deletes it after the command, even if the command fails or the user interrupts the program.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Api, path } from '../api.ts'
import { wasNotSent } from '../call.ts'
import { cleanLine } from '../clean.ts'
import type { Work } from '../commands.ts'
import { Failure } from '../failure.ts'
import { note } from '../print/print.ts'
import { Activity } from '../print/progress.ts'
import { bodyOf, type CreateOptions, requestSandbox, untilStarted } from './create.ts'
import type { Sandbox } from './sandbox.ts'

const deletionMs = 15_000
const againMs = 300

const isGone = (error: unknown): boolean => error instanceof Failure && error.status === 404

/**
 * If the answer to the create is lost, this label with a random value identifies the new sandbox. An older sandbox may have the
 * same name.
 */
const markLabel = 'alcove-run'

type Request = { name: string; labels: Record<string, string> }

/** Returns the id of the sandbox that a request has made. Undefined if the request has made none. */
const findMade = async (api: Api, { name, labels }: Request): Promise<string | undefined> => {
  const found = await api.ask<Sandbox>('GET', path`/sandbox/${name}`, { patience: deletionMs }).catch((error) => {
    if (isGone(error)) return undefined
    throw error
  })
  return found?.labels?.[markLabel] === labels[markLabel] ? found?.id : undefined
}

/**
 * Deletes the sandbox with this id or, without an id, the sandbox that the request has made. Returns false if the server does not
 * have this sandbox, or not yet. Otherwise returns true, even if the delete fails.
 */
const remove = async (api: Api, request: Request, id?: string): Promise<boolean> => {
  try {
    const made = id ?? (await findMade(api, request))
    if (made === undefined) return false
    await api.ask('DELETE', path`/sandbox/${made}`, { patience: deletionMs })
    return true
  } catch (error) {
    if (isGone(error)) return false
    note(`The sandbox ${cleanLine(request.name)} could not be deleted: ${(error as Error).message}`)
    return true
  }
}

/**
 * Makes a sandbox. The request goes on after an interruption, because the server would make the sandbox in any case. The sandbox is
 * then deleted as soon as the server finds it by its name, because its id may not have arrived.
 */
const request = async (api: Api, body: Request): Promise<Sandbox> => {
  const { signal } = api
  const lasting = api.uninterrupted()
  let isOver = false
  const asked = requestSandbox(lasting, body).finally(() => {
    isOver = true
  })
  asked.catch(() => {})
  const interrupted = new Promise<undefined>((resolve) => {
    if (signal?.aborted) resolve(undefined)
    signal?.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const made = await Promise.race([asked, interrupted])
  if (made !== undefined) return made
  while (!isOver && !(await remove(lasting, body))) await delay(againMs)
  throw signal?.reason
}

/** Makes a sandbox, calls `use` with it, and deletes it. With `keep`, the sandbox is not deleted. */
export const withSandbox = async <Answer>(
  { api, env: variables }: Pick<Work, 'api' | 'env'>,
  { keep, ...options }: CreateOptions & { keep?: boolean | undefined },
  use: (sandbox: Sandbox) => Promise<Answer>,
): Promise<Answer> => {
  const name = options.name ?? `run-${randomBytes(6).toString('hex')}`
  // With `autoDeleteInterval: 0` the server deletes the sandbox when it stops. So it is deleted even if this program is killed.
  const body = {
    ...bodyOf(options, variables),
    name,
    labels: { [markLabel]: randomBytes(8).toString('hex') },
    ...(keep ? {} : { autoDeleteInterval: 0 }),
  }
  let mayExist = false
  let id: string | undefined
  try {
    // Throws if the session has expired, so that no sandbox is requested then.
    await api.headers()
    mayExist = true
    const activity = new Activity('creating')
    let sandbox: Sandbox
    try {
      const requested = await request(api, body).catch((error) => {
        // If the server has refused or not received the request, this command must delete nothing: a sandbox of that name was not
        // made by this command.
        if (error instanceof Failure && (error.status === undefined ? wasNotSent(error) : error.status < 500))
          mayExist = false
        throw error
      })
      id = requested.id
      sandbox = await untilStarted(api, requested, activity)
    } finally {
      activity[Symbol.dispose]()
    }
    if (keep) note(`The sandbox is kept: ${cleanLine(sandbox.name)}`)
    return await use(sandbox)
  } finally {
    if (!keep && mayExist) await remove(api.uninterrupted(), body, id)
  }
}
