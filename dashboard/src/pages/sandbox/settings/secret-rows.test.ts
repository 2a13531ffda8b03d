import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { secretRowsOf, secretsBody, secretsProblem } from './secret-rows.ts'

suite('the rows of secrets', () => {
  const known = [{ id: 's1', name: 'openai' }]

  test('the form of a sandbox’s secrets shows each secret’s name, or the id if the secret is not known', () => {
    const held = [
      { variable: 'API_KEY', secretId: 's1' },
      { variable: 'OTHER', secretId: 's2' },
    ]
    assert.deepEqual(secretRowsOf(held, known), [
      { id: 0, variable: 'API_KEY', name: 'openai' },
      { id: 1, variable: 'OTHER', name: 's2' },
    ])
    assert.deepEqual(secretRowsOf(undefined, known), [])
  })

  test('the form of a sandbox’s secrets reports an incomplete row and a duplicate variable', () => {
    const row = { id: 0, variable: 'A', name: 'openai' }
    assert.equal(secretsProblem([row]), undefined)
    assert.match(secretsProblem([{ ...row, name: '' }]) ?? '', /needs a variable and a secret/)
    assert.match(secretsProblem([row, { ...row, id: 1 }]) ?? '', /"A" is used twice/)
  })

  test('the form of a sandbox’s secrets sends a list with one object for each variable', () => {
    assert.deepEqual(secretsBody([{ id: 0, variable: 'A', name: 'openai' }]), { secrets: [{ A: 'openai' }] })
  })
})
