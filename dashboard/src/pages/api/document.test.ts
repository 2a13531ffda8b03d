import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isOurs, withServer } from './document.ts'

suite('the documents of the API reference', () => {
  test('`withServer` names the address, and asks for no credential', () => {
    const given = { openapi: '3.1.0', security: [{}], servers: [], components: { schemas: {}, securitySchemes: {} } }
    assert.deepEqual(withServer(given, 'http://x/api'), {
      ...{ openapi: '3.1.0', components: { schemas: {} }, servers: [{ url: 'http://x/api' }] },
    })
  })

  test('only calls to our services count as ours: the others get no credential', () => {
    const services = ['http://a:1/api', 'http://a:2/toolbox/']
    for (const url of ['http://a:1/api/x', 'http://a:2/toolbox/id/x']) assert.equal(isOurs(url, services), true, url)
    for (const url of [
      'http://a:1/other',
      'http://a:1/apiary',
      'http://a:1.example/api/x',
      '//b/api/x',
      'http://a:1/api/../x',
    ])
      assert.equal(isOurs(url, services), false, url)
  })
})
