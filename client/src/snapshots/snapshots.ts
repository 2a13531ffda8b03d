// The commands `alcove snapshot …`.
import { setTimeout as delay } from 'node:timers/promises'
import { type Api, path } from '../api.ts'
import { cleanLine, cleanLines } from '../clean.ts'
import { deleteAll } from '../delete-all.ts'
import { exitCodes, Failure } from '../failure.ts'
import { print, printJson, printRows } from '../print/print.ts'
import { Activity } from '../print/progress.ts'
import { readDockerfile } from '../sandboxes/create.ts'
import { printBuildLog } from './build-log.ts'

type Json = { json?: boolean }

type Snapshot = {
  id: string
  name: string
  state: string
  imageName?: string
  cpu: number
  mem: number
  disk: number
  size: number | null
  errorReason: string | null
  progress?: { step: string; percent: number }
}

type Page = { items: Snapshot[]; page: number; totalPages: number }

const pageSize = '200'
const lookMs = 1000
/** Maximum time for which the command waits for a snapshot, in ms. */
const longestMs = 2 * 60 * 60_000
const makingStates = new Set(['building', 'pending', 'pulling', 'snapshotting'])

const getSnapshot = (api: Api, idOrName: string) => api.ask<Snapshot>('GET', path`/snapshots/${idOrName}`)

/** Waits until the snapshot can be used. If the snapshot could not be made, throws a Failure with the server's reason. */
const untilActive = async (api: Api, idOrName: string): Promise<Snapshot> => {
  using activity = new Activity('waiting for the snapshot')
  const end = Date.now() + longestMs
  let snapshot = await getSnapshot(api, idOrName)
  while (makingStates.has(snapshot.state)) {
    if (Date.now() > end) throw new Failure('The snapshot is still being made.', exitCodes.tryAgain)
    const { step, percent } = snapshot.progress ?? {}
    const how = step === undefined ? '' : `: ${cleanLine(step)}${percent === undefined ? '' : ` ${percent} %`}`
    activity.say(`${cleanLine(snapshot.state)}${how}`)
    await delay(lookMs, undefined, api.signal ? { signal: api.signal } : {})
    snapshot = await getSnapshot(api, idOrName)
  }
  if (snapshot.state === 'active') return snapshot
  const reason = cleanLines(snapshot.errorReason ?? '').trim()
  throw new Failure(`The snapshot could not be made${reason === '' ? '.' : `: ${reason}`}`, exitCodes.serverError)
}

/** Shows the build log while the snapshot is made. Ignores errors, because the build does not depend on its log. */
const showLog = async (api: Api, id: string): Promise<void> => {
  try {
    await printBuildLog(api, 'snapshots', id, { follow: true, to: process.stderr })
  } catch (error) {
    if (api.signal?.aborted) throw error
  }
}

export type SnapshotOptions = Json & {
  image?: string
  dockerfile?: string
  sandbox?: string
  cpu?: number
  memory?: number
  disk?: number
}

/** Makes a snapshot from an image, a Dockerfile or a sandbox, and waits until it can be used. */
export const createSnapshot = async (api: Api, name: string, options: SnapshotOptions): Promise<void> => {
  const { image, dockerfile, sandbox, cpu, memory, disk, json } = options
  if ([image, dockerfile, sandbox].filter((from) => from !== undefined).length !== 1)
    throw new Failure('A snapshot needs exactly one of --image, --dockerfile and --sandbox.', exitCodes.usage)
  let made: string
  if (sandbox === undefined) {
    const from =
      image === undefined
        ? { buildInfo: { dockerfileContent: readDockerfile(dockerfile ?? '') } }
        : { imageName: image }
    const body = Object.fromEntries(
      Object.entries({ name, ...from, cpu, memory, disk }).filter(([, value]) => value !== undefined),
    )
    made = (await api.ask<Snapshot>('POST', '/snapshots', { body })).id
    await showLog(api, made)
  } else {
    if (cpu !== undefined || memory !== undefined || disk !== undefined)
      throw new Failure(
        'A snapshot of a sandbox has the size of the sandbox. Remove --cpu, --memory and --disk.',
        exitCodes.usage,
      )
    await api.ask('POST', path`/sandbox/${sandbox}/snapshot`, { body: { name }, patience: 120_000 })
    made = name
  }
  const snapshot = await untilActive(api, made)
  if (json) await printJson(snapshot)
  else await print(cleanLine(snapshot.name))
}

export const listSnapshots = async (api: Api, options: Json): Promise<void> => {
  const items: Snapshot[] = []
  for (let page = 1; ; page += 1) {
    const answer: Page = await api.askPage<Page>('/snapshots', { page: String(page), limit: pageSize })
    items.push(...answer.items)
    if (page >= answer.totalPages || answer.items.length === 0) break
  }
  const rows = items.map((item) => [
    item.name,
    item.state,
    `${item.cpu} cpu`,
    `${item.mem} GiB`,
    `${item.disk} GiB`,
    item.imageName || '-',
  ])
  await printRows(options, items, ['NAME', 'STATE', 'CPU', 'MEMORY', 'DISK', 'IMAGE'], rows)
}

export const deleteSnapshots = (api: Api, names: readonly string[], { json }: Json): Promise<void> =>
  deleteAll(api, names, { json, pathOf: (name) => path`/snapshots/${name}` })
