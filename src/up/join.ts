// `alcove runner --join`: adds a runner to a running server, and keeps the runner running as `up` does with its
// programs.
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { identityOf } from '#src/kit/process-identity.ts'
import { commandFor } from './command-for.ts'
import { Complaint } from './complaint.ts'
import type { UpConfig } from './config.ts'
import { type DataDirectory, prepareDataDirectory } from './data-directory.ts'
import { orDiskComplaint } from './disk-complaint.ts'
import { createDisplay, type Display } from './display.ts'
import { buildNativePrograms } from './native-programs.ts'
import { endOrphans } from './orphans.ts'
import { runnerProgram } from './programs.ts'
import { reserveIds } from './reserved-ids.ts'
import { upStateWriter, writeUpState } from './state-file.ts'
import { type Program, Supervised } from './supervised.ts'
import { ensurePackages } from './system-packages.ts'
import { onceAskedToStop, takeDataDirectory } from './up.ts'

type JoinOptions = { data: string; join: string; token: string | undefined }

const graceMs = 4000

/**
 * Runs a joined runner. Resolves when it was asked to stop and has stopped. Throws a Complaint if it cannot join, or if
 * the server refuses it later.
 */
export const joinServer = (options: JoinOptions, config: UpConfig): Promise<void> =>
  orDiskComplaint(options.data, () => runJoined(options, config))

const runJoined = async ({ data: directory, join: url, token }: JoinOptions, config: UpConfig): Promise<void> => {
  const display = createDisplay()
  if (process.getuid?.() !== 0) throw new Complaint('sandboxes need root (cgroups, mounts, networks)')
  const controlUrl = readUrl(url)
  if (!token) throw new Complaint('say --token, or ALCOVE_RUNNER_KEY: what "alcove runner add" printed on the server')
  if (Object.keys(config.archive).length === 0) {
    throw new Complaint('ALCOVE_ARCHIVE_STORE must be set, to the store of the server: archives are how sandboxes move')
  }
  await checkIsHere(controlUrl)
  const runner = await introduce(controlUrl, token)
  ensurePackages(display.say)
  const data = prepareDataDirectory(directory)
  takeDataDirectory(data)
  reserveIds()
  await buildNativePrograms(display.say)
  await endOrphans(data)

  const stopAsked = onceAskedToStop()
  const program = runnerProgram({
    data,
    config,
    addresses: { controlUrl: controlUrl.origin },
    onProgress: display.progress,
    secrets: { runnerKey: token },
  })
  await keepJoined({ data, controlUrl, runner, program, display, stopAsked })
}

type JoinedParts = {
  data: DataDirectory
  controlUrl: URL
  runner: { id: string; regionId: string }
  program: Program
  display: Pick<Display, 'say' | 'endProgress'>
  stopAsked: Promise<string>
}

/**
 * Keeps the runner running until it is asked to stop. Throws a Complaint if the server refuses the runner. In both
 * cases, its sandboxes keep running.
 */
export const keepJoined = async ({ data, controlUrl, runner, program, display, stopAsked }: JoinedParts) => {
  const refused = Promise.withResolvers<never>()
  // The state file stays when this process ends. It tells other commands that this data directory belongs to a joined
  // runner.
  const current = () => ({
    ...identityOf(process.pid),
    ...{ host: controlUrl.hostname, port: Number(controlUrl.port || 80), url: controlUrl.origin },
    programs: [supervised.state],
  })
  const write = upStateWriter(data.stateFile, display.say)
  const save = () => write(current())
  const supervised = new Supervised(program, (changed) => {
    save()
    const { state, lastEnd } = changed.state
    if (state === 'waiting') {
      display.say(`The runner ended (${lastEnd}); starting it again. Log: ${join(data.log, 'runner.log')}`)
    }
    if (state === 'refused') {
      const why = `${controlUrl.origin} does not take the token of runner "${runner.id}" any more, as after "alcove runner remove"`
      const what = `Join again with a token that it knows ("alcove runner add" prints a new one), or remove what is here: ${commandFor('purge', data.path)}`
      refused.reject(new Complaint(`${why}. Sandboxes run on. ${what}`))
    }
  })
  // If the state file cannot be written, the runner must not start. The file is therefore written first.
  writeUpState(data.stateFile, current())
  supervised.begin()
  try {
    const outcome = await Promise.race([supervised.firstReady.then(() => 'ready'), stopAsked, refused.promise])
    display.endProgress()
    if (outcome !== 'ready') return
    process.stdout.write(`Runner "${runner.id}" has joined ${controlUrl.origin} in region "${runner.regionId}".\n`)
    display.say(`Stopping (${await Promise.race([stopAsked, refused.promise])}) …`)
  } finally {
    display.endProgress()
    await supervised.stop(graceMs)
    save()
  }
}

const readUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && url.pathname.replace(/^\/api\/?$/, '/') === '/') return url
  throw new Complaint(`--join ${text} is not the address of a server, such as http://127.0.0.1:4600`)
}

/**
 * Throws if the server is on another machine, because a gate can call a runner only by a unix socket on the same
 * machine.
 */
const checkIsHere = async ({ hostname }: URL): Promise<void> => {
  const addresses = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => [])
  if (addresses.length === 0) throw new Complaint(`the name ${hostname} is not known`)
  const ours = new Set(Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address)))
  if (addresses.some(({ address }) => ours.has(address))) return
  throw new Complaint(`${hostname} is another machine; a runner can join a server on its own machine only, so far`)
}

/**
 * Asks the server whether it accepts the token of this runner. This is done before anything is created on this host, so
 * that a wrong token is reported immediately.
 */
const introduce = async (controlUrl: URL, token: string): Promise<{ id: string; regionId: string }> => {
  const reply = await fetch(new URL('/api/runners/current', controlUrl), {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(10_000),
  }).catch((error: Error) => {
    throw new Complaint(
      `${controlUrl.origin} does not answer: ${(error.cause as Error | undefined)?.message ?? error.message}`,
    )
  })
  if (reply.status === 401 || reply.status === 403) throw new Complaint('the server does not know this token')
  if (!reply.ok) throw new Complaint(`the server answered ${reply.status}`)
  return (await reply.json()) as { id: string; regionId: string }
}
