import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { loadConfig } from './config.ts'

suite('settings of the proxy', () => {
  test('are read', () => {
    const { listen, controlUrl, proxyKey, publicUrl } = loadConfig({
      ALCOVE_LISTEN: '[::1]:3001',
      ALCOVE_CONTROL_URL: 'http://127.0.0.1:3000',
      ALCOVE_PROXY_KEY: 'k',
      ALCOVE_PROXY_URL: 'http://p.example:3001',
    })
    assert.deepEqual(
      [listen, controlUrl.href, proxyKey, publicUrl.host],
      [{ host: '::1', port: 3001 }, 'http://127.0.0.1:3000/', 'k', 'p.example:3001'],
    )
  })

  test('all complaints come at once', () => {
    assert.throws(
      () => loadConfig({ ALCOVE_LISTEN: 'here' }),
      /ALCOVE_LISTEN is not usable.*\nALCOVE_CONTROL_URL is missing.*\nALCOVE_PROXY_KEY is missing.*\nALCOVE_PROXY_URL is missing/,
    )
  })
})
