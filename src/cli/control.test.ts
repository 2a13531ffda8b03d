import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'
import { newApiKey, newEncryptionKey } from '#src/up/data-directory.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { isRoot } from '#test/needs-root.ts'
import { freePorts } from '#test/sandboxes/free-ports.ts'
import { controlEnvironment } from './control.ts'

suite('alcove control', () => {
  const noPages = () => undefined

  test('`alcove control` uses the database in DATABASE_URL, and has defaults for what `up` would set', () => {
    assert.deepEqual(controlEnvironment({ DATABASE_URL: 'postgres://db/alcove', ALCOVE_MOST_WARM: '2' }, noPages), {
      ALCOVE_LISTEN: '127.0.0.1:4600',
      ALCOVE_MOST_WARM: '2',
      ALCOVE_OVERCOMMIT: '64,8,8',
      DATABASE_URL: 'postgres://db/alcove',
      ALCOVE_DATABASE_URL: 'postgres://db/alcove',
    })
  })

  test('`alcove control` serves the dashboard of ALCOVE_DASHBOARD_DIR, or a built one from the cache', () => {
    const pages = (env: NodeJS.ProcessEnv) =>
      controlEnvironment(env, (cache) => `${cache}/dashboard/abc`)['ALCOVE_DASHBOARD_DIR']
    assert.equal(pages({ ALCOVE_CACHE_DIR: '/cache' }), '/cache/dashboard/abc')
    assert.equal(pages({ ALCOVE_DASHBOARD_DIR: '/pages' }), '/pages')
    assert.equal(controlEnvironment({}, noPages)['ALCOVE_DASHBOARD_DIR'], undefined)
  })

  test('`alcove control` runs with an empty database as an unprivileged user; after SIGTERM it exits with 0', async () => {
    await using opened = await openTestDatabase('empty')
    const address = `127.0.0.1:${await freePorts(1)}`
    const key = newApiKey()
    const child = spawn(resolve(import.meta.dirname, '../../alcove'), ['control'], {
      ...(isRoot ? { uid: 65534, gid: 65534 } : {}),
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: opened.url,
        ALCOVE_LISTEN: address,
        ALCOVE_ENCRYPTION_KEY: newEncryptionKey(),
        ALCOVE_PUBLIC_URL: `http://${address}`,
        ALCOVE_PROXY_URL: 'http://127.0.0.1:1',
        ALCOVE_FIRST_KEY: key,
      },
    })
    const ended = once(child, 'exit')
    let said = ''
    const serves = new Promise<void>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        said += chunk.toString()
        if (said.includes('control serves')) resolve()
      }
      child.stdout.on('data', read)
      child.stderr.on('data', read)
      ended.then(() => reject(new Error(said)))
    })
    try {
      await serves
      const headers = { authorization: `Bearer ${key}` }
      const runners = await fetch(`http://${address}/api/runners`, { headers })
      assert.deepEqual([runners.status, await runners.json()], [200, []])
      assert.doesNotMatch(said, /warning/i)
      child.kill('SIGTERM')
      assert.deepEqual(await ended, [0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })
})
