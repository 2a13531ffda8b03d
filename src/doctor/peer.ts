// Checks, step by step, whether this machine can use control's port for runners and gates. `runner --join` and `doctor
// --peer` use this check.
import { createHash, X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { request } from 'node:https'
import { connect as connectTcp, isIP } from 'node:net'
import { connect as connectTls, type DetailedPeerCertificate } from 'node:tls'
import { version, worksWith } from '#src/kit/version.ts'
import { controlHostName } from '#src/wire/hosts.ts'
import { ticketSkewMs } from '#src/wire/ticket.ts'

export type PeerCheck = {
  name: 'name' | 'port' | 'TLS' | 'authority' | 'clock' | 'version'
  isOk: boolean
  found: string
  /** What the operator can do if this step of the check failed. */
  remedy?: string
}

export type PeerReport = {
  /** The steps that `checkPeer` has run, in their order. If a step failed, it is the last one. */
  checks: PeerCheck[]
  /** The certificate of the server's authority, as PEM. Undefined if a step of `checkPeer` failed. */
  authority?: string
}

const patienceMs = 5000
/** Maximum number of certificates that are read from a server. An Alcove server sends two. */
const mostCertificates = 8

/** Thrown by a step of the check that failed, so that no further step is run. */
class Failed extends Error {
  readonly check: PeerCheck

  constructor(name: PeerCheck['name'], found: string, remedy: string) {
    super(found)
    this.check = { name, isOk: false, found, remedy }
  }
}

/**
 * Returns the hash of a server's certificate authority. A runner's token contains this hash, so that the joining machine can
 * recognize the server.
 */
export const authorityHashOf = (authority: X509Certificate): string =>
  createHash('sha256').update(authority.raw).digest('base64url')

const startAgain =
  'Start the server with ./alcove up --hosts ADDRESS. The port for hosts is --port plus 3, so usually 4603'

/**
 * Checks the server at `url`. `authorityHash`: the hash in the token of a runner. Without the hash, the authority that the server
 * presents is accepted, and reported as not checked.
 */
export const checkPeer = async (url: URL, authorityHash?: string): Promise<PeerReport> => {
  const checks: PeerCheck[] = []
  const note = (name: PeerCheck['name'], found: string) => void checks.push({ name, isOk: true, found })
  try {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const port = Number(url.port || 443)
    const address = await resolveName(host)
    note('name', isIP(host) ? `${host} is an address` : `${host} is ${address}`)
    const place = `${url.hostname}:${port}`
    await checkPort(address, port, place)
    note('port', `${place} answers`)
    const chain = await readChain(address, port, place)
    checkNames(chain, place)
    note('TLS', `${place} is the port for hosts of an Alcove server`)
    const authority = findAuthority(chain, place, authorityHash)
    const shown = authorityHashOf(authority)
    note('authority', authorityHash === undefined ? `${shown}; not checked, because no --token is given` : shown)
    checkDates(chain, place)
    const answer = await ask(url, address, authority)
    checkClock(answer.aheadMs)
    note('clock', `differs from the server's by less than ${ticketSkewMs / 1000} s`)
    checkVersion(answer.version)
    note('version', `this machine has ${version}, the server ${answer.version}`)
    return { checks, authority: authority.toString() }
  } catch (error) {
    if (!(error instanceof Failed)) throw error
    return { checks: [...checks, error.check] }
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? (error as Error).message

const resolveName = async (host: string): Promise<string> => {
  try {
    return (await lookup(host)).address
  } catch (error) {
    throw new Failed(
      'name',
      `this machine cannot resolve the name ${host} (${codeOf(error)})`,
      'Use the address of the server, or make its name known in DNS or /etc/hosts',
    )
  }
}

const checkPort = async (host: string, port: number, place: string): Promise<void> => {
  const socket = connectTcp({ host, port })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(patienceMs) })
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ECONNREFUSED') throw new Failed('port', `nothing listens at ${place}`, startAgain)
    if (code === 'ABORT_ERR' || code === 'ETIMEDOUT') {
      const remedy = 'Check the address, and that no firewall between the machines drops this port'
      throw new Failed('port', `${place} does not answer within ${patienceMs / 1000} s`, remedy)
    }
    throw new Failed('port', `${place} cannot be reached (${code})`, 'Check the address and the routes of this machine')
  } finally {
    socket.destroy()
  }
}

/** Reads the certificates that a server presents, its own first. This function does not verify them. */
const readChain = async (host: string, port: number, place: string): Promise<X509Certificate[]> => {
  const socket = connectTls({ host, port, servername: controlHostName, rejectUnauthorized: false })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(patienceMs) })
    const chain: X509Certificate[] = []
    let each: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
    while (each?.raw !== undefined && chain.length < mostCertificates) {
      chain.push(new X509Certificate(each.raw))
      each = each.issuerCertificate === each ? undefined : each.issuerCertificate
    }
    return chain
  } catch (error) {
    const code = codeOf(error)
    if (/EPROTO|WRONG_VERSION|PACKET_LENGTH|UNKNOWN_PROTOCOL|HTTP_REQUEST/.test(code)) {
      throw new Failed('TLS', `${place} does not speak TLS, so it is not the port for hosts`, startAgain)
    }
    if (code === 'ABORT_ERR')
      throw new Failed('TLS', `${place} accepts connections, but does not speak TLS`, startAgain)
    throw new Failed('TLS', `${place} ends the connection before TLS begins (${code})`, startAgain)
  } finally {
    socket.destroy()
  }
}

const checkNames = ([own]: readonly X509Certificate[], place: string): void => {
  if (own?.checkHost(controlHostName) !== undefined) return
  const name = own?.subjectAltName ?? own?.subject ?? 'nothing'
  throw new Failed(
    'TLS',
    `${place} speaks TLS as another server (${name}), so it is not the port for hosts`,
    startAgain,
  )
}

const findAuthority = (
  chain: readonly X509Certificate[],
  place: string,
  authorityHash: string | undefined,
): X509Certificate => {
  const authority =
    authorityHash === undefined
      ? chain.at(-1)
      : chain.find((certificate) => authorityHashOf(certificate) === authorityHash)
  const own = chain[0]
  if (authority !== undefined && own?.checkIssued(authority) && own.verify(authority.publicKey)) return authority
  throw new Failed(
    'authority',
    `${place} is not the server that printed this token, or another machine answers in its place`,
    'Compare the address with that of the server. "alcove runner token NAME" there prints a new token',
  )
}

const checkDates = (chain: readonly X509Certificate[], place: string): void => {
  const now = Date.now()
  for (const { validFrom, validTo } of chain) {
    if (Date.parse(validFrom) <= now && now <= Date.parse(validTo)) continue
    throw new Failed(
      'clock',
      `the certificates of ${place} are valid from ${validFrom} to ${validTo}, and the clock here says ${new Date(now).toISOString()}`,
      'Set the clock of this machine (timedatectl set-ntp true). If it is right, set that of the server and restart it',
    )
  }
}

/** Returns how many ms the clock of this machine is ahead of the server's clock, and the version of the server. */
const ask = async (
  url: URL,
  host: string,
  authority: X509Certificate,
): Promise<{ aheadMs: number; version: string | undefined }> => {
  const sentAt = Date.now()
  const asking = request({
    ...{ host, port: Number(url.port || 443), path: '/api/runners/join', method: 'GET', agent: false },
    ...{ ca: authority.toString(), servername: controlHostName, headers: { host: url.host } },
    signal: AbortSignal.timeout(patienceMs),
  })
  try {
    asking.end()
    const [response] = await once(asking, 'response')
    response.resume()
    const { date, 'alcove-version': told } = response.headers as Record<string, string | undefined>
    // The header `date` has only whole seconds. Assume that the server's clock was in the middle of that second.
    const aheadMs = date === undefined ? 0 : (sentAt + Date.now()) / 2 - (Date.parse(date) + 500)
    return { aheadMs, version: told }
  } catch (error) {
    throw new Failed('TLS', `${url.host} does not answer a request (${codeOf(error)})`, startAgain)
  } finally {
    asking.destroy()
  }
}

const checkVersion = (ofServer: string | undefined): void => {
  if (ofServer === undefined) throw new Failed('version', 'the server does not say its version', startAgain)
  if (worksWith(version, ofServer)) return
  throw new Failed(
    'version',
    `this machine has version ${version}, the server ${ofServer}: they may be at most one release apart`,
    "Install the server's release here, or upgrade the server",
  )
}

const checkClock = (aheadMs: number): void => {
  if (Math.abs(aheadMs) <= ticketSkewMs) return
  const seconds = Math.round(Math.abs(aheadMs) / 1000)
  throw new Failed(
    'clock',
    `the clock of this machine is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of the server`,
    'Set the clocks of both machines (timedatectl set-ntp true)',
  )
}

/** Returns the report as text: one line per step. The line of a failed step also says what to do. */
export const renderPeerChecks = (checks: readonly PeerCheck[]): string =>
  checks
    .map(({ name, isOk, found, remedy }) => {
      const line = `${isOk ? 'ok  ' : 'FAIL'}  ${name.padEnd(9)}  ${found}`
      return `${line}${remedy === undefined ? '' : `. ${remedy}.`}\n`
    })
    .join('')
