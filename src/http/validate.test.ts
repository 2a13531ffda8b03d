import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import Type from 'typebox'
import { readPart } from './validate.ts'

const Command = Type.Object({
  command: Type.String(),
  timeout: Type.Optional(Type.Union([Type.Number({ minimum: 0 }), Type.Null()])),
  envs: Type.Optional(Type.Record(Type.String(), Type.String())),
})
const Nested = Type.Object({ size: Type.Object({ cpu: Type.Number() }), count: Type.Number({ default: 3 }) })

suite('readPart', () => {
  test('unknown fields are left out, of plain bodies and of nested ones, and the body itself stays as it was', () => {
    const plain = { command: 'true', timeout: null, other: 1 }
    assert.deepEqual(readPart(Command, 'body', plain), { command: 'true', timeout: null })
    assert.deepEqual(readPart(Command, 'body', { ...plain, envs: { A: 'b' } }), {
      command: 'true',
      timeout: null,
      envs: { A: 'b' },
    })
    const nested = { size: { cpu: 1, gpu: 2 } }
    assert.deepEqual(readPart(Nested, 'body', nested), { size: { cpu: 1 }, count: 3 })
    assert.deepEqual([plain.other, nested.size.gpu], [1, 2])
  })

  test('what has a field too much is taken without it, wherever it is, also where one of several shapes is meant', () => {
    const Choice = Type.Object({
      of: Type.Array(Type.Union([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Number() })])),
      free: Type.Optional(Type.Object({ c: Type.Number() }, { additionalProperties: true })),
    })
    const exact = { of: [{ a: 'x' }, { b: 1 }], free: { c: 1, d: 2 } }
    assert.deepEqual(readPart(Choice, 'body', exact), exact)
    assert.deepEqual(readPart(Choice, 'body', { of: [{ a: 'x', z: 1 }, { b: 1 }], z: 2 }), {
      of: [{ a: 'x' }, { b: 1 }],
    })
    assert.throws(() => readPart(Choice, 'body', { of: [{ c: 'x' }] }), { code: 'bad_request' })
  })

  test('numbers, truth and lists of a query are read from text', () => {
    const Query = Type.Object({
      limit: Type.Optional(Type.Integer()),
      isPublic: Type.Optional(Type.Boolean()),
      states: Type.Optional(Type.Array(Type.String())),
    })
    assert.deepEqual(readPart(Query, 'query', { limit: '5', isPublic: 'true', states: 'a,b', more: 'x' }), {
      limit: 5,
      isPublic: true,
      states: ['a', 'b'],
    })
    assert.deepEqual(readPart(Query, 'query', { states: ['a', 'b'] }), { states: ['a', 'b'] })
    assert.throws(() => readPart(Query, 'query', { limit: 'five' }), { code: 'bad_request' })
  })

  test('a field that is only inherited is not there', () => {
    const body = JSON.parse('{"__proto__": {"command": "true"}}')
    assert.throws(() => readPart(Command, 'body', body), /command/)
    assert.throws(() => readPart(Command, 'body', Object.create({ command: 'true' })), /command/)
  })

  test('400 for what has the wrong type, however plain', () => {
    for (const body of [[], 'true', 5, { command: 5 }, { command: {} }, { command: 'true', timeout: -1 }]) {
      assert.throws(() => readPart(Command, 'body', body), { code: 'bad_request' })
    }
  })

  test('says no to a body of more values than anybody has to look at, wherever in it they are', () => {
    const most = Array(99_999).fill('x')
    const message = 'body must not hold more than 100000 values'
    const List = Type.Object({ of: Type.Array(Type.String()) })
    assert.deepEqual(readPart(List, 'body', { of: most }), { of: most })
    for (const body of [{ of: [...most, 'x'] }, { a: { b: [most] } }, [most, most]])
      assert.throws(() => readPart(List, 'body', body), { code: 'bad_request', message })
  })
})
