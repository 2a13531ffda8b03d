import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isOurs, withServer } from './document.ts'

suite('the OpenAPI descriptions for the viewer of the API page', () => {
  test('`withServer` puts the server’s address into an OpenAPI description and removes its security schemes', () => {
    const given = { openapi: '3.1.0', security: [{}], servers: [], components: { schemas: {}, securitySchemes: {} } }
    assert.deepEqual(withServer(given, 'http://x/api'), {
      ...{ openapi: '3.1.0', components: { schemas: {} }, servers: [{ url: 'http://x/api' }] },
    })
  })

  test('the API page adds its credential only to calls to this installation (`isOurs`)', () => {
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
