// `alcove runner --join https://…`: makes this machine, with a runner and a gate, a host of a server on another machine. The first
// start exchanges a token for certificates. Later starts need no token.
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { checkPeer } from '#src/doctor/peer.ts'
import { credentialFor } from '#src/kit/credential.ts'
import { readStoreAddress } from '#src/kit/store-address.ts'
import { authorityHashIn, controlHostName, type GateOfHost } from '#src/wire/hosts.ts'
import { bracketed, checkHost, peersAddressOf } from '../address.ts'
import { Complaint } from '../complaint.ts'
import type { UpConfig } from '../config.ts'
import { type DataDirectory, prepareDataDirectory } from '../data-directory.ts'
import { createDisplay, type Display } from '../display.ts'
import { keepJoined } from '../keep-joined.ts'
import { buildNativePrograms } from '../native-programs.ts'
import { endOrphans } from '../orphans.ts'
import { checkPortsAreFree } from '../ports.ts'
import { gateProgram, runnerProgram } from '../programs.ts'
import { checkCodeIsReadable } from '../readable-code.ts'
import { reserveIds } from '../reserved-ids.ts'
import { ensurePackages } from '../system-packages.ts'
import { codeDirectory, onceAskedToStop, takeDataDirectory } from '../taking.ts'
import { HostFiles, type JoinedServer } from './host-files.ts'
import { newTokenRemedy, Renewal } from './renewal.ts'
import { askControl, Refused, renewCertificates, tradeToken } from './trade.ts'

export type NetworkJoinOptions = {
  data: string
  token: string | undefined
  /** Address on which the gate listens for clients. */
  host: string
  port: number
  /**
   * The address at which other machines reach this machine. Undefined: this machine's address on the route to the
   * server.
   */
  address?: string | undefined
  publicUrl?: string | undefined
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

export const joinOverNetwork = async (url: URL, options: NetworkJoinOptions, config: UpConfig): Promise<void> => {
  const display = createDisplay()
  checkHost('--host', options.host)
  if (options.address !== undefined) checkHost('--address', options.address)
  const publicUrl = readPublicUrl(options.publicUrl)
  checkStore(config, display.say)
  checkCodeIsReadable(codeDirectory)
  ensurePackages(display.say)
  const data = prepareDataDirectory(options.data)
  takeDataDirectory(data)
  const files = new HostFiles(data)
  const server = await joinedServer(url, options, { data, files, say: display.say })
  const address = options.address ?? (await addressTowards(url))
  const gate: GateOfHost = {
    id: server.runnerId,
    address: peersAddressOf(address, options.port),
    ...(publicUrl !== undefined && { publicUrl }),
  }
  reserveIds()
  await buildNativePrograms(display.say)
  await endOrphans(data)
  await checkPortsAreFree([
    { host: options.host, port: options.port + 1 },
    { host: address, port: options.port + 4 },
  ])
  const stopAsked = onceAskedToStop()
  await using renewal = new Renewal({
    renew: async () => await renewFor(url, server, files),
    endsAt: () => files.endsAt,
    say: display.say,
  })
  const addresses = {
    controlUrl: url.origin,
    gate: `${bracketed(options.host)}:${options.port + 1}`,
    publicProxyUrl: publicUrl ?? `http://${bracketed(address)}:${options.port + 1}`,
  }
  const parts = { data, config, addresses, port: options.port + 1, secrets: {}, onProgress: display.progress }
  await keepJoined({
    ...{ data, controlUrl: url, display, stopAsked },
    runner: { id: server.runnerId, regionId: server.regionId },
    programs: [
      runnerProgram({ ...parts, gate, certificates: files.directoryOf('runner') }),
      gateProgram({
        ...parts,
        peers: { gate, certificates: files.directoryOf('gate'), hasCertificates: renewal.hasCertificates },
      }),
    ],
  })
}

const readPublicUrl = (text: string | undefined): string | undefined => {
  if (text === undefined) return undefined
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin
  throw new Complaint(
    `--public-url ${text} must be http:// or https:// and a host name, such as https://host2.example.com`,
  )
}

/** Throws if no archive store is set for this host, because sandboxes move to other machines through the store. */
const checkStore = ({ archive }: UpConfig, say: Display['say']): void => {
  const address = archive['ALCOVE_ARCHIVE_STORE']
  if (address === undefined) {
    throw new Complaint(
      'ALCOVE_ARCHIVE_STORE must be set here and on the server, to one store that all machines reach: s3://…, or file:///PATH of a directory that you mount on all of them',
    )
  }
  const store = readStoreAddress({ address, accessKey: 'x', secret: 'x' })
  if (typeof store !== 'string' && store.kind === 'directory') {
    say(`Sandboxes move between machines through ${store.path}: it must be one directory, mounted on all of them.`)
  }
}

type Parts = { data: Pick<DataDirectory, 'path'>; files: HostFiles; say: Display['say'] }

/**
 * Returns the server that this host has joined. Joins the server first if this host has joined none, or if `token` is
 * new.
 */
export const joinedServer = async (
  url: URL,
  { token }: Pick<NetworkJoinOptions, 'token'>,
  { data, files, say }: Parts,
): Promise<JoinedServer> => {
  const joined = files.joined
  if (joined !== undefined && (token === undefined || hashOf(token) === joined.tokenHash)) {
    await greet(url, joined, files, say)
    return joined
  }
  if (token === undefined) {
    throw new Complaint(
      `${data.path} has joined no server yet: give the token that "alcove runner add" printed on the server, with --token or in ALCOVE_RUNNER_KEY`,
    )
  }
  const authority = await checkWay(url, token)
  const credential = { headers: {}, tls: () => ({ ca: authority, servername: controlHostName }) }
  const told = await tradeToken(url, credential, { token, keys: files.publicKeys() }).catch((error) => {
    throw error instanceof Refused ? refusalOf(error, url) : error
  })
  files.write(told)
  const { runnerId, regionId } = told
  const server = { url: url.origin, runnerId, regionId, tokenHash: hashOf(token) }
  files.noteJoined(server)
  say(`This machine is now host "${runnerId}" of ${url.origin}. Later starts need no token.`)
  return server
}

/**
 * Checks before the token is sent that the server is the one that the token names. Returns the certificate of the server's
 * authority.
 */
const checkWay = async (url: URL, token: string): Promise<string> => {
  const hash = authorityHashIn(token)
  if (hash === undefined) {
    throw new Complaint(
      'this token is not for joining over the network: the server ran without --hosts when it printed the token. Start the server with "alcove up --hosts ADDRESS"; then "alcove runner token NAME" there prints a new token',
    )
  }
  const { checks, authority } = await checkPeer(url, hash)
  if (authority !== undefined) return authority
  const failed = checks.at(-1)
  throw new Complaint(`${failed?.found}. ${failed?.remedy}`)
}

const refusalOf = ({ status, message }: Refused, url: URL): Complaint => {
  if (status === 404)
    return new Complaint(`machines cannot join at ${url.origin} (${message}). Is this the port for hosts?`)
  if (status !== 401 && status !== 403) return new Complaint(`${url.origin} refuses this machine: ${message}`)
  return new Complaint(
    `${url.origin} does not know this token: another machine has used it, a newer token has replaced it, or its runner was removed. "alcove runner token NAME" on the server prints a new token`,
  )
}

const credentialOf = (url: URL, files: HostFiles) =>
  credentialFor(url, { key: '', certificatesDirectory: files.directoryOf('runner'), controlName: controlHostName })

/**
 * Asks the server, at each start after the join, whether it still knows this host. The host starts even without an answer, because
 * sandboxes run without the server.
 */
const greet = async (url: URL, { runnerId }: JoinedServer, files: HostFiles, say: Display['say']): Promise<void> => {
  const endsAt = files.endsAt
  if (endsAt !== undefined && endsAt.getTime() < Date.now()) {
    throw new Complaint(
      `the certificates of this host expired at ${endsAt.toISOString()}. ${newTokenRemedy(runnerId)}. If the clock here is wrong, set it first`,
    )
  }
  try {
    await askControl(url, credentialOf(url, files), { method: 'GET', path: '/runners/current' })
  } catch (error) {
    if (!(error instanceof Complaint)) throw error
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      throw new Complaint(
        `${url.origin} no longer accepts runner "${runnerId}", for example after "alcove runner remove" or when another machine joined with its newer token. "alcove runner add" or "alcove runner token" on the server prints a new token`,
      )
    }
    say(`${error.message}. The programs of this host start anyway, and connect when the server answers.`)
  }
}

const renewFor = async (url: URL, { runnerId }: JoinedServer, files: HostFiles): Promise<number> => {
  const told = await renewCertificates(url, credentialOf(url, files), files.publicKeys())
  if (told.runnerId !== runnerId) throw new Complaint(`${url.origin} answered for another runner, "${told.runnerId}"`)
  files.write(told)
  return told.renewAfterSeconds
}

/** Returns the address from which this machine would connect to the server, without sending anything. */
const addressTowards = async (url: URL): Promise<string> => {
  const { address } = await lookup(url.hostname.replace(/^\[|\]$/g, '')).catch(() => {
    throw new Complaint(`the name ${url.hostname} cannot be resolved`)
  })
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
  try {
    socket.connect(Number(url.port || 443), address)
    await once(socket, 'connect')
    return socket.address().address
  } catch {
    throw new Complaint(`this machine has no route to ${url.hostname}; give its own address with --address`)
  } finally {
    socket.close()
  }
}
