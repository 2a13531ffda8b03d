// What tests share: one PostgreSQL for control's tests, one whole platform for the tests with real sandboxes.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { purge } from '#src/cli/purge.ts'
import { silentLog } from '#src/kit/log.ts'
import { startPostgres } from '#src/postgres/embedded.ts'
import { findDataDirectory, uids } from '#src/up/data-directory.ts'
import { freePorts } from '#test/sandboxes/free-ports.ts'

const launcher = resolve(import.meta.dirname, '../alcove')

/** Answers the URL of a superuser. */
export const startTestPostgres = async (scratch: string): Promise<{ url: string; stop: () => Promise<void> }> => {
  chmodSync(scratch, 0o711)
  const directory = join(scratch, 'database')
  const identity = { uid: uids.postgres, gid: uids.postgres }
  const server = await startPostgres({
    directory,
    socketDirectory: join(scratch, 'sql'),
    ...identity,
    log: silentLog(),
  })
  return { url: server.url, stop: server.stop }
}

/** Starts `./alcove up` and answers when it is ready; what it prints goes to our standard error. */
export const startSharedPlatform = async (data: string): Promise<ChildProcess> => {
  const port = await freePorts(2)
  const child = spawn(launcher, ['up', '--data', data, '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ALCOVE_MOST_WARM: '0', ...process.env },
  })
  const printed = new Promise<void>((resolve) => {
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-65536)
      if (text.includes('Alcove is ready')) resolve()
    })
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`alcove up ended with exit code ${code}`)
  })
  await Promise.race([printed, ended])
  ended.catch(() => {})
  return child
}

/** Removes every server whose data lies below `directory`; answers what would not go. */
export const purgeBelow = async (directory: string): Promise<string[]> => {
  if (!existsSync(directory)) return []
  const left: string[] = []
  for (const name of readdirSync(directory)) {
    const data = findDataDirectory(join(directory, name))
    if (data) left.push(...(await purge(data)))
  }
  if (left.length === 0) rmSync(directory, { recursive: true, force: true })
  return left
}
