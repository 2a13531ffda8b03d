// Downloads the file that an ADD names. curl runs without privileges, in a network from which neither the URL nor a redirect leads
// to the host or a private network.
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { chown, type FileHandle, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { users } from '#src/kit/confined.ts'
import { openEgress } from './egress.ts'
import { checkRoom } from './files.ts'
import { ImageFailed, Unreached } from './image-failed.ts'
import { asSize, type ImageLimits } from './limits.ts'
import { isOfOperator, isPrivate, type RegistrySettings } from './skopeo.ts'
import { lastWords, runJob } from './workshop.ts'

/** A downloaded file on the host. An unprivileged program has written this file. */
export type WebFile = { file: FileHandle; size: number; modifiedSeconds: number; digest: string }

export type Fetching = {
  settings: RegistrySettings
  limits: ImageLimits
  /** An empty directory for temporary files, which belongs to root. */
  scratch: string
  mostBytes: number
  signal: AbortSignal
}

const mostRedirects = 10
/** Exit codes of curl for an unreachable server: unknown name, no connection, timeout, or no complete answer (curl(1)). */
const exitsUnreached = [5, 6, 7, 28, 45, 52, 55, 56]
const exitTooLarge = 63
const exitRefused = 22

export const fail = (message: string, cause?: unknown) => new ImageFailed('build-failed', message, { cause })

export const tooSlow = ({ host }: URL) => fail(`${host} did not send everything in time.`)

export const tooLarge = (mostBytes: number, cause?: unknown) =>
  new ImageFailed('too-large', `The download is larger than the image may be (${asSize(mostBytes)}).`, { cause })

/** Returns the host, with the port if the URL has one. The settings name registries in this form. */
const hostOf = (url: URL): string => url.host

export const fetchWebFile = async (
  address: string,
  checksum: string | undefined,
  fetching: Fetching,
): Promise<WebFile> => {
  const { settings, limits, scratch, mostBytes, signal } = fetching
  const url = new URL(address)
  const named = { registry: hostOf(url) }
  const isNamed = isOfOperator(named, settings)
  if (!isNamed && isPrivate(named))
    throw new ImageFailed(
      'refused',
      `${url.host} is not on the public Internet, and ADD fetches only from the public Internet.`,
    )
  const directory = join(scratch, 'fetched')
  await mkdir(directory)
  await chown(directory, users.fetcher, users.fetcher)
  const begun = performance.now()

  await using egress = await openEgress(isNamed, settings, scratch)
  const outcome = await runJob(scratch, {
    argv: [
      ...['curl', '--disable', '--silent', '--show-error', '--fail', '--location', '--globoff', '--remote-time'],
      ...['--proto', '=http,https', '--max-redirs', String(mostRedirects), '--max-filesize', String(mostBytes)],
      ...['--connect-timeout', String(Math.ceil(limits.answerTimeoutMs / 1000)), '--speed-time', '60'],
      ...['--speed-limit', '1', '--user-agent', 'alcove', '--output', '/work/file', '--', url.href],
    ],
    views: [...egress.views, { from: directory, at: '/work', writable: true }],
    ids: { base: users.fetcher, count: 1 },
    network: egress.of,
    largestFileBytes: mostBytes,
    timeoutMs: limits.timeoutMs,
    tookTooLong: () => tooSlow(url),
    signal,
    watch: () => checkRoom(directory, limits),
  })
  const cause = lastWords(outcome.stderr)
  const { exitCode } = outcome
  if (exitsUnreached.includes(exitCode as number))
    throw isNamed
      ? fail(`${url.host} cannot be reached.`, cause)
      : new Unreached(`server ${url.host}`, { begun, answerTimeoutMs: limits.answerTimeoutMs }, { cause })
  if (exitCode === exitRefused) {
    const [, status = 'an error'] = /error: (\d{3})/.exec(outcome.stderr) ?? []
    throw fail(`${url.host} answered with ${status}.`, cause)
  }
  if (exitCode === exitTooLarge || /file too large/i.test(outcome.stderr)) throw tooLarge(mostBytes, cause)
  if (exitCode !== 0) throw fail(`The file could not be fetched from ${url.host}.`, cause)
  return opened(join(directory, 'file'), checksum)
}

/** Opens, as root, the file that curl has written. Anything but a regular file counts as empty. Throws if the checksum is wrong. */
const opened = async (path: string, checksum: string | undefined): Promise<WebFile> => {
  // If the server's answer is empty, curl writes no file. An empty file is used instead.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(path, flags).catch(() => open('/dev/null', constants.O_RDONLY))
  try {
    const stats = await file.stat()
    const size = stats.isFile() ? stats.size : 0
    const hash = createHash('sha256')
    for await (const piece of piecesOf({ file, size })) hash.update(piece)
    const digest = `sha256:${hash.digest('hex')}`
    if (checksum !== undefined && checksum !== digest)
      throw new ImageFailed('corrupted', `The file does not match --checksum: its digest is ${digest}.`)
    return { file, size, modifiedSeconds: Math.floor(stats.mtimeMs / 1000), digest }
  } catch (error) {
    await file.close()
    throw error
  }
}

const pieceBytes = 1024 * 1024

export async function* piecesOf({ file, size }: Pick<WebFile, 'file' | 'size'>): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(pieceBytes, size - at)), 0, undefined, at)
    if (bytesRead === 0) throw new Error('a fetched file became shorter')
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
