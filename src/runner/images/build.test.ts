import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { runCommand } from '#src/kit/run-command.ts'
import { needsRoot } from '#test/needs-root.ts'
import { buildImage } from './build.ts'
import type { Recipe } from './recipe.ts'
import { makeBusy } from './testing/busy.ts'

const needs = needsRoot || (existsSync('/usr/bin/mmdebstrap') ? false : 'needs mmdebstrap')

const recipeFrom = (mirror: string): Recipe => ({
  sources: { suite: 'bookworm', lines: [`deb [trusted=yes] ${mirror} bookworm main`] },
  packages: ['python3'],
  nodePackages: [],
  steps: [],
  description: { user: 'daytona', env: {} },
})

suite('a build of the default image', { skip: needs }, () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'alcove-build-'))
    await mkdir(join(directory, 'root'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  const parts = (mirror: string, timeoutMs: number) => ({
    recipe: recipeFrom(mirror),
    target: join(directory, 'image.tar.zst'),
    root: join(directory, 'root'),
    workDir: join(directory, 'work'),
    timeoutMs,
    onLack: () => {},
  })

  /** A mirror that accepts connections and never answers. */
  const silentMirror = async () => {
    const server = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    return { server, url: `http://127.0.0.1:${port}/debian` }
  }

  test('if the package mirror fails, the error of the default image’s build has the build’s last output', async () => {
    const { server, url } = await silentMirror()
    server.close()
    const steps: string[] = []
    await assert.rejects(
      buildImage({ ...parts(url, 300_000), onProgress: ({ step }) => steps.push(step) }),
      /could not be built[\s\S]*(refused|apt-get update)/i,
    )
    assert.deepEqual(steps, ['reading package lists'])
    assert.ok(!(await readdir(directory)).includes('work'))
  })

  test('a build of the default image first removes a killed build’s files, and retries a failed removal', async () => {
    const { server, url } = await silentMirror()
    server.close()
    using _ = makeBusy(join(directory, 'work/root'))
    const steps: string[] = []
    await assert.rejects(
      buildImage({ ...parts(url, 300_000), onProgress: ({ step }) => steps.push(step) }),
      /could not be built/,
    )
    assert.deepEqual(steps, ['reading package lists'])
  })

  test('a build of the default image ends at its time limit if the package mirror never answers', async () => {
    const { server, url } = await silentMirror()
    await assert.rejects(buildImage({ ...parts(url, 5000), onProgress: () => {} }), /not built within 5 s/)
    server.close()
    assert.ok(!(await readdir(directory)).includes('work'))
  })

  test('while a runner builds the default image, another runner’s pool on the host can be unmounted', async () => {
    const [file, pool] = [join(directory, 'pool.img'), join(directory, 'pool')]
    await mkdir(pool)
    await runCommand(['truncate', '--size', '128M', file])
    await runCommand(['mkfs.btrfs', '--quiet', file])
    await runCommand(['mount', '-o', 'loop', file, pool])
    const { server, url } = await silentMirror()
    const asked = once(server, 'connection')
    let isOver = false
    const built = buildImage({ ...parts(url, 60_000), onProgress: () => {} })
      .catch(() => {})
      .finally(() => {
        isOver = true
      })
    const [socket] = await asked
    try {
      await runCommand(['umount', pool])
      // The build must release the loop device long before the build ends. Other programs of the host may use the device briefly,
      // so wait until it is free.
      while (!isOver && (await runCommand(['losetup', '--noheadings', '--associated', file])) !== '') await delay(20)
      assert.equal(isOver, false)
    } finally {
      await runCommand(['umount', pool]).catch(() => {})
      server.close()
      socket.destroy()
      await built
    }
  })

  test('if the process of a default image build is killed, every process that it started ends too', async () => {
    const { server, url } = await silentMirror()
    const program =
      `import { buildImage } from ${JSON.stringify(import.meta.resolve('./build.ts'))}\n` +
      `await buildImage({ ...${JSON.stringify(parts(url, 300_000))}, onProgress() {} })`
    const connected = once(server, 'connection')
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
    const [socket] = await connected
    socket.resume()
    const closed = once(socket, 'close')
    child.kill('SIGKILL')
    // The build has started a program that downloads packages. This connection to the test's server closes when the program ends.
    await closed
    server.close()
    assert.ok(!(await runCommand(['cat', '/proc/self/mountinfo'])).includes(directory))
  })
})
