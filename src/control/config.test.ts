import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { hashKey } from './auth/secret.ts'
import { readConfig } from './config.ts'

const good = {
  ALCOVE_DATABASE_URL: 'postgresql://alcove@localhost/alcove?host=/run/postgres',
  ALCOVE_LISTEN: '127.0.0.1:3000',
  ALCOVE_PUBLIC_URL: 'http://localhost:3000/',
  ALCOVE_PROXY_URL: 'http://localhost:3001',
  ALCOVE_PROXY_KEY: 'p'.repeat(32),
  ALCOVE_RUNNER_KEY: 'r'.repeat(32),
}

suite('the settings of control', () => {
  test('are read into what the program needs; service keys only as hashes', () => {
    const config = readConfig(good)
    assert.deepEqual(
      [config.host, config.port, config.firstKey, config.logLevel],
      ['127.0.0.1', 3000, undefined, 'info'],
    )
    assert.equal(config.settings.publicUrl, 'http://localhost:3000')
    assert.equal(config.settings.proxyKeyHash, hashKey(good.ALCOVE_PROXY_KEY))
    assert.ok(!JSON.stringify(config).includes(good.ALCOVE_RUNNER_KEY))
    assert.equal(readConfig({ ...good, ALCOVE_LISTEN: '[::1]:80' }).host, '::1')
  })

  test('all complaints come at once, and none shows a secret', () => {
    assert.throws(
      () =>
        readConfig({
          ALCOVE_LISTEN: 'nowhere',
          ALCOVE_PUBLIC_URL: 'localhost',
          ALCOVE_PROXY_KEY: 'short',
          ALCOVE_FIRST_KEY: 'dtn_secret',
          ALCOVE_LOG_LEVEL: 'loud',
        }),
      ({ message }: Error) => {
        for (const name of ['DATABASE_URL', 'PROXY_URL', 'RUNNER_KEY'])
          assert.match(message, new RegExp(`${name} is missing`))
        for (const name of ['LISTEN', 'PUBLIC_URL', 'PROXY_KEY', 'FIRST_KEY', 'LOG_LEVEL']) {
          assert.match(message, new RegExp(`ALCOVE_${name} is`))
        }
        assert.doesNotMatch(message, /short$|dtn_secret/)
        return true
      },
    )
  })
})
