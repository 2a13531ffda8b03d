// The files of a host's certificates, which `up --hosts` and `runner --join https://…` make.
//   <data>/host/           0711
//   <data>/host/host.json  0600   the server that this host has joined
//   <data>/host/runner/    0700   authority.pem, certificate.pem and key.pem of the runner
//   <data>/host/gate/      0750   the gate's files with the same names, which the gate's group may read
// Each key is made only once. After an interrupted join, the next attempt uses the same keys.
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { users } from '#src/kit/confined.ts'
import { syncPathNow } from '#src/kit/sync-path.ts'
import { type HostCertificates, type HostProgram, hostPrograms } from '#src/wire/hosts.ts'
import type { DataDirectory } from '../data-directory.ts'

/** The server that a host has joined. */
export type JoinedServer = { url: string; runnerId: string; regionId: string; tokenHash: string }

/** The group that may read the certificate files of a program. */
const groups: Record<HostProgram, number> = { runner: 0, gate: users.gate }

/**
 * Replaces a file. A power failure during the call leaves the old content or the complete new content. A later power failure cannot
 * undo the replacement.
 */
const replaceFile = (path: string, text: string, group: number): void => {
  const draft = `${path}.new`
  writeFileSync(draft, text, { mode: 0o600, flush: true })
  chownSync(draft, 0, group)
  chmodSync(draft, group === 0 ? 0o600 : 0o640)
  renameSync(draft, path)
  syncPathNow(dirname(path))
}

export class HostFiles {
  readonly #directory: string

  /** Makes the directories for the certificates in the data directory. */
  constructor({ path }: Pick<DataDirectory, 'path'>) {
    this.#directory = join(path, 'host')
    mkdirSync(this.#directory, { recursive: true })
    chmodSync(this.#directory, 0o711)
    for (const program of hostPrograms) {
      const directory = this.directoryOf(program)
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      chownSync(directory, 0, groups[program])
      chmodSync(directory, program === 'runner' ? 0o700 : 0o750)
    }
  }

  /** Returns the directory that a program gets as ALCOVE_CERTIFICATES_DIR. */
  directoryOf(program: HostProgram): string {
    return join(this.#directory, program)
  }

  /** Returns the public keys of the programs as PEM. Makes the keys that are missing. */
  publicKeys(): Record<HostProgram, string> {
    return { runner: this.#publicKey('runner'), gate: this.#publicKey('gate') }
  }

  #publicKey(program: HostProgram): string {
    const path = join(this.directoryOf(program), 'key.pem')
    if (!existsSync(path)) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      replaceFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, groups[program])
    }
    const key = createPublicKey(createPrivateKey(readFileSync(path)) as never)
    return key.export({ type: 'spki', format: 'pem' }) as string
  }

  /** Writes new certificates. A program uses them from its next connection on. */
  write({ authority, certificates }: Pick<HostCertificates, 'authority' | 'certificates'>): void {
    for (const program of hostPrograms) {
      const put = (name: string, text: string) =>
        replaceFile(join(this.directoryOf(program), name), text, groups[program])
      put('authority.pem', authority)
      // Programs check only certificate.pem to find out whether there are new files, so it is written last.
      put('certificate.pem', certificates[program])
    }
  }

  /** When the first of this host's two certificates, the runner's and the gate's, expires. Undefined if one is missing. */
  get endsAt(): Date | undefined {
    const ends = hostPrograms.map((program) => {
      const path = join(this.directoryOf(program), 'certificate.pem')
      return existsSync(path) ? Date.parse(new X509Certificate(readFileSync(path)).validTo) : undefined
    })
    return ends.includes(undefined) ? undefined : new Date(Math.min(...(ends as number[])))
  }

  /** The server that this host has joined. Undefined: the host has joined no server yet. */
  get joined(): JoinedServer | undefined {
    const path = join(this.#directory, 'host.json')
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as JoinedServer) : undefined
  }

  /**
   * Saves to host.json, as the last step of a join, which server this host has joined. Without host.json, the next start joins
   * again.
   */
  noteJoined(server: JoinedServer): void {
    replaceFile(join(this.#directory, 'host.json'), `${JSON.stringify(server, null, 2)}\n`, 0)
  }
}
