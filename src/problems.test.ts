import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { noSandbox, noSnapshot, notStarted, Problem, type ProblemCode, problems, wordsOf } from './problems.ts'

/**
 * Texts that client programs search for in an error's message. Most of these programs distinguish upper and lower case.
 * Sources: `@computesdk/daytona` 1.7, `@langchain/daytona` 0.1, `@mastra/daytona` 0.4, Harbor, the n8n nodes and suna.
 */
const patterns: readonly (readonly [client: string, made: Problem, pattern: RegExp | string])[] = [
  ['ComputeSDK', noSandbox('box'), 'not found'],
  ['ComputeSDK', new Problem('unauthorized'), 'unauthorized'],
  ['ComputeSDK', new Problem('quota_exceeded', 'cpu 9 is more than the 4 that a sandbox may have'), /quota|limit/],
  ['LangChain', new Problem('file_not_found'), 'not found'],
  ['LangChain', new Problem('file_access_denied', 'This file system is read-only.'), 'permission'],
  ['LangChain', new Problem('execution_timeout'), 'timeout'],
  ['Mastra', noSandbox('box'), /sandbox.*not found/i],
  ['Mastra', notStarted('The sandbox is stopping.'), /is the sandbox started/i],
  [
    'Mastra',
    new Problem('changing', 'The sandbox is stopping; wait until that has ended.'),
    'State change in progress',
  ],
  ['Harbor', new Problem('no_room'), /capacity/i],
  [
    'Harbor',
    new Problem('quota_exceeded', 'total CPU limit exceeded'),
    /total\s+(?:cpu|memory|disk)\s+limit\s+exceeded/i,
  ],
  ['Harbor', new Problem('quota_exceeded', 'total disk limit exceeded'), /total disk limit exceeded/i],
  ['Harbor', noSnapshot('base'), /snapshot .* not found/i],
  ['n8n', new Problem('unauthorized'), /invalid credentials/i],
  ['n8n', new Problem('already_exists', 'A session with this name already exists.'), /already exists/i],
  ['suna', notStarted(), 'Is the Sandbox started?'],
  ['suna', new Problem('rate_limited', 'This sandbox has too many sessions.'), /rate limit|too many requests/i],
  ['any', new Problem('snapshot_inactive', 'The snapshot "base" is building.'), /inactive/i],
  ['any', noSnapshot('base', 'bad_request'), /base not found/],
  ['any', noSandbox('box'), 'Sandbox not found'],
  ['any', noSandbox('box'), /^Sandbox with ID or name box not found/],
]

suite('The words by which programs recognize an error', () => {
  for (const [client, problem, pattern] of patterns) {
    test(`the message "${problem.message}" contains ${pattern}, by which ${client} clients recognize the error`, () => {
      if (typeof pattern === 'string') assert.ok(problem.message.includes(pattern))
      else assert.match(problem.message, pattern)
    })
  }

  test('an error with a sentence of its own still contains the words that clients search for', () => {
    for (const code of Object.keys(problems) as ProblemCode[]) {
      for (const sentence of [undefined, 'Something else.', 'Something else']) {
        const { message } = new Problem(code, sentence)
        for (const words of wordsOf(code)) assert.ok(message.includes(words), `${code}: ${message}`)
        assert.ok(message.startsWith((sentence ?? problems[code][2]).replace(/\.$/, '')), message)
      }
    }
  })

  test('each error 404, 408 and 429 contains the words by which SDKs recognize it, such as “rate limit”', () => {
    for (const code of Object.keys(problems) as ProblemCode[]) {
      const words = { 404: 'not found', 408: 'timeout', 429: 'rate limit' }[problems[code][0] as number]
      if (words !== undefined) assert.ok(new Problem(code).message.includes(words), code)
    }
  })

  test('if a message already has the words that clients search for, `Problem` does not add the words again', () => {
    for (const code of Object.keys(problems) as ProblemCode[]) {
      const { message } = new Problem(code)
      assert.equal(new Problem(code, message).message, message)
    }
  })

  test('after several sentences, the words that clients search for do not become a part of the last sentence', () => {
    const messages = ['It is full.', 'It is full. Try again later.', 'Is it full? Try again'].map(
      (sentence) => new Problem('no_room', sentence).message,
    )
    assert.deepEqual(messages, [
      'It is full (capacity).',
      'It is full. Try again later. (capacity)',
      'Is it full? Try again (capacity)',
    ])
  })

  test('no standard message says the words that clients search for twice', () => {
    for (const code of Object.keys(problems) as ProblemCode[]) {
      const message = new Problem(code).message.toLowerCase()
      for (const words of wordsOf(code)) assert.equal(message.split(words.toLowerCase()).length, 2, message)
    }
  })

  test('only the error for a missing sandbox has a message with both "sandbox" and "not found"', () => {
    const others = [new Problem('file_not_found'), new Problem('process_not_found'), noSnapshot('base')]
    for (const { message } of others) assert.doesNotMatch(message, /sandbox.*not found/i)
  })
})
