// Tests the shell script `./alcove` in a temporary checkout. A fake npm installs a fake Node, which prints its arguments and the
// first line of the lock file.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { arch, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { needsRoot } from './needs-root.ts'

const needsDebian = needsRoot || (existsSync('/etc/debian_version') ? false : 'needs Debian or Ubuntu')

const launcher = resolve(import.meta.dirname, '../alcove')

/** A fake npm, which empties `node_modules` before it installs packages, as `npm ci` does. */
const npm = `#!/bin/sh
[ "$1" = --version ] && [ -e "$TOP/missing" ] && exit 127
[ "$1" = --version ] && exit
echo "$*" >>"$TOP/installs"
rm -rf node_modules
[ -e "$TOP/unreachable" ] && exit 1
mkdir -p node_modules/node-linux-${arch()}/bin
node=node_modules/node-linux-${arch()}/bin/node
while [ -e "$TOP/slow" ]; do sleep 0.05; done
{ echo '#!/bin/sh'; [ -e "$TOP/broken" ] && echo 'exit 127'; echo "shift; echo $(head -n 1 package-lock.json) \\"\\$@\\""; } >$node
chmod +x $node
`

class Checkout {
  readonly #top = mkdtempSync(join(tmpdir(), 'alcove-launcher-'))
  readonly home = join(this.#top, 'a home')

  constructor() {
    mkdirSync(this.home)
    mkdirSync(join(this.#top, 'bin'))
    copyFileSync(launcher, join(this.home, 'alcove'))
    writeFileSync(join(this.home, 'package.json'), '{}')
    // A fake apt-get that always fails, so that the launcher installs nothing on the machine that runs the tests.
    const programs = { npm, 'apt-get': '#!/bin/sh\nexit 1\n' }
    for (const [name, text] of Object.entries(programs))
      writeFileSync(join(this.#top, 'bin', name), text, { mode: 0o755 })
  }

  lock(text: string) {
    writeFileSync(join(this.home, 'package-lock.json'), text)
  }

  npmIs(what: 'unreachable' | 'broken' | 'slow' | 'missing', is = true) {
    if (is) writeFileSync(join(this.#top, what), '')
    else rmSync(join(this.#top, what))
  }

  start(...args: string[]) {
    const env = { TOP: this.#top, PATH: `${join(this.#top, 'bin')}:${process.env['PATH']}` }
    return spawn(join(this.home, 'alcove'), args, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  }

  /** Runs `./alcove` until it ends. Returns the output of the fake Node, which is empty if the fake Node was not started. */
  async run(...args: string[]) {
    const child = this.start(...args)
    let said = ''
    child.stdout.on('data', (chunk) => (said += chunk))
    await once(child, 'close')
    return said.trim()
  }

  /**
   * Prepares packages of Node and npm that apt can download. They contain only shell scripts. Puts their checksums into the lock
   * file and returns them.
   */
  offerPackages(): string[] {
    const interpreter = '#!/bin/sh\n[ "$1" = --version ] && exit\nscript=$1; shift; exec sh "$script" "$@"\n'
    const files = { [`node-linux-${arch()}`]: ['bin/node', interpreter], npm: ['bin/npm-cli.js', npm] } as const
    const helper = '#!/bin/sh\necho "$2 $4" >>"$TOP/downloads"\ncp "$TOP/$(basename "$2")" "$3"\n'
    for (const [name, text] of Object.entries({ 'apt-helper': helper, 'apt-get': '#!/bin/sh\n' }))
      writeFileSync(join(this.#top, 'bin', name), text, { mode: 0o755 })
    const digests = Object.entries(files).map(([name, [path, text]]) => {
      mkdirSync(join(this.#top, name, 'package/bin'), { recursive: true })
      writeFileSync(join(this.#top, name, 'package', path), text, { mode: 0o755 })
      const packed = join(this.#top, `${name}-1.2.3.tgz`)
      execFileSync('tar', ['-czf', packed, '-C', join(this.#top, name), 'package'])
      return [name, createHash('sha512').update(readFileSync(packed)).digest()] as const
    })
    const packages = digests.map(([name, digest]) => {
      const integrity = `sha512-${digest.toString('base64')}`
      return [`node_modules/${name}`, { version: '1.2.3', integrity, license: 'MIT' }]
    })
    this.lock(JSON.stringify({ packages: Object.fromEntries(packages) }, undefined, 2))
    return digests.map(([, digest]) => digest.toString('hex'))
  }

  /** Returns one line for each file that apt has downloaded: its URL, and the checksum that `./alcove` expected. */
  get downloads() {
    return readFileSync(join(this.#top, 'downloads'), 'utf8').trimEnd().split('\n')
  }

  /** Returns one line for each call of npm, with the arguments of the call. */
  get calls() {
    const file = join(this.#top, 'installs')
    return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
  }

  get installs() {
    return this.calls.length
  }

  /** Resolves when npm has been started `installs` times in total. */
  async begun(installs: number) {
    while (this.installs < installs) await pause(20)
  }

  [Symbol.dispose]() {
    rmSync(this.#top, { recursive: true, force: true })
  }
}

/**
 * Makes a checkout as after a `git pull`: the lock file has the content `new`, but the installed packages are of the lock file
 * `old`.
 */
const pulled = async () => {
  const checkout = new Checkout()
  checkout.lock('old')
  assert.equal(await checkout.run('status'), 'old status')
  checkout.lock('new')
  return checkout
}

suite('the launcher', { timeout: 60_000 }, () => {
  test('`alcove up`, `test` and `runner --join` install changed npm packages; other commands install none', async () => {
    using checkout = await pulled()
    for (const asking of [
      'down',
      'status',
      'key',
      'doctor',
      'purge --yes',
      'runner list',
      'user add test',
      'run -- npm test',
      'exec box up now',
    ]) {
      assert.equal(await checkout.run(...asking.split(' ')), `old ${asking}`)
    }
    assert.equal(checkout.installs, 1)
    assert.equal(await checkout.run('up', '--port', '1'), 'new up --port 1')
    assert.equal(await checkout.run('down'), 'new down')
    for (const [lock, starting] of [
      ['a', 'test'],
      ['b', 'runner --data x --join y'],
      ['c', 'runner --join=y'],
    ] as const) {
      checkout.lock(lock)
      assert.equal(await checkout.run(...starting.split(' ')), `${lock} ${starting}`)
    }
    assert.equal(checkout.installs, 5)
  })

  test('only `alcove test` installs development dependencies, and `alcove up` does not remove them later', async () => {
    using checkout = new Checkout()
    checkout.lock('first')
    const leftOut = () => checkout.calls.map((call) => call.includes('--omit=dev'))
    await checkout.run('up')
    assert.equal(await checkout.run('test'), 'first test')
    assert.deepEqual(leftOut(), [true, false])
    checkout.lock('second')
    assert.equal(await checkout.run('up'), 'second up')
    await checkout.run('test')
    assert.deepEqual(leftOut(), [true, false, false])
  })

  for (const what of ['unreachable', 'broken'] as const) {
    test(`if an install of new packages fails (${what}), the old packages stay and work with the old lock file`, async () => {
      using checkout = await pulled()
      checkout.npmIs(what)
      assert.equal(await checkout.run('up'), '')
      assert.equal(await checkout.run('down'), 'old down')
      checkout.lock('old')
      assert.equal(await checkout.run('up'), 'old up')
      checkout.npmIs(what, false)
      checkout.lock('new')
      assert.equal(await checkout.run('up'), 'new up')
    })
  }

  test('if `./alcove` is killed during an install, the old packages stay, and the next install waits for npm', async () => {
    using checkout = await pulled()
    checkout.npmIs('slow')
    const killed = checkout.start('up')
    await checkout.begun(2)
    killed.kill('SIGKILL')
    await once(killed, 'close')
    assert.equal(await checkout.run('down'), 'old down')
    const next = checkout.run('up')
    await pause(200)
    assert.equal(checkout.installs, 2)
    checkout.npmIs('slow', false)
    assert.equal(await next, 'new up')
    assert.deepEqual(readdirSync(join(checkout.home, '.alcove')), ['install.lock'])
  })

  test('on a machine without npm, `./alcove` downloads Node and npm with apt, and checks SHA-512 of both', {
    skip: needsDebian,
  }, async () => {
    using checkout = new Checkout()
    checkout.npmIs('missing')
    const sums = checkout.offerPackages()
    assert.match(await checkout.run('up'), / up$/)
    assert.deepEqual(checkout.downloads, [
      `https://registry.npmjs.org/node-linux-${arch()}/-/node-linux-${arch()}-1.2.3.tgz SHA512:${sums[0]}`,
      `https://registry.npmjs.org/npm/-/npm-1.2.3.tgz SHA512:${sums[1]}`,
    ])
    assert.deepEqual(readdirSync(join(checkout.home, '.alcove')), ['install.lock'])
  })

  test('if an npm install is killed while it replaces node_modules, the next command restores the old one', async () => {
    using checkout = await pulled()
    renameSync(join(checkout.home, 'node_modules'), join(checkout.home, '.alcove', 'old-packages'))
    assert.equal(await checkout.run('down'), 'old down')
    assert.equal(checkout.installs, 1)
  })

  test('if two `alcove` commands start at the same time, only one of them installs the npm packages', async () => {
    using checkout = await pulled()
    checkout.npmIs('slow')
    const both = [checkout.run('up', '1'), checkout.run('up', '2')]
    await checkout.begun(2)
    await pause(200)
    checkout.npmIs('slow', false)
    assert.deepEqual(await Promise.all(both), ['new up 1', 'new up 2'])
    assert.equal(checkout.installs, 2)
  })
})
