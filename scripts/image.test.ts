// Tests the image of Alcove without the files of Debian, because adding these takes minutes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { newApiKey, newEncryptionKey } from '#src/up/data-directory.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { needsRoot } from '#test/needs-root.ts'
import { until } from '#test/sandboxes/box.ts'
import { freePorts } from '#test/sandboxes/free-ports.ts'
import { debianPackages, stageCode } from './image.ts'

suite('the image of Alcove', { skip: needsRoot }, () => {
  let code: string
  before(async () => {
    code = mkdtempSync(join(tmpdir(), 'alcove-image-test-'))
    chmodSync(code, 0o755)
    await stageCode(code)
  })
  after(() => rmSync(code, { recursive: true, force: true }))

  test('the container image has Alcove’s programs and the dashboard, and no tools that only build or test', () => {
    const needed = ['agent/build/alcove-agent', 'native/build/launch', 'native/build/confine', 'client/dist/alcove.js']
    for (const file of [...needed, 'dashboard/pages/index.html', 'bin/runner.ts', 'LICENSE']) {
      assert.ok(existsSync(join(code, file)), file)
    }
    const unwanted = ['typescript', '@biomejs', 'vite', 'react', 'playwright-core'].map(
      (name) => `node_modules/${name}`,
    )
    assert.deepEqual(globSync([...unwanted, 'src/**/*.test.ts', '*/Makefile', 'test'], { cwd: code }), [])
    assert.ok(!debianPackages.includes('gcc') && debianPackages.includes('crun'))
  })

  test('control in the container image serves API and dashboard without privileges or writable directories', async () => {
    await using opened = await openTestDatabase('empty')
    const address = `127.0.0.1:${await freePorts(1)}`
    const readOnly = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'
    const user = 'setpriv --reuid 61002 --regid 61002 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all'
    const command = `${readOnly} && exec ${user} "$0/alcove" control`
    const child = spawn('unshare', ['--mount', 'sh', '-c', command, code], {
      cwd: '/',
      stdio: 'ignore',
      env: {
        PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
        ALCOVE_CACHE_DIR: '/nonexistent/alcove',
        DATABASE_URL: opened.url,
        ALCOVE_LISTEN: address,
        ALCOVE_ENCRYPTION_KEY: newEncryptionKey(),
        ALCOVE_PUBLIC_URL: `http://${address}`,
        ALCOVE_PROXY_URL: 'http://127.0.0.1:1',
        ALCOVE_FIRST_KEY: newApiKey(),
      },
    })
    const ended = once(child, 'exit')
    const statusOf = (path: string) =>
      fetch(`http://${address}${path}`).then(
        ({ status }) => status,
        () => 0,
      )
    try {
      await until('control serves', async () => (await statusOf('/api/health')) === 200)
      assert.equal(await statusOf('/dashboard/'), 200)
    } finally {
      child.kill('SIGTERM')
    }
    assert.deepEqual(await ended, [0, null])
  })
})
