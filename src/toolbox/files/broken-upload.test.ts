import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { suite, test } from 'node:test'
import { Problem } from '#src/problems.ts'
import type { Files } from '../agent/agent.ts'
import { bulkUpload, upload } from './upload.ts'

/** A fake agent that reads the uploaded contents and stores nothing. */
const files = {
  write: async (_path: unknown, contents: AsyncIterable<Buffer>) => {
    for await (const _ of contents);
  },
} as unknown as Files

const part = '--b\r\ncontent-disposition: form-data; name='
const form = `${part}"files[0].path"\r\n\r\n/a\r\n${part}"files[0].file"\r\n\r\nhalf`

/** A request whose body starts with `begin` and then fails with `failure`. */
const requestThatFails = (begin: string, failure: Error, type: string): IncomingMessage => {
  const body = Readable.from(
    (async function* () {
      yield Buffer.from(begin)
      throw failure
    })(),
  )
  return Object.assign(body, { headers: { 'content-type': type } }) as unknown as IncomingMessage
}

suite('an upload whose body does not arrive completely', () => {
  const tooSlow = new Problem('timeout', 'The body of the request arrived too slowly, or not at all.')
  const cases = [
    ['a body without a form', 'half', 'application/octet-stream', upload.bind(undefined, files, '/a')],
    ['a form', `${part}"file"\r\n\r\nhalf`, 'multipart/form-data; boundary=b', upload.bind(undefined, files, '/a')],
    ['a form of many files', form, 'multipart/form-data; boundary=b', bulkUpload.bind(undefined, files)],
  ] as const
  for (const [what, begin, type, receive] of cases) {
    test(`an upload is refused with 408 if ${what} came too slowly, and with 400 if ${what} was cut short`, async () => {
      await assert.rejects(receive(requestThatFails(begin, tooSlow, type)), {
        code: 'timeout',
        message: tooSlow.message,
      })
      await assert.rejects(receive(requestThatFails(begin, new Error('aborted'), type)), { code: 'bad_request' })
    })
  }
})
