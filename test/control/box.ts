// Calls that many tests make about a sandbox named `box`, as the person `member` of people.ts.
import assert from 'node:assert/strict'
import type { TestControl } from './harness.ts'

/** Creates the sandbox `box` as the person `member`, and returns its id. */
export const create = async (app: TestControl, body: object = {}): Promise<string> => {
  const reply = await app.as('member').post('/sandbox', { name: 'box', ...body })
  assert.equal(reply.status, 200, reply.text)
  return reply.body.id
}

export const get = async (app: TestControl, id: string) => (await app.as('member').get(`/sandbox/${id}`)).body

/** Calls a verb of the sandbox `box` as the person `member`. */
export const post = (app: TestControl, verb: string, body?: object) =>
  app.as('member').post(`/sandbox/box/${verb}`, body)
