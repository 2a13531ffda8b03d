// `alcove runner --join`: adds a runner to a running server, and keeps the runner running as `up` does with its
// programs.
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { localGateId } from '#src/wire/hosts.ts'
import { checkHost, peersAddressOf } from './address.ts'
import { Complaint } from './complaint.ts'
import type { UpConfig } from './config.ts'
import { prepareDataDirectory } from './data-directory.ts'
import { orDiskComplaint } from './disk-complaint.ts'
import { createDisplay } from './display.ts'
import { joinOverNetwork, type NetworkJoinOptions } from './hosts/join-network.ts'
import { keepJoined } from './keep-joined.ts'
import { buildNativePrograms } from './native-programs.ts'
import { endOrphans } from './orphans.ts'
import { runnerProgram } from './programs.ts'
import { reserveIds } from './reserved-ids.ts'
import { ensurePackages } from './system-packages.ts'
import { onceAskedToStop, takeDataDirectory } from './taking.ts'

type JoinOptions = NetworkJoinOptions & { join: string }

/**
 * Joins a server and keeps the runner running until `alcove` is asked to stop. Throws an error for the operator if the runner
 * cannot join, or if the server refuses it later.
 */
export const joinServer = (options: JoinOptions, config: UpConfig): Promise<void> =>
  orDiskComplaint(options.data, () => runJoined(options, config))

const runJoined = async (options: JoinOptions, config: UpConfig): Promise<void> => {
  const { data: directory, join: url, token } = options
  if (process.getuid?.() !== 0) throw new Complaint('sandboxes need root (cgroups, mounts, networks)')
  const controlUrl = readUrl(url)
  if (controlUrl.protocol === 'https:') return await joinOverNetwork(controlUrl, options, config)
  const display = createDisplay()
  if (!token) {
    throw new Complaint(
      'give the token that "alcove runner add" printed on the server: with --token, or in ALCOVE_RUNNER_KEY',
    )
  }
  if (Object.keys(config.archive).length === 0) {
    throw new Complaint('ALCOVE_ARCHIVE_STORE must be set to the store of the server: sandboxes move through it')
  }
  // The server's gate serves this runner's sandboxes. Gates of other machines call the server's gate at the server's port plus 4.
  const gateAddress = readGateAddress(options.address, Number(controlUrl.port || 80))
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
    gate: { id: localGateId, ...(gateAddress !== undefined && { address: gateAddress }) },
  })
  await keepJoined({ data, controlUrl, runner, programs: [program], display, stopAsked })
}

const readGateAddress = (address: string | undefined, port: number): string | undefined => {
  if (address === undefined) return undefined
  checkHost('--address', address)
  return peersAddressOf(address, port)
}

const readUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && url.pathname.replace(/^\/api\/?$/, '/') === '/') return url
  throw new Complaint(`--join ${text} is not the address of a server, such as http://127.0.0.1:4600`)
}

/** Throws if the server is not on this machine. A gate calls a runner by a unix socket, which works only within one machine. */
const checkIsHere = async ({ hostname }: URL): Promise<void> => {
  const addresses = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => [])
  if (addresses.length === 0) throw new Complaint(`the name ${hostname} cannot be resolved`)
  const ours = new Set(Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address)))
  if (addresses.some(({ address }) => ours.has(address))) return
  throw new Complaint(
    `${hostname} is another machine: start the server there with --hosts, and join https://${hostname}:4603`,
  )
}

/** Asks the server whether it accepts the runner's token, before anything is created on this host. */
const introduce = async (controlUrl: URL, token: string): Promise<{ id: string; regionId: string }> => {
  const reply = await fetch(new URL('/api/runners/current', controlUrl), {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(10_000),
  }).catch((error: Error) => {
    throw new Complaint(
      `${controlUrl.origin} does not answer: ${(error.cause as Error | undefined)?.message ?? error.message}`,
    )
  })
  if (reply.status === 401 || reply.status === 403)
    throw new Complaint(
      'the server does not know this token: it was replaced, used by another machine, or its runner was removed. "alcove runner token NAME" on the server prints a new token',
    )
  if (!reply.ok) throw new Complaint(`the server answered with status ${reply.status}`)
  return (await reply.json()) as { id: string; regionId: string }
}
