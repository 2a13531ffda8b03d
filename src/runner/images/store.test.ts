import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { needsRoot } from '#test/needs-root.ts'
import type { buildImage } from './build.ts'
import { defaultRecipe, type Recipe, recipeHash, uv, uvStep, withoutUv } from './recipe.ts'
import { type ImageStoreOptions, openImageStore } from './store.ts'
import { makeBusy } from './testing/busy.ts'

const recipe: Recipe = {
  sources: { suite: 'test', lines: [] },
  packages: [],
  nodePackages: [],
  steps: [],
  description: { user: 'daytona', workDir: '/home/daytona', env: { LANG: 'C.UTF-8' } },
}
const hash = recipeHash(recipe)

const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))

suite('the image store of a runner', { skip: needsRoot }, () => {
  let directory: string
  let built: number

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'alcove-images-'))
    built = 0
    await mkdir(join(directory, 'tree/etc'), { recursive: true })
    await writeFile(join(directory, 'tree/etc/motd'), 'hello '.repeat(20_000))
    await writeFile(
      join(directory, 'tree/noise'),
      Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * i) % 251)),
    )
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  const build: typeof buildImage = async ({ target, root }) => {
    built++
    const script = 'tar -C "$0/tree" -c . | zstd -q -f -o "$1"; cp -a "$0/tree/." "$2"'
    execFileSync('sh', ['-ec', script, directory, target, root])
  }
  const open = (more: Partial<ImageStoreOptions> = {}) =>
    openImageStore({
      poolDir: join(directory, 'pool'),
      cacheDir: join(directory, 'cache'),
      publicNetwork,
      log: silentLog(),
      onProgress: () => {},
      recipe,
      build,
      ...more,
    })
  const cached = () => join(directory, `cache/default-${hash}.tar.zst`)
  const namesInPool = (pool = 'pool') => readdir(join(directory, pool, 'images'))

  test('the default image is built once, and is then listed and described', async () => {
    const store = open()
    assert.deepEqual([store.list(), store.rootfsOf('default'), store.describe('default')], [[], undefined, undefined])
    await Promise.all([store.ensureDefault(), store.ensureDefault()])
    await store.ensureDefault()
    assert.equal(built, 1)
    assert.deepEqual(store.list(), ['default'])
    assert.deepEqual(store.describe('default'), recipe.description)
    assert.equal((await readFile(`${store.rootfsOf('default')}/etc/motd`)).length, 120_000)
    assert.deepEqual(await namesInPool(), ['default'])
  })

  test('a runner with another data directory takes the default image from the host’s cache', async () => {
    await open().ensureDefault()
    const second = open({ poolDir: join(directory, 'second') })
    await second.ensureDefault()
    assert.equal(built, 1)
    assert.ok(existsSync(`${second.rootfsOf('default')}/etc/motd`))
  })

  test('two runners started at the same time build the default image once; one waits for the other', async () => {
    const steps: string[] = []
    const isBuilding = Promise.withResolvers<void>()
    const mayGoOn = Promise.withResolvers<void>()
    const first = open({
      build: async (parts) => {
        isBuilding.resolve()
        await mayGoOn.promise
        await build(parts)
      },
    }).ensureDefault()
    await isBuilding.promise
    const onProgress = ({ step }: { step: string }) => {
      steps.push(step)
      if (step.startsWith('waiting')) mayGoOn.resolve()
    }
    await open({ poolDir: join(directory, 'second'), onProgress }).ensureDefault()
    await first
    assert.equal(built, 1)
    assert.match(steps[0] as string, /^waiting for another server/)
  })

  test('a truncated or damaged cache file of the default image is detected, and the image is built again', async () => {
    await open().ensureDefault()
    const size = (await stat(cached())).size
    const damage = [
      () => truncate(cached(), size - 1),
      () => truncate(cached(), Math.floor(size / 2)),
      () => truncate(cached(), 0),
      async () => {
        const bytes = await readFile(cached())
        bytes[Math.floor(size / 2)] = (bytes[Math.floor(size / 2)] as number) ^ 0xff
        await writeFile(cached(), bytes)
      },
    ]
    for (const [index, harm] of damage.entries()) {
      await harm()
      const store = open({ poolDir: join(directory, `after-${index}`) })
      await store.ensureDefault()
      assert.equal(built, index + 2)
      assert.equal((await readFile(`${store.rootfsOf('default')}/noise`)).length, 300_000)
      assert.equal((await stat(cached())).size, size)
    }
  })

  test('a failed build of the default image reports the reason and leaves no image', async () => {
    const failing = open({
      build: async ({ target }) => {
        await writeFile(target, 'half')
        throw new Error('no network')
      },
    })
    await assert.rejects(failing.ensureDefault(), /no network/)
    assert.deepEqual([failing.list(), await namesInPool()], [[], []])
    assert.deepEqual(await readdir(join(directory, 'cache')), [`default-${hash}.tar.zst.lock`])
    await open().ensureDefault()
    assert.equal(built, 1)
  })

  test('if a runner is killed while it unpacks the default image, the next runner unpacks all of it again', async () => {
    await open().ensureDefault()
    await rm(join(directory, 'pool'), { recursive: true })
    // A program that never ends replaces the real tar, so that the process hangs while it unpacks.
    const program =
      `import { openImageStore } from ${JSON.stringify(import.meta.resolve('./store.ts'))}\n` +
      `import { silentLog } from ${JSON.stringify(import.meta.resolve('#src/kit/log.ts'))}\n` +
      `const onProgress = ({ step }) => { if (step.startsWith('unpacking')) setImmediate(() => process.kill(process.pid, 'SIGKILL')) }\n` +
      `const options = ${JSON.stringify({ poolDir: join(directory, 'pool'), cacheDir: join(directory, 'cache'), recipe })}\n` +
      `await openImageStore({ ...options, log: silentLog(), onProgress }).ensureDefault()`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
    const signal = await new Promise((resolve) => child.once('close', (_code, by) => resolve(by)))
    assert.equal(signal, 'SIGKILL')
    const store = open()
    assert.deepEqual(store.list(), [])
    await store.ensureDefault()
    assert.deepEqual([store.list(), await namesInPool()], [['default'], ['default']])
    assert.equal(built, 1)
  })

  test('a damaged cached default image is built again, even while a process uses its unpacked files', async () => {
    await open().ensureDefault()
    await rm(join(directory, 'pool'), { recursive: true })
    await truncate(cached(), 100)
    using held = new DisposableStack()
    const log = silentLog()
    log.warn = () => {
      const [partial = ''] = readdirSync(join(directory, 'pool/images'))
      held.use(makeBusy(join(directory, 'pool/images', partial, 'rootfs/half')))
    }
    const store = open({ log })
    await store.ensureDefault()
    assert.equal(built, 2)
    assert.deepEqual((await readdir(store.rootfsOf('default') as string)).sort(), ['etc', 'noise'])
  })

  test('the name of an image never leads to a file outside of the runner’s pool', async () => {
    const store = open()
    await store.ensureDefault()
    await writeFile(join(directory, 'pool/image.json'), JSON.stringify({ recipe: '', description: recipe.description }))
    for (const name of ['..', '.', '', 'default/..', '../images/default', '/etc', 'default\0', 'none']) {
      assert.deepEqual([store.rootfsOf(name), store.describe(name)], [undefined, undefined], JSON.stringify(name))
    }
  })
})

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Serves a package index on loopback, with a wheel of uv that this test has made. */
const serveUv = async () => {
  const directory = await mkdtemp(join(tmpdir(), 'alcove-index-'))
  const name = `uv-${uv.version}-py3-none-any.whl`
  const wheel = join(directory, name)
  const info = `uv-${uv.version}.dist-info`
  const files = {
    [`uv-${uv.version}.data/scripts/uv`]: '#!/bin/sh\necho the wheel of the test\n',
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: uv\nVersion: ${uv.version}\n`,
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    [`${info}/RECORD`]: '',
  }
  const pack = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
  for name, text in json.loads(sys.argv[2]).items():
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o100755 << 16
    wheel.writestr(entry, text)
`
  execFileSync('/usr/bin/python3', ['-c', pack, wheel, JSON.stringify(files)])
  const bytes = await readFile(wheel)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  // The server is a separate process, because this process is blocked while it waits for pip.
  const server = spawn('/usr/bin/python3', ['-u', '-c', serve, directory, name, sha256], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [port] = (await once(server.stdout, 'data')) as [Buffer]
  return {
    url: `http://127.0.0.1:${port.toString().trim()}/simple`,
    sha256,
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL')
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const serve = `
import http.server, sys
directory, name, digest = sys.argv[1:]
class Index(http.server.BaseHTTPRequestHandler):
  def do_GET(self):
    page = self.path == '/simple/uv/'
    body = f'<a href="/{name}#sha256={digest}">{name}</a>'.encode() if page else open(f'{directory}/{name}', 'rb').read()
    self.send_response(200)
    self.send_header('content-type', 'text/html' if page else 'application/octet-stream')
    self.send_header('content-length', str(len(body)))
    self.end_headers()
    self.wfile.write(body)
server = http.server.HTTPServer(('127.0.0.1', 0), Index)
print(server.server_port)
server.serve_forever()
`

const cannotBuild = needsRoot || (existsSync('/usr/bin/mmdebstrap') ? false : 'needs mmdebstrap')

test('the real default image has the programs and files that a sandbox needs', {
  skip: cannotBuild,
  timeout: 1_500_000,
}, async () => {
  const pool = await mkdtemp(join(tmpdir(), 'alcove-default-'))
  try {
    // Uses this machine's real cache of built images, so the image is built only if the cache lacks it.
    const store = openImageStore({
      poolDir: pool,
      cacheDir: '/var/cache/alcove',
      publicNetwork,
      log: silentLog(),
      onProgress: () => {},
    })
    await store.ensureDefault()
    const rootfs = store.rootfsOf('default') as string
    assert.deepEqual(store.describe('default'), defaultRecipe().description)

    const inside = (script: string) =>
      execFileSync('chroot', [rootfs, '/bin/bash', '-c', script], { encoding: 'utf8', env: { PATH } }).trim()
    assert.equal(
      inside('id -u daytona; id -g daytona; getent passwd daytona | cut -d: -f6,7'),
      '1000\n1000\n/home/daytona:/bin/bash',
    )
    assert.equal(inside('python -c "print(6*7)"; node -p 6*7; node -p process.version'), `42\n42\n${process.version}`)
    assert.match(inside('for tool in git curl pip3 apt-get ps less; do command -v $tool; done'), /^(\/\S+\n){5}\/\S+$/)
    assert.equal(inside('stat -c "%u %a" /usr/bin/su'), '165536 4755')
    assert.equal(inside('stat -c %u:%g /home/daytona'), '166536:166536')
    assert.equal(
      execFileSync(
        'find',
        [rootfs, '-uid', '-165536', '-o', '-gid', '-165536', '-o', '-type', 'c', '-o', '-type', 'b'],
        { encoding: 'utf8' },
      ),
      '',
    )
    assert.equal(await readFile(join(rootfs, 'etc/resolv.conf'), 'utf8'), '')

    await using index = await serveUv()
    const step = (sha256: string) =>
      execFileSync('sh', ['-c', `( ${uvStep({ ...uv, sha256: [sha256] })} ) 2>&1`, 'sh', rootfs], {
        encoding: 'utf8',
        env: { PATH, PIP_INDEX_URL: index.url },
      })
    inside('pip uninstall -qy uv 2>&1')
    assert.match(step('0'.repeat(64)), new RegExp(withoutUv))
    assert.equal(inside('command -v uv || echo none'), 'none')
    assert.doesNotMatch(step(index.sha256), new RegExp(withoutUv))
    assert.equal(inside('uv'), 'the wheel of the test')
    assert.deepEqual(await readdir(join(rootfs, 'tmp')), [])
  } finally {
    await rm(pool, { recursive: true, force: true })
  }
})
