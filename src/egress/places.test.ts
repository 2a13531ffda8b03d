import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Places } from './places.ts'

/** Opens connections of one sandbox until one is refused. Returns the functions that end them. */
const takeAll = (places: Places, sandbox: string, owner: string) => {
  const taken: (() => void)[] = []
  for (let place = places.take(sandbox, owner); place !== undefined; place = places.take(sandbox, owner)) {
    taken.push(place)
  }
  return taken
}
const sandboxesOf = (owner: string, count: number) => Array.from({ length: count }, (_, n) => `${owner}-${n}`)

suite('connections to the proxy for secrets', () => {
  test('a sandbox has at most 512 connections to the proxy for secrets, and 512 again after these have ended', () => {
    const places = new Places()
    const taken = takeAll(places, 'a-0', 'a')
    assert.equal(taken.length, 512)
    assert.equal(takeAll(places, 'a-1', 'a').length, 512)
    for (const give of taken) give()
    assert.equal(takeAll(places, 'a-0', 'a').length, 512)
  })

  test('one organization gets at most half of the connections of the proxy for secrets, so others get some', () => {
    const places = new Places()
    const taken = sandboxesOf('many', 40).flatMap((sandbox) => takeAll(places, sandbox, 'many'))
    assert.equal(taken.length, 4096)
    assert.equal(takeAll(places, 'b-0', 'b').length, 512)
  })

  test('an organization gets 32 connections to the proxy for secrets even if others take all they can', () => {
    const places = new Places()
    for (const owner of sandboxesOf('owner', 50)) {
      for (const sandbox of sandboxesOf(owner, 20)) takeAll(places, sandbox, owner)
    }
    assert.equal(takeAll(places, 'late-0', 'late').length, 32)
  })

  test('a refused connection to the proxy for secrets does not count towards its sandbox’s limit of 512', () => {
    const places = new Places()
    const [first] = sandboxesOf('many', 8).map((sandbox) => takeAll(places, sandbox, 'many'))
    assert.deepEqual(takeAll(places, 'many-8', 'many'), [])
    for (const give of first ?? []) give()
    assert.equal(takeAll(places, 'many-8', 'many').length, 512)
  })
})
