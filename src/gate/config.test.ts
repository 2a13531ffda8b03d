import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { loadConfig } from './config.ts'

const needed = {
  ALCOVE_LISTEN: '[::1]:3001',
  ALCOVE_CONTROL_URL: 'http://127.0.0.1:3000',
  ALCOVE_PROXY_KEY: 'k',
  ALCOVE_PROXY_URL: 'http://p.example:3001',
}

suite('settings of the gate', () => {
  test('the gate reads its settings from its environment', () => {
    const { listen, controlUrl, proxyKey, publicUrl } = loadConfig(needed)
    assert.deepEqual(
      [listen, controlUrl.href, proxyKey, publicUrl.host],
      [{ host: '::1', port: 3001 }, 'http://127.0.0.1:3000/', 'k', 'p.example:3001'],
    )
  })

  test('if settings of the gate are wrong or missing, one error lists all of these settings', () => {
    assert.throws(
      () => loadConfig({ ALCOVE_LISTEN: 'here' }),
      /ALCOVE_LISTEN is not usable.*\nALCOVE_CONTROL_URL is missing.*\nALCOVE_PROXY_KEY is missing.*\nALCOVE_PROXY_URL is missing/,
    )
  })

  test('a gate with certificates needs a key only if the address of control is http and not https', () => {
    const { ALCOVE_PROXY_KEY: _key, ...withoutKey } = { ...needed, ALCOVE_CERTIFICATES_DIR: '/certificates' }
    const { certificatesDirectory, proxyKey } = loadConfig({
      ...withoutKey,
      ALCOVE_CONTROL_URL: 'https://10.0.0.7:4603',
    })
    assert.deepEqual([certificatesDirectory, proxyKey], ['/certificates', ''])
    assert.throws(() => loadConfig(withoutKey), /ALCOVE_PROXY_KEY is missing/)
  })

  test('a gate that accepts calls of other gates needs certificates, and a listen address with a port', () => {
    const listening = { ...needed, ALCOVE_GATE_PEERS_LISTEN: '0.0.0.0:4604', ALCOVE_GATE_ID: 'second' }
    const { gateId, peersListen } = loadConfig({ ...listening, ALCOVE_CERTIFICATES_DIR: '/certificates' })
    assert.deepEqual([gateId, peersListen], ['second', { host: '0.0.0.0', port: 4604 }])
    assert.equal(loadConfig({ ...needed, ALCOVE_GATE_PEERS_LISTEN: '' }).peersListen, undefined)
    assert.throws(() => loadConfig(listening), /ALCOVE_GATE_PEERS_LISTEN needs ALCOVE_CERTIFICATES_DIR/)
    assert.throws(() => loadConfig({ ...listening, ALCOVE_GATE_PEERS_LISTEN: 'x' }), /ALCOVE_GATE_PEERS_LISTEN is not/)
  })

  test('`executeTimeoutSeconds` of the gate is 10 by default, and 0 disables the timeout', () => {
    const secondsOf = (given?: string) =>
      loadConfig({ ...needed, ...(given === undefined ? {} : { ALCOVE_EXECUTE_TIMEOUT_SECONDS: given }) })
        .executeTimeoutSeconds
    assert.deepEqual([secondsOf(), secondsOf('300'), secondsOf('0')], [10, 300, 0])
    for (const wrong of ['-1', '1.5', '1000000', 'x']) assert.throws(() => secondsOf(wrong), /ALCOVE_EXECUTE_TIMEOUT/)
  })
})
