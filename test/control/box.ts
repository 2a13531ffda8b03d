// For tests: a member's sandbox called `box`, by the calls that the tests of its life have in common.
import assert from 'node:assert/strict'
import type { TestControl } from './harness.ts'

/** Answers its id. */
export const create = async (app: TestControl, body: object = {}): Promise<string> => {
  const reply = await app.as('member').post('/sandbox', { name: 'box', ...body })
  assert.equal(reply.status, 200, reply.text)
  return reply.body.id
}

export const get = async (app: TestControl, id: string) => (await app.as('member').get(`/sandbox/${id}`)).body

/** A verb of it. */
export const post = (app: TestControl, verb: string, body?: object) =>
  app.as('member').post(`/sandbox/box/${verb}`, body)
