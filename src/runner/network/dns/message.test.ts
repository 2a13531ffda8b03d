import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { codes, mostQuestionBytes, readQuestion, types, writeAnswer, writeCode } from './message.ts'

const header = (over: { flags?: number; questions?: number; answers?: number; additional?: number } = {}) => {
  const { flags = 0x0100, questions = 1, answers = 0, additional = 0 } = over
  const bytes = Buffer.alloc(12)
  for (const [at, value] of [0xabcd, flags, questions, answers, 0, additional].entries()) {
    bytes.writeUInt16BE(value, at * 2)
  }
  return bytes
}

const wireName = (labels: readonly (string | Buffer)[]) =>
  Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label as string, 'latin1')])),
    Buffer.from([0]),
  ])

const end = (type: number = types.A, classOf = 1) => Buffer.from([type >> 8, type & 255, classOf >> 8, classOf & 255])

const question = (name: string, type?: number) =>
  Buffer.concat([header(), wireName(name === '' ? [] : name.split('.')), end(type)])

const nameIn = (message: Buffer) => {
  const read = readQuestion(message)
  return typeof read === 'object' ? read.name : read
}

suite('a DNS question from a sandbox', () => {
  test('`readQuestion` returns the name in a DNS question in lower case, even if more records follow', () => {
    const message = Buffer.concat([question('WwW.eXample.COM', 28), Buffer.from('an EDNS record')])
    const read = readQuestion(message)
    assert.ok(typeof read === 'object')
    assert.deepEqual([read.name, read.type], ['www.example.com', 28])
    assert.deepEqual(read.asked, question('WwW.eXample.COM', 28))
  })

  const odd: [what: string, message: Buffer, code: number | undefined][] = [
    ['nothing', Buffer.alloc(0), undefined],
    ['half a header', header().subarray(0, 11), undefined],
    ['an answer', Buffer.concat([header({ flags: 0x8180 }), question('a.b').subarray(12)]), undefined],
    [
      'a bare answer, of a server that does not recurse',
      Buffer.concat([header({ flags: 0x8000 }), question('a.b').subarray(12)]),
      undefined,
    ],
    ['more than a question may have', Buffer.concat([question('a.b'), Buffer.alloc(mostQuestionBytes)]), undefined],
    ['a header alone', header(), codes.formatError],
    ['no question', Buffer.concat([header({ questions: 0 }), question('a.b').subarray(12)]), codes.formatError],
    ['two questions', Buffer.concat([header({ questions: 2 }), question('a.b').subarray(12)]), codes.formatError],
    [
      'a question with an answer',
      Buffer.concat([header({ answers: 1 }), question('a.b').subarray(12)]),
      codes.formatError,
    ],
    ['a pointer to itself', Buffer.concat([header(), Buffer.from([0xc0, 12]), end()]), codes.formatError],
    ['a pointer at its end', Buffer.concat([header(), Buffer.from([1, 97, 0xc0, 12]), end()]), codes.formatError],
    [
      'a label of 64',
      Buffer.concat([header(), Buffer.from([64]), Buffer.alloc(64, 97), Buffer.from([0]), end()]),
      codes.formatError,
    ],
    ['a name without an end', Buffer.concat([header(), Buffer.from([3, 97, 98, 99])]), codes.formatError],
    ['a name that is too long', Buffer.concat([header(), wireName(Array(128).fill('ab')), end()]), codes.formatError],
    ['no type', Buffer.concat([header(), wireName(['a', 'b'])]), codes.formatError],
    ['another class', Buffer.concat([header(), wireName(['a', 'b']), end(1, 3)]), codes.notImplemented],
    ['an update', Buffer.concat([header({ flags: 0x2800 }), question('a.b').subarray(12)]), codes.notImplemented],
  ]
  for (const [what, message, code] of odd)
    test(`readQuestion does not accept this message as a DNS question: ${what}`, () =>
      assert.equal(readQuestion(message), code))

  for (const [what, labels] of [
    ['a dot inside a label', ['api.example', 'com']],
    ['a NUL', ['api\0', 'example', 'com']],
    ['a star', ['*', 'example', 'com']],
    ['bytes beyond ASCII', ['\xff', 'example', 'com']],
    ['the root', []],
  ] as const) {
    test(`readQuestion returns no name if no list of domains can contain the name in the question: ${what}`, () => {
      assert.equal(nameIn(Buffer.concat([header(), wireName(labels), end()])), undefined)
    })
  }

  test('`readQuestion` throws for an empty DNS message, and never reads beyond the end of a message', () => {
    const anything = fc.uint8Array({ maxLength: 1400, size: 'max' })
    const likely = fc
      .tuple(
        fc.uint8Array({ maxLength: 300, size: 'max' }),
        fc.array(fc.tuple(fc.nat(299), fc.nat(255)), { maxLength: 6 }),
      )
      .map(([tail, changes]) => {
        const message = Buffer.concat([question('api.example.com'), tail])
        for (const [at, byte] of changes) message[at % message.length] = byte
        return new Uint8Array(message)
      })
    fc.assert(
      fc.property(fc.oneof(anything, likely), (bytes) => {
        const message = Buffer.from(bytes)
        const read = readQuestion(message)
        if (read === undefined) return
        if (typeof read === 'number') return void assert.equal(writeCode(message, read).length, 12)
        assert.deepEqual(read.asked, message.subarray(0, read.asked.length))
        assert.match(read.name ?? 'a', /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/)
        const answer = writeAnswer(read, { code: codes.ok, addresses: Array(40).fill('1.2.3.4'), seconds: 9 }, 512)
        assert.ok(answer.length <= Math.max(512, read.asked.length))
      }),
      { numRuns: 20_000 },
    )
  })

  test('every valid name in a DNS question is returned in lower case and otherwise unchanged', () => {
    const label = fc.stringMatching(/^[A-Za-z0-9_-]{1,63}$/)
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), (labels) => {
        const name = labels.join('.')
        fc.pre(name.length <= 253)
        assert.equal(nameIn(question(name)), name.toLowerCase())
      }),
    )
  })
})

suite('a DNS answer to a sandbox', () => {
  const asked = readQuestion(question('api.example.com'))
  assert.ok(typeof asked === 'object')

  test('a DNS answer repeats the question; each of its address records points to the name in the question', () => {
    const answer = writeAnswer(asked, { code: codes.ok, addresses: ['1.2.3.4', '5.6.7.8'], seconds: 300 }, 512)
    const record = (...address: number[]) => [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, ...address]
    assert.deepEqual(
      [...answer],
      [0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0].concat(
        [...asked.asked.subarray(12)],
        record(1, 2, 3, 4),
        record(5, 6, 7, 8),
      ),
    )
  })

  test('a DNS answer with only an error code repeats the question’s id, and is not marked as truncated', () => {
    assert.deepEqual([...writeCode(header(), codes.formatError)], [0xab, 0xcd, 0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0])
  })

  test('a DNS answer that is too long is marked as truncated and contains no addresses', () => {
    const answer = writeAnswer(asked, { code: codes.ok, addresses: Array(40).fill('1.2.3.4'), seconds: 1 }, 512)
    assert.deepEqual([answer.readUInt16BE(2), answer.readUInt16BE(6), answer.length], [0x8380, 0, asked.asked.length])
  })
})
