// A symbolic link in a sandbox must never lead a toolbox call to a file of the host. The tests try each kind of link with each call
// that has a path. A further test keeps replacing the link during the calls.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox } from './box.ts'
import { type Platform, platform } from './harness.ts'

const secret = 'of the host'

suite('links in the file system of a sandbox', () => {
  let alcove: Platform
  /**
   * A directory of the host to which everybody may write. In a sandbox, its path does not exist, or is a directory of the sandbox.
   */
  let host: string
  before(async () => {
    alcove = await platform()
    host = mkdtempSync(join(tmpdir(), 'alcove-canary-'))
    mkdirSync(join(host, 'tree'), { mode: 0o777 })
    for (const path of ['canary', 'tree/leaf']) writeFileSync(join(host, path), `${secret}\n`, { mode: 0o666 })
  })
  after(async () => {
    if (host) rmSync(host, { recursive: true, force: true })
    await alcove?.[Symbol.asyncDispose]()
  })

  const onHost = () =>
    readdirSync(host, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((path) => {
        const { mode, uid, mtimeMs } = statSync(join(host, path))
        const text = path.endsWith('tree') ? '' : readFileSync(join(host, path), 'utf8')
        return [path, mode, uid, mtimeMs, text]
      })

  const call = (box: Box, method: string, path: string, body?: string | FormData, type = 'application/octet-stream') =>
    fetch(`${box.record['toolboxProxyUrl']}/${box.id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${alcove.key}`,
        ...(typeof body === 'string' ? { 'content-type': type } : {}),
      },
      ...(body === undefined ? {} : { body }),
    })
  const json = (box: Box, method: string, path: string, body: object) =>
    call(box, method, path, JSON.stringify(body), 'application/json')

  const formOf = (path: string) => {
    const form = new FormData()
    form.append('files[0].path', path)
    form.append('files[0].file', new Blob(['written']), path)
    return form
  }

  /** All calls that take a path, for the file `name` in `directory`. Calls that delete or move something come last. */
  const callsOn = (box: Box, directory: string, name: string): [string, () => Promise<Response>][] => {
    const file = `${directory}/${name}`
    const [at, below] = [`path=${encodeURIComponent(file)}`, `path=${encodeURIComponent(directory)}`]
    const fresh = (what: string) => `${directory}/${what}`
    return [
      ['list', () => call(box, 'GET', `/files?${below}&depth=3`)],
      ['info', () => call(box, 'GET', `/files/info?${at}`)],
      ['download', () => call(box, 'GET', `/files/download?${at}`)],
      ['bulk-download', () => json(box, 'POST', '/files/bulk-download', { paths: [file] })],
      ['find', () => call(box, 'GET', `/files/find?${below}&pattern=host`)],
      ['search', () => call(box, 'GET', `/files/search?${below}&pattern=*`)],
      ['execute', () => json(box, 'POST', '/process/execute', { command: 'cat * */*', cwd: directory })],
      ['git status', () => call(box, 'GET', `/git/status?${below}`)],
      ['git init', () => json(box, 'POST', '/git/init', { path: fresh('repository') })],
      ['terminal', () => json(box, 'POST', '/process/pty', { id: `p${Math.random()}`, cwd: directory })],
      ['context', () => json(box, 'POST', '/process/interpreter/context', { cwd: directory })],
      ['replace', () => json(box, 'POST', '/files/replace', { files: [file], pattern: secret, newValue: 'changed' })],
      ['permissions', () => call(box, 'POST', `/files/permissions?${at}&mode=777`)],
      ['upload over', () => call(box, 'POST', `/files/upload-v2?${at}`, 'written')],
      ['upload', () => call(box, 'POST', `/files/upload-v2?path=${encodeURIComponent(fresh('new'))}`, 'written')],
      ['bulk-upload', () => call(box, 'POST', '/files/bulk-upload', formOf(fresh('bulk')))],
      ['folder', () => call(box, 'POST', `/files/folder?path=${encodeURIComponent(fresh('folder'))}&mode=755`)],
      [
        'move in',
        () => call(box, 'POST', `/files/move?source=plain&destination=${encodeURIComponent(fresh('moved'))}`),
      ],
      ['move out', () => call(box, 'POST', `/files/move?source=${encodeURIComponent(file)}&destination=taken`)],
      ['delete', () => call(box, 'DELETE', `/files?${at}`)],
      ['delete all', () => call(box, 'DELETE', `/files?${below}&recursive=true`)],
    ]
  }

  const check = async (what: string, reply: Response): Promise<number> => {
    const text = await reply.text()
    assert.ok(reply.status < 500, `${what}: ${reply.status} ${text}`)
    assert.ok(!text.includes(secret), `${what} has read on the host: ${text}`)
    return reply.status
  }

  /**
   * Shell commands that make each kind of symbolic link, with the name `way`, to the host's directory `target`. No toolbox call may
   * reach the file `canary` in this directory.
   */
  const ways: Record<string, (target: string) => string> = {
    'an absolute one': (target) => `ln -s ${target} way`,
    'a relative one': (target) => `ln -s ../../../../../../../../..${target} way`,
    'one in the middle': (target) =>
      `mkdir -p a && ln -s ${target} a/b && ln -s a/b/../${target.split('/').at(-1)} way`,
    'a chain of them': (target) => `ln -s ${target} one; ln -s one two; ln -s two three; ln -s three way`,
    'one through the root of the first process': (target) => `ln -s /proc/1/root${target} way`,
    'one through a root of its own': (target) => `ln -s /proc/self/root${target} way`,
    'one through the directory of the first process': (target) => `ln -s /proc/1/cwd${target} way`,
    'one through a descriptor': (target) => `ln -s /proc/1/fd/3/../../../../..${target} way`,
    'one of links only': (target) => `ln -s / root && ln -s root/proc/thread-self/root${target} way`,
  }

  const where = (isThere: boolean) => (isThere ? 'target in the sandbox and on the host' : 'target only on the host')
  for (const [what, makeWay] of Object.entries(ways))
    for (const isThere of [false, true])
      test(`no toolbox call reaches a file of the host through a symbolic link: ${what}, ${where(isThere)}`, async () => {
        await using box = await createBox(alcove)
        if (isThere)
          await box.run(`mkdir -p ${host}/tree && echo inside > ${host}/canary && echo inside > ${host}/tree/leaf`)
        const before = onHost()
        await box.run('echo plain > plain')
        await box.try(makeWay(host))
        const statuses: Record<string, number> = {}
        for (const [name, perform] of callsOn(box, 'way', 'canary')) statuses[name] = await check(name, await perform())
        // Now the link points to the file `canary` itself, and no longer to the directory of `canary`.
        await box.try(`rm -rf way; ln -s ${host}/canary way`)
        for (const [name, perform] of callsOn(box, '.', 'way').slice(0, -1)) await check(name, await perform())
        assert.deepEqual(onHost(), before)
        // If the link's target exists in the sandbox too, the calls must succeed with the sandbox's files. So a toolbox that
        // refuses all links fails this test.
        if (isThere && what === 'an absolute one')
          assert.deepEqual(
            [statuses['list'], statuses['download'], statuses['upload'], statuses['move out']],
            [200, 200, 200, 200],
          )
        if (!isThere && what === 'an absolute one') assert.equal(statuses['download'], 404)
      })

  test('a symbolic link that is replaced all the time never leads a toolbox call to a file of the host', async () => {
    await using box = await createBox(alcove)
    const before = onHost()
    await box.run(
      `mkdir -p race ${host} && echo inside > ${host}/canary && nohup sh -c 'cd race; while :; do ` +
        `ln -sfn ${host} d; ln -sfn /proc/1/root${host} d; ln -sfn /proc/self/root/proc/1/cwd${host} d; ` +
        `rm -f d; mkdir d; echo own > d/canary; rm -rf d; done' >/dev/null 2>&1 &`,
    )
    const statuses = new Set<number>()
    for (let round = 0; round < 25; round++) {
      const calls = callsOn(box, 'race/d', 'canary').filter(([name]) => name !== 'terminal' && name !== 'context')
      for (const status of await Promise.all(calls.map(async ([name, perform]) => check(name, await perform()))))
        statuses.add(status)
      await call(box, 'POST', '/files/upload-v2?path=plain', 'plain')
    }
    assert.ok(statuses.has(200) && statuses.has(404), [...statuses].join())
    assert.deepEqual(onHost(), before)
  })
})
