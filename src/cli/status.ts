// `alcove status`: shows the state of the programs, the sandboxes, and the disk space of images.
import { isAlive } from '#src/kit/process-identity.ts'
import { asSize } from '#src/runner/images/limits.ts'
import { Complaint } from '#src/up/complaint.ts'
import { type DataDirectory, findAdminKey, findDataDirectory } from '#src/up/data-directory.ts'
import { findRunningUp, findUpState, isJoinedRunner, type ProgramState, type UpState } from '#src/up/state-file.ts'
import { describeDefaultImage, progressOf } from './images.ts'

type Status = {
  running: boolean
  /** Why no program runs. Absent if the reason is unknown. */
  ended?: string
  url?: string
  pid?: number
  programs: (ProgramState & { alive: boolean })[]
  /** Number of sandboxes in each state. Absent if control's metrics could not be read. */
  sandboxes?: Record<string, number>
  /** Bytes of images, by runner and kind of image file. Absent if control's metrics could not be read. */
  imageBytes?: Record<string, Record<string, number>>
  /** The age of the default image, and whether it is being renewed. Absent if the user is not root. */
  defaultImage?: string
  /** Why the number of sandboxes could not be read. */
  sandboxesUnknown?: string
}

/** Counts the sandboxes of all organizations by state, from control's metrics. Warm sandboxes are not counted. */
export const sandboxesIn = (metrics: string): Record<string, number> =>
  Object.fromEntries(
    [...metrics.matchAll(/^alcove_sandboxes\{state="(\w+)",warm="false"\} (\d+)$/gm)]
      .map(([, state, count]) => [state, Number(count)] as const)
      .filter(([, count]) => count > 0),
  )

/** Reads the bytes of images by runner and kind from control's metrics. */
export const imageBytesIn = (metrics: string): Record<string, Record<string, number>> => {
  const found: Record<string, Record<string, number>> = {}
  const lines = metrics.matchAll(/^alcove_runner_image_bytes\{runner="([^"]*)",kind="(\w+)"\} (\S+)$/gm)
  for (const [, runner = '', kind = '', bytes] of lines) found[runner] = { ...found[runner], [kind]: Number(bytes) }
  return found
}

const askMetrics = async ({ host, port }: UpState, key: string): Promise<string> => {
  const server = `http://${host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`
  const reply = await fetch(`${server}/metrics`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.timeout(5000),
  })
  if (!reply.ok) throw new Error(`the API answered ${reply.status}`)
  return await reply.text()
}

/** Reads the numbers that only control's metrics have. This needs root and a running control. */
const findInMetrics = async (
  data: DataDirectory,
  up: UpState,
): Promise<Pick<Status, 'sandboxes' | 'imageBytes' | 'sandboxesUnknown'>> => {
  if (isJoinedRunner(up)) return { sandboxesUnknown: `this is a runner of the server at ${up.url}` }
  try {
    const key = findAdminKey(data)
    if (key === undefined) return { sandboxesUnknown: 'the key of the server no longer exists' }
    const metrics = await askMetrics(up, key)
    return { sandboxes: sandboxesIn(metrics), imageBytes: imageBytesIn(metrics) }
  } catch (error) {
    return { sandboxesUnknown: error instanceof Complaint ? error.message : 'the API does not answer' }
  }
}

const whyEnded = ({ stateFile }: DataDirectory): Pick<Status, 'ended'> => {
  const last = findUpState(stateFile)
  const isRefused = last && isJoinedRunner(last) && last.programs.some(({ state }) => state === 'refused')
  return isRefused ? { ended: `its server, ${last.url}, no longer accepts its token` } : {}
}

const defaultImageOf = (data: DataDirectory, { makingImage: making }: UpState): Pick<Status, 'defaultImage'> => {
  const defaultImage = making ? `is being made: ${progressOf(making)}` : describeDefaultImage(data)
  return defaultImage === undefined ? {} : { defaultImage }
}

export const readStatus = async (directory: string): Promise<Status> => {
  const data = findDataDirectory(directory)
  const up = data && findRunningUp(data.stateFile)
  if (!up) return { running: false, ...(data ? whyEnded(data) : {}), programs: [] }
  return {
    running: true,
    url: up.url,
    pid: up.pid,
    programs: up.programs.map((program) => ({ ...program, alive: isAlive(program) })),
    ...(await findInMetrics(data, up)),
    ...defaultImageOf(data, up),
  }
}

/** Returns the lines about sandboxes. The state `build_failed` has its own line, because it uses no resources of a host. */
export const sandboxLines = ({ build_failed: failed = 0, ...others }: Record<string, number>): string[] => {
  const states = Object.entries(others).map(([state, count]) => `${count} ${state}`)
  const kept = 'kept until their owners delete them; they use no CPU, memory or disk'
  return [`sandboxes ${states.join(', ') || 'none'}`, ...(failed > 0 ? [`failed creates ${failed}, ${kept}`] : [])]
}

const kindWords: Record<string, string> = { images: 'images', layers: 'kept layers', lines: 'build lines' }

/** Returns a line for each runner, such as `disk of local: images 3.1 GiB, kept layers 0.8 GiB, build lines 0.2 GiB`. */
export const imageLines = (imageBytes: Record<string, Record<string, number>>): string[] =>
  Object.entries(imageBytes).map(([runner, kinds]) => {
    const parts = Object.entries(kinds).map(([kind, bytes]) => `${kindWords[kind] ?? kind} ${asSize(bytes)}`)
    return `disk of ${runner}: ${parts.join(', ')}`
  })

const age = (since: string) => {
  const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`
}

const describe = ({ name, pid, state, since, restarts, lastEnd }: ProgramState) => {
  const line = [
    `  ${name.padEnd(11)}`,
    state.padEnd(9),
    (pid === 0 ? '-' : String(pid)).padStart(8),
    age(since).padStart(8),
  ]
  if (state === 'refused') line.push('  control does not accept its key')
  return `${line.join(' ')}${restarts > 0 ? `   restarts ${restarts}, last: ${lastEnd}` : ''}`
}

/** Prints the status. If no program runs, the exit code is 3, as service managers expect of a status command. */
export const status = async (directory: string, { json }: { json: boolean }): Promise<void> => {
  const found = await readStatus(directory)
  if (!found.running) process.exitCode = 3
  if (json) return console.log(JSON.stringify(found, null, 2))
  if (!found.running)
    return console.log(
      `No server or runner is running with the data directory ${directory}${found.ended ? `: ${found.ended}` : ''}.`,
    )
  const isServer = found.programs.some(({ name }) => name === 'control')
  console.log(
    `${isServer ? `Alcove at ${found.url}/api` : `A host of the server at ${found.url}`}, process ${found.pid}\n`,
  )
  for (const program of found.programs) console.log(describe(program))
  const lines = found.sandboxes ? sandboxLines(found.sandboxes) : [`sandboxes unknown: ${found.sandboxesUnknown}`]
  console.log(`\n${lines.map((line) => `  ${line}`).join('\n')}`)
  for (const line of imageLines(found.imageBytes ?? {})) console.log(`  ${line}`)
  if (found.defaultImage) console.log(`  default image ${found.defaultImage}`)
}
