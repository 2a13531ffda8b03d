import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import Type from 'typebox'
import { mostValues } from './json-text.ts'
import { DateTime, optional, textMap } from './shapes.ts'
import { readPart } from './validate.ts'

const Command = Type.Object({
  command: Type.String(),
  timeout: Type.Optional(Type.Union([Type.Number({ minimum: 0 }), Type.Null()])),
  envs: Type.Optional(Type.Record(Type.String(), Type.String())),
})
const Nested = Type.Object({ size: Type.Object({ cpu: Type.Number() }), count: Type.Number({ default: 3 }) })

suite('reading one part of a request with `readPart`', () => {
  test('`readPart` removes unknown fields from flat and nested bodies, and does not change its argument', () => {
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

  test('`readPart` removes an unknown field at any depth, even inside a branch of a union', () => {
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

  test('`readPart` turns texts of a query into numbers, booleans and lists where the schema asks for them', () => {
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

  test('in a query, a `DateTime` may lack the hours or the time zone; in a body, it must be complete', () => {
    const Times = Type.Object({ from: DateTime })
    const read = (from: string) => (readPart(Times, 'query', { from }) as { from: string }).from
    assert.equal(read('2026-01-31'), '2026-01-31T00:00:00Z')
    assert.equal(read('2026-01-31T12:00:00.000001'), '2026-01-31T12:00:00.000001Z')
    assert.equal(read('2026-01-31 12:00:00'), '2026-01-31T12:00:00Z')
    assert.equal(read('2026-01-31T12:00:00.000000-0730'), '2026-01-31T12:00:00.000000-07:30')
    for (const whole of ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.5+01:00']) assert.equal(read(whole), whole)
    for (const wrong of ['2026-13-31', '2026-02-30', '2026-01-31T25:00:00', '2026-01-31T12:00:00+9900', '2026', ''])
      assert.throws(() => read(wrong), { code: 'bad_request' }, wrong)
    assert.throws(() => readPart(Times, 'body', { from: '2026-01-31T12:00:00' }), { code: 'bad_request' })
  })

  test('`readPart` refuses a list or map that is too long before it checks the values in it', () => {
    const Short = Type.Object({
      list: optional(
        Type.Array(Type.Object({ map: optional(Type.Record(Type.String(), Type.String(), { maxProperties: 2 })) }), {
          maxItems: 2,
        }),
      ),
    })
    const refusing = (body: unknown) => () => readPart(Short, 'body', body)
    const untouchable = new Proxy({}, { ownKeys: () => assert.fail('it was looked at') })
    const list = [untouchable, untouchable, untouchable]
    assert.throws(refusing({ list }), { message: /body\.list must not have more than 2 items/ })
    const map = { a: 1, b: '\0', c: 3 }
    assert.throws(refusing({ list: [{ map }] }), { message: /body\.list\.0\.map must not have more than 2 properties/ })
    const unknown = Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`x${index}`, 1]))
    assert.throws(refusing(unknown), { message: /body must not have more than 1000 properties/ })
    assert.deepEqual(readPart(Short, 'body', { list: [{ map: { a: 'b', c: 'd' } }, {}] }), {
      list: [{ map: { a: 'b', c: 'd' } }, {}],
    })
  })

  test('a property that the body inherits from its prototype does not count as a field', () => {
    const body = JSON.parse('{"__proto__": {"command": "true"}}')
    assert.throws(() => readPart(Command, 'body', body), /command/)
    assert.throws(() => readPart(Command, 'body', Object.create({ command: 'true' })), /command/)
  })

  test('`readPart` refuses a value of the wrong type in a body or a query', () => {
    for (const body of [[], 'true', 5, { command: 5 }, { command: {} }, { command: 'true', timeout: -1 }]) {
      assert.throws(() => readPart(Command, 'body', body), { code: 'bad_request' })
    }
  })

  test('the error about a value of a union names each allowed value once, with descriptions and examples', () => {
    const Shape = Type.Object({
      mode: optional(Type.Enum(['soft', 'hard', ''])),
      language: optional(Type.Enum(['python'])),
      timeout: optional(Type.Number({ minimum: 0 })),
      until: optional(DateTime),
      size: optional(Type.Object({ cpu: Type.Number() })),
      author: optional(Type.String({ pattern: '^[a-z]+$', description: 'small letters' })),
      map: Type.Optional(textMap({ names: 4, values: 5, most: 10 })),
      list: Type.Optional(Type.Array(Type.Enum(Array.from({ length: 40 }, (_, n) => `v${n}`)))),
    })
    const refusals: [object, string][] = [
      [{ mode: 'loud' }, 'body.mode must be one of soft, hard'],
      [{ mode: 5 }, 'body.mode must be one of soft, hard'],
      [{ language: 'cobol' }, 'body.language must be python'],
      [{ timeout: '5' }, 'body.timeout must be number'],
      [{ timeout: -1 }, 'body.timeout must be >= 0'],
      [{ until: 'soon' }, 'body.until must be a date and time such as 2026-01-31T12:00:00Z'],
      [{ size: { cpu: 'x' } }, 'body.size.cpu must be number'],
      [{ size: null, author: 'B' }, 'body.author must be small letters'],
      [{ author: 5, mode: 'x' }, 'body.mode must be one of soft, hard, body.author must be string'],
      [{ map: { abcde: 'x' } }, 'body.map has a name that is too long'],
      [{ map: { abcd: 'abcdef' } }, 'body.map.abcd must not have more than 5 characters'],
      [{ list: ['x'] }, `body.list.0 must be one of ${Array.from({ length: 30 }, (_, n) => `v${n}`).join(', ')}, …`],
    ]
    for (const [body, message] of refusals)
      assert.throws(() => readPart(Shape, 'body', body), { code: 'bad_request', message })
  })

  test('the error for a wrong value says that only null is allowed, or names the pattern of allowed values', () => {
    const message = 'body.gone must be null, body.word must match pattern "^a$"'
    const Shape = Type.Object({ gone: Type.Null(), word: Type.String({ pattern: '^a$' }) })
    assert.throws(() => readPart(Shape, 'body', { gone: 1, word: 'b' }), { code: 'bad_request', message })
  })

  test('`readPart` refuses a body that has too many values in total, at whatever depth', () => {
    const most = Array(mostValues - 1).fill('x')
    const message = `body must not hold more than ${mostValues} values`
    const List = Type.Object({ of: Type.Array(Type.String()) })
    assert.deepEqual(readPart(List, 'body', { of: most }), { of: most })
    for (const body of [{ of: [...most, 'x'] }, { a: { b: [most] } }, [most, most]])
      assert.throws(() => readPart(List, 'body', body), { code: 'bad_request', message })
  })
})
