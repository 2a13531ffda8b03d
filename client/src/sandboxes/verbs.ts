// The commands `alcove sandbox …`.
import { type Api, path } from '../api.ts'
import { cleanLine } from '../clean.ts'
import type { Work } from '../commands.ts'
import { deleteAll } from '../delete-all.ts'
import { note, print, printJson } from '../print/print.ts'
import { Activity } from '../print/progress.ts'
import { bodyOf, type CreateOptions, requestSandbox, untilStarted } from './create.ts'
import { labelsOf } from './list.ts'
import { getSandbox, type Sandbox } from './sandbox.ts'
import { settle } from './settle.ts'

type Json = { json?: boolean }

/** Prints a sandbox, with one line for each field. */
export const printSandbox = async ({ json }: Json, sandbox: Sandbox): Promise<void> => {
  if (json) return await printJson(sandbox)
  const lines: [string, string | undefined][] = [
    ['id', sandbox.id],
    ['name', sandbox.name],
    ['state', sandbox.state],
    ['reason', sandbox.errorReason || undefined],
    ['snapshot', sandbox.snapshot],
    ['size', `${sandbox.cpu} cpu, ${sandbox.memory} GiB memory, ${sandbox.disk} GiB disk`],
    ['user', sandbox.user],
    ['region', sandbox.target],
    ['public', sandbox.public === undefined ? undefined : sandbox.public ? 'yes' : 'no'],
    ['labels', labelsOf(sandbox) || undefined],
    ['created', sandbox.createdAt],
    ['last activity', sandbox.lastActivityAt],
    ['auto-stop', sandbox.autoStopInterval ? `${sandbox.autoStopInterval} min` : undefined],
  ]
  const width = Math.max(...lines.map(([name]) => name.length))
  for (const [name, value] of lines) {
    if (value !== undefined) await print(`${name.padEnd(width)}  ${cleanLine(value)}`)
  }
}

export const createSandbox = async (
  { api, env }: Pick<Work, 'api' | 'env'>,
  { json, ...options }: CreateOptions & Json,
): Promise<void> => {
  using activity = new Activity('creating')
  const sandbox = await untilStarted(api, await requestSandbox(api, bodyOf(options, env)), activity)
  activity[Symbol.dispose]()
  if (json) await printJson(sandbox)
  else await print(cleanLine(sandbox.id))
}

export const showSandbox = async (api: Api, idOrName: string, options: Json): Promise<void> =>
  await printSandbox(options, await getSandbox(api, idOrName))

/** How long to wait for the answer to a verb, in ms. Some answers come only after the sandbox has changed its state. */
const verbMs = 120_000

const verbs = {
  start: { word: 'starting', to: ['started'] },
  stop: { word: 'stopping', to: ['stopped'] },
  pause: { word: 'pausing', to: ['paused'] },
  archive: { word: 'archiving', to: ['archived'] },
} as const

/** Performs one action on each sandbox, one after the other. Stops at the first failure. */
export const moveSandboxes = async (
  api: Api,
  verb: keyof typeof verbs,
  names: readonly string[],
  { json, force }: Json & { force?: boolean },
): Promise<void> => {
  const { word, to } = verbs[verb]
  const moved: Sandbox[] = []
  for (const name of names) {
    using activity = new Activity(`${word} ${cleanLine(name)}`)
    const query = force ? { force: 'true' } : {}
    const asked = await api.ask<Sandbox>('POST', path`/sandbox/${name}/${verb}`, { query, patience: verbMs })
    moved.push(await settle(api, asked, to, activity))
    activity[Symbol.dispose]()
    if (!json) note(`${cleanLine(name)} is ${to[0]}.`)
  }
  if (json) await printJson(moved)
}

export const forkSandbox = async (
  api: Api,
  idOrName: string,
  { json, name }: Json & { name?: string },
): Promise<void> => {
  using activity = new Activity(`forking ${cleanLine(idOrName)}`)
  const body = name === undefined ? {} : { name }
  const asked = await api.ask<Sandbox>('POST', path`/sandbox/${idOrName}/fork`, { body, patience: verbMs })
  const fork = await settle(api, asked, ['started', 'stopped', 'paused'], activity)
  activity[Symbol.dispose]()
  if (json) await printJson(fork)
  else await print(cleanLine(fork.id))
}

export const deleteSandboxes = (api: Api, names: readonly string[], { json }: Json): Promise<void> =>
  deleteAll(api, names, { json, pathOf: (name) => path`/sandbox/${name}` })
