import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressesOf, changedAddresses } from './addresses.ts'

const region = { proxyUrl: 'https://p.example', sshGatewayUrl: null, snapshotManagerUrl: null, otelEndpoint: null }

suite('the addresses of a region', () => {
  test('an emptied address field is sent as null, which removes the address; unchanged addresses are not sent', () => {
    const form = addressesOf(region)
    assert.deepEqual(changedAddresses(region, form), {})
    assert.deepEqual(changedAddresses(region, { ...form, proxyUrl: ' ', otelEndpoint: 'https://o.example ' }), {
      ...{ proxyUrl: null, otelEndpoint: 'https://o.example' },
    })
  })

  test('for a new region only the addresses that were typed are sent', () => {
    assert.deepEqual(changedAddresses(undefined, { ...addressesOf(undefined), proxyUrl: 'https://p' }), {
      proxyUrl: 'https://p',
    })
  })
})
