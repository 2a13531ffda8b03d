// Makes the programs in a sandbox trust its organization's certificate authority, which the proxy for secrets uses. The agent
// writes the files as root of the sandbox. If the agent cannot do so, the sandbox starts anyway, but its programs refuse the
// proxy's certificates.
import { rootCertificates } from 'node:tls'
import { settlesWithin } from '#src/kit/settles-within.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import type { Files } from '#src/toolbox/agent/agent.ts'
import { AgentRefused } from '#src/toolbox/agent/agent.ts'
import { trustFiles } from '#src/wire/secrets.ts'
import { certificatesIn, javaKeyStore } from './java-key-store.ts'

const withinMs = 20_000
/** Maximum size of an image's file of certificate authorities. A larger file is not changed. Debian's file has 220 KiB. */
const mostBytes = 2 * 1024 * 1024

/** Files with all trusted certificate authorities, on different distributions: Debian and Alpine, Fedora, SUSE, others. */
const lists = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]
/**
 * Directories for additional authorities, on different distributions: Debian and Alpine, Fedora, SUSE. When the distribution's tool
 * rebuilds the file of all authorities, the tool adds the authorities in these directories.
 */
const additions = ['/usr/local/share/ca-certificates', '/etc/pki/ca-trust/source/anchors', '/etc/pki/trust/anchors']

const begin = '# Alcove: for secrets'
const end = '# Alcove: end'
const ours = new RegExp(`${begin}\\n[^#]*${end}\\n?`, 'g')

const readFile = async (files: Files, path: string): Promise<string | undefined> => {
  try {
    const { size, stream } = await files.read(path, { length: mostBytes })
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    return size > mostBytes ? undefined : Buffer.concat(chunks).toString('latin1')
  } catch (error) {
    if (error instanceof AgentRefused) return undefined
    throw error
  }
}

const writeFile = async (files: Files, path: string, contents: Buffer | string): Promise<void> => {
  const bytes = typeof contents === 'string' ? Buffer.from(contents, 'latin1') : contents
  if ((await readFile(files, path)) === bytes.toString('latin1')) return
  await files.write(path, [bytes], { makeParents: true })
}

const isDirectory = async (files: Files, path: string): Promise<boolean> => {
  try {
    return (await files.stat(path, { followLink: true })).type === 'directory'
  } catch (error) {
    if (error instanceof AgentRefused) return false
    throw error
  }
}

const place = async (files: Files, authority: string): Promise<void> => {
  const block = `${begin}\n${authority}${end}\n`
  const found: string[] = []
  for (const path of lists) {
    const before = (await readFile(files, path))?.replaceAll(ours, '')
    // Skip a file without certificates. No program can rely on such a file, because a program that did would trust no server.
    if (before === undefined || !before.includes('BEGIN')) continue
    found.push(before)
    await writeFile(files, path, `${before}${before.endsWith('\n') ? '' : '\n'}${block}`)
  }
  for (const path of additions)
    if (await isDirectory(files, path)) await writeFile(files, `${path}/alcove-secrets.crt`, authority)
  const others = found[0] ?? `${rootCertificates.join('\n')}\n`
  await writeFile(files, trustFiles.authority, authority)
  await writeFile(files, trustFiles.bundle, `${others}${block}`)
  await writeFile(files, trustFiles.keyStore, javaKeyStore(certificatesIn(`${authority}${others}`)))
}

/** Makes the sandbox trust its organization's authority. Resolves when that is done, or after `withinMs`. */
export const placeTrust = async (
  { agentAt, places, log }: Pick<Machine, 'agentAt' | 'places' | 'log'>,
  sandboxId: string,
  authority: string | undefined,
): Promise<void> => {
  if (authority === undefined) return
  const placing = place(agentAt(socketOf(places, sandboxId)).files('root'), authority).catch((err: unknown) =>
    log.info({ err, sandboxId }, 'it could not be made to trust the authority for its secrets'),
  )
  if (!(await settlesWithin(placing, withinMs)))
    log.info({ sandboxId }, 'it takes too long to trust the authority for its secrets')
}
