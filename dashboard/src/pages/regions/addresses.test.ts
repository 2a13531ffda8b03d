import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressesOf, changedAddresses } from './addresses.ts'

const region = { proxyUrl: 'https://p.example', sshGatewayUrl: null, snapshotManagerUrl: null, otelEndpoint: null }

suite('the addresses of a region', () => {
  test('an address that was emptied is sent as null, which takes it away; others are not sent', () => {
    const form = addressesOf(region)
    assert.deepEqual(changedAddresses(region, form), {})
    assert.deepEqual(changedAddresses(region, { ...form, proxyUrl: ' ', otelEndpoint: 'https://o.example ' }), {
      ...{ proxyUrl: null, otelEndpoint: 'https://o.example' },
    })
  })

  test('a new region is sent only the addresses that were typed', () => {
    assert.deepEqual(changedAddresses(undefined, { ...addressesOf(undefined), proxyUrl: 'https://p' }), {
      proxyUrl: 'https://p',
    })
  })
})
