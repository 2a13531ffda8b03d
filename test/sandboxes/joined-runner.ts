// Joins a second runner on this machine to a test's server: `./alcove runner --join` with a data directory of its own.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { purge } from '#src/cli/purge.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { until } from './box.ts'
import type { Platform } from './harness.ts'
import { listSandboxTraces } from './host.ts'
import { smallDefaultIn } from './small-default.ts'

const launcher = resolve(import.meta.dirname, '../../alcove')
const joinSeconds = 270

export type JoinedRunner = AsyncDisposable & {
  /** Lists what the host still has of this runner's sandboxes: one line per finding, as in `Platform.leftovers`. */
  leftovers: () => string[]
  /** Stops the runner as an operator would. Its sandboxes keep running. */
  stop: () => Promise<void>
  /** Starts the runner again after `stop`, from the same data directory. */
  start: () => Promise<void>
}

/** Starts a runner that is drained from the start, so that it gets no sandboxes until the test enables it. */
export const joinRunner = async (alcove: Platform, id: string, env: Record<string, string>): Promise<JoinedRunner> => {
  const added = await alcove.api('POST', '/runners', { name: id })
  assert.equal(added.status, 201, JSON.stringify(added.body))
  assert.equal((await alcove.api('PATCH', `/runners/${id}/scheduling`, { unschedulable: true })).status, 200)
  const servers = process.env['ALCOVE_TEST_SERVERS']
  const directory = mkdtempSync(join(servers ?? tmpdir(), 'alcove-joined-'))
  const images = { ALCOVE_CACHE_DIR: await smallDefaultIn(servers ?? directory) }
  const launch = () =>
    spawn(launcher, ['runner', '--data', directory, '--join', alcove.url], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...images, ...env, ALCOVE_RUNNER_KEY: String(added.body['apiKey']) },
    })
  let child: ReturnType<typeof launch>
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const stop = async () => {
    if (hasEnded()) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  const end = async () => {
    await stop()
    // Repeat the removal for up to a minute: processes of another test's server may still have copies of this runner's mounts.
    let left: readonly string[] = []
    const isPurged = async () => {
      left = await purge(dataDirectoryAt(directory))
      return left.length === 0
    }
    await until('nothing of the runner is left on the host', isPurged, 60).catch(() => assert.deepEqual(left, []))
  }
  const start = async () => {
    child = launch()
    let text = ''
    const hasJoined = new Promise<void>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        text += chunk.toString()
        if (text.includes('has joined')) resolve()
      }
      child.stdout.on('data', read)
      child.stderr.on('data', read)
      child.once('exit', () => reject(new Error(`alcove runner ended:\n${text}`)))
    })
    const late = setTimeout(() => child.kill('SIGTERM'), joinSeconds * 1000)
    await hasJoined.finally(() => clearTimeout(late))
  }
  await start().catch(async (error) => {
    await end()
    throw error
  })
  return { leftovers: () => listSandboxTraces(dataDirectoryAt(directory)), stop, start, [Symbol.asyncDispose]: end }
}
