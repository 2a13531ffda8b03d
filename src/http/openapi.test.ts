import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import Type from 'typebox'
import { type DescribedRoute, openApiOf } from './openapi.ts'

const routes: DescribedRoute[] = [
  {
    ...{ method: 'POST', path: '/box/:boxId/stop', needs: 'write:boxes', summary: 'Stops a box.' },
    params: Type.Object({ boxId: Type.String({ maxLength: 9 }) }),
    query: Type.Object({ force: Type.Boolean(), reason: Type.Optional(Type.String()) }),
    body: Type.Object({ seconds: Type.Integer() }),
    bodyOptional: true,
    replies: { 200: Type.Object({ state: Type.String() }), 204: null },
  },
  { method: 'GET', path: '/box/:boxId/log', needs: 'public', summary: 'The log.', replies: { 200: Type.String() } },
  {
    ...{ method: 'PUT', path: '/box/:boxId/log', needs: 'user', summary: 'Writes.', streamsBody: true },
    replies: { 200: Type.Any() },
  },
  {
    ...{ method: 'GET', path: '/box/:boxId/shell', needs: 'user', summary: 'A shell.', socket: () => {} },
    replies: { 101: null },
  },
]

const document = openApiOf({ title: 'Boxes', version: '1.2.3', description: 'Boxes.', serverUrl: '/api' }, routes)
const operation = (path: string, method: string) =>
  JSON.parse(JSON.stringify(document.paths[path]?.[method])) as Record<string, never>

suite('the OpenAPI document of a list of routes', () => {
  test('each call in the OpenAPI document has the parameters, the body and the answers of its route', () => {
    const { parameters, requestBody, responses, operationId } = operation('/box/{boxId}/stop', 'post')
    assert.equal(operationId, 'postBoxBoxIdStop')
    assert.deepEqual(parameters, [
      { name: 'boxId', in: 'path', required: true, schema: { type: 'string', maxLength: 9 } },
      { name: 'force', in: 'query', required: true, schema: { type: 'boolean' } },
      { name: 'reason', in: 'query', required: false, schema: { type: 'string' } },
    ])
    const seconds = { type: 'object', required: ['seconds'], properties: { seconds: { type: 'integer' } } }
    assert.deepEqual(requestBody, { required: false, content: { 'application/json': { schema: seconds } } })
    const state = { type: 'object', required: ['state'], properties: { state: { type: 'string' } } }
    assert.deepEqual(responses, {
      200: { description: 'The call succeeded.', content: { 'application/json': { schema: state } } },
      204: { description: 'The call succeeded.' },
      default: { $ref: '#/components/responses/Problem' },
    })
  })

  test('in the OpenAPI document, public routes need no credential, and all methods of one path are together', () => {
    assert.deepEqual(Object.keys(document.paths['/box/{boxId}/log'] ?? {}), ['get', 'put'])
    assert.deepEqual(operation('/box/{boxId}/log', 'get')['security'], [])
    assert.equal(operation('/box/{boxId}/log', 'put')['security'], undefined)
    assert.deepEqual(document['security'], [{ bearer: [] }])
  })

  test('the OpenAPI document distinguishes answers that are text, bytes or WebSockets', () => {
    const answerOf = (path: string, method: string, status: number) =>
      operation(path, method)['responses']?.[status] ?? assert.fail('no such answer')
    assert.deepEqual(Object.keys(answerOf('/box/{boxId}/log', 'get', 200)['content']), ['text/plain'])
    assert.deepEqual(Object.keys(answerOf('/box/{boxId}/log', 'put', 200)['content']), ['application/octet-stream'])
    assert.deepEqual(answerOf('/box/{boxId}/shell', 'get', 101), {
      description: 'The connection becomes a WebSocket.',
    })
    assert.deepEqual(operation('/box/{boxId}/log', 'put')['requestBody'], { content: { '*/*': { schema: {} } } })
  })
})
