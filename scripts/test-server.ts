// Starts a complete server that several test files with real sandboxes share.
import { spawn } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { purge } from '#src/cli/purge.ts'
import { findDataDirectory } from '#src/up/data-directory.ts'
import { freePorts } from '#test/sandboxes/free-ports.ts'

const launcher = resolve(import.meta.dirname, '../alcove')

/**
 * Returns the addresses of Debian's mirror. If the mirror is in a private network, sandboxes reach it only with
 * ALCOVE_OPEN_NETWORKS.
 */
const findMirror = async (): Promise<string[]> => {
  const found = await lookup('deb.debian.org', { all: true, family: 4 }).catch(() => [])
  return found.map(({ address }) => address)
}

/** Starts `./alcove up` and resolves when the server is ready. When the signal `stopping` aborts, the server is stopped. */
export const startSharedPlatform = async (
  data: string,
  stopping: AbortSignal,
): Promise<{ stop: () => Promise<void> }> => {
  const port = await freePorts(3)
  const child = spawn(launcher, ['up', '--data', data, '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ALCOVE_MOST_WARM: '0',
      // With this short interval, no test has to wait a minute for the first samples of resource use.
      ALCOVE_METER_SECONDS: '2',
      ALCOVE_OPEN_NETWORKS: (await findMirror()).join(','),
      ...process.env,
    },
  })
  const printed = new Promise<void>((resolve) => {
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-65536)
      if (text.includes('Alcove is ready')) resolve()
    })
  })
  const ended = once(child, 'exit')
  stopping.addEventListener('abort', () => child.kill('SIGTERM'))
  const early = ended.then(([code]) => {
    throw new Error(`alcove up ended with exit code ${code}`)
  })
  early.catch(() => {})
  await Promise.race([printed, early])
  return {
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Removes every server that has its data directory below `directory`. Returns the directories that it could not remove. */
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
