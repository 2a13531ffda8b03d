// Asks a server for the certificates of a host. The first request has the token of the runner. Later requests have the runner's
// certificate or, on the server's own machine, the runner's key.
import { createPublicKey, X509Certificate } from 'node:crypto'
import { Pool } from 'undici'
import { type Credential, connectorFor } from '#src/kit/credential.ts'
import { readWhole } from '#src/kit/read-whole.ts'
import { version } from '#src/kit/version.ts'
import {
  type HostCertificates,
  type HostProgram,
  hostNameOf,
  hostPrograms,
  type JoinQuestion,
} from '#src/wire/hosts.ts'
import { Complaint } from '../complaint.ts'

type Keys = Record<HostProgram, string>

const answerBytes = 256 * 1024
const patienceMs = 10_000

const tooLarge = () => new Complaint('the answer of the server is too large for certificates')

/** Thrown if the server refuses a request for certificates. The message is a sentence for the operator. */
export class Refused extends Complaint {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'Refused'
    this.status = status
  }
}

type Body = { message?: unknown } & Partial<HostCertificates>

/**
 * Sends one request to control. Throws an error for the operator if control does not answer, and `Refused` if control refuses the
 * request.
 */
export const askControl = async (
  url: URL,
  credential: Credential,
  { method, path, body }: { method: 'GET' | 'POST'; path: string; body?: object },
): Promise<Body> => {
  const pool = new Pool(url.origin, {
    connect: connectorFor(credential, patienceMs),
    headersTimeout: patienceMs,
    bodyTimeout: patienceMs,
  })
  try {
    const reply = await pool.request({
      ...{ method, path: `/api${path}` },
      headers: { ...credential.headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = (await readWhole(reply.body, answerBytes, tooLarge)).toString('utf8')
    const answer = parsed(text)
    if (reply.statusCode < 300 && answer !== undefined) return answer
    const told = typeof answer?.message === 'string' ? answer.message : `it answered ${reply.statusCode}`
    throw new Refused(reply.statusCode, told)
  } catch (error) {
    if (error instanceof Complaint) throw error
    throw new Complaint(`${url.origin} does not answer: ${(error as Error).message}`, { cause: error })
  } finally {
    await pool.destroy()
  }
}

const parsed = (text: string): Body | undefined => {
  try {
    return JSON.parse(text) ?? undefined
  } catch {
    return undefined
  }
}

/** Throws an error for the operator if the certificates are not for this host's names and keys. */
export const checkCertificates = (answer: Body, keys: Keys): HostCertificates => {
  const { runnerId, regionId, authority, certificates, renewAfterSeconds } = answer
  const isShaped =
    [runnerId, regionId, authority, certificates?.runner, certificates?.gate].every(
      (each) => typeof each === 'string',
    ) &&
    typeof renewAfterSeconds === 'number' &&
    renewAfterSeconds > 0
  const told = answer as HostCertificates
  if (isShaped && hostPrograms.every((program) => isFor(told, program, keys[program]))) return told
  throw new Complaint('the server did not answer with a certificate for this host')
}

const isFor = ({ runnerId, authority, certificates }: HostCertificates, program: HostProgram, key: string): boolean => {
  try {
    const issuer = new X509Certificate(authority)
    const certificate = new X509Certificate(certificates[program])
    const isOurKey = certificate.publicKey.equals(createPublicKey(key))
    const isNamed = certificate.checkHost(hostNameOf(program, runnerId)) !== undefined
    return isOurKey && isNamed && certificate.verify(issuer.publicKey)
  } catch {
    return false
  }
}

/** Exchanges the token of a runner for certificates. If the answer is lost, a second call with the same token and keys succeeds. */
export const tradeToken = async (
  url: URL,
  credential: Credential,
  { token, keys }: { token: string; keys: Keys },
): Promise<HostCertificates> => {
  const question: JoinQuestion = { token, version, keys }
  const answer = await askControl(url, credential, { method: 'POST', path: '/runners/join', body: question })
  return checkCertificates(answer, keys)
}

/** Requests new certificates for a host that has joined. */
export const renewCertificates = async (url: URL, credential: Credential, keys: Keys): Promise<HostCertificates> => {
  const question = { version, keys }
  const answer = await askControl(url, credential, { method: 'POST', path: '/runners/certificates', body: question })
  return checkCertificates(answer, keys)
}
