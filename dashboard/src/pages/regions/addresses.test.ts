import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressesOf, changedAddresses } from './addresses.ts'

const region = { proxyUrl: 'https://p.example', sshGatewayUrl: null, snapshotManagerUrl: null, otelEndpoint: null }

suite('the addresses of a region', () => {
  test('the form that edits a region sends null for an emptied address field, and sends no unchanged address', () => {
    const form = addressesOf(region)
    assert.deepEqual(changedAddresses(region, form), {})
    assert.deepEqual(changedAddresses(region, { ...form, proxyUrl: ' ', otelEndpoint: 'https://o.example ' }), {
      ...{ proxyUrl: null, otelEndpoint: 'https://o.example' },
    })
  })

  test('the form of a new region sends only the addresses that were typed', () => {
    assert.deepEqual(changedAddresses(undefined, { ...addressesOf(undefined), proxyUrl: 'https://p' }), {
      proxyUrl: 'https://p',
    })
  })
})
