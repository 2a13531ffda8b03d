import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { controlEnvironment } from './control.ts'

suite('alcove control', () => {
  const noPages = () => undefined

  test('DATABASE_URL is the database, and what `up` would set has a default', () => {
    assert.deepEqual(controlEnvironment({ DATABASE_URL: 'postgres://db/alcove', ALCOVE_MOST_WARM: '2' }, noPages), {
      ALCOVE_LISTEN: '127.0.0.1:4600',
      ALCOVE_MOST_WARM: '2',
      ALCOVE_OVERCOMMIT: '64,8,8',
      DATABASE_URL: 'postgres://db/alcove',
      ALCOVE_DATABASE_URL: 'postgres://db/alcove',
    })
  })

  test('pages of the dashboard are shown if they are built, from the cache or from ALCOVE_DASHBOARD_DIR', () => {
    const pages = (env: NodeJS.ProcessEnv) =>
      controlEnvironment(env, (cache) => `${cache}/dashboard/abc`)['ALCOVE_DASHBOARD_DIR']
    assert.equal(pages({ ALCOVE_CACHE_DIR: '/cache' }), '/cache/dashboard/abc')
    assert.equal(pages({ ALCOVE_DASHBOARD_DIR: '/pages' }), '/pages')
    assert.equal(controlEnvironment({}, noPages)['ALCOVE_DASHBOARD_DIR'], undefined)
  })
})
