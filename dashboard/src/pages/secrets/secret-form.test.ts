import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodyOf, changeOf, formOf } from './secret-form.ts'

const secret = {
  ...{ id: 'x', name: 'model-key', placeholder: 'alcove_secret_x', hosts: ['a.example'], description: 'ours' },
  ...{ createdAt: '2026-01-01T00:00:00Z', updatedAt: '2026-01-01T00:00:00Z' },
}

suite('the form of a secret', () => {
  test('the form of a secret reads one host from each line, and sends the value exactly as it was typed', () => {
    assert.deepEqual(
      bodyOf({ name: ' key ', value: ' v ', description: '', hosts: 'a.example\n\n b.example, c.example' }),
      {
        ...{ name: 'key', value: ' v ', hosts: ['a.example', 'b.example', 'c.example'] },
      },
    )
  })

  test('the unchanged form of a secret sends no change, so the server keeps the secret’s value', () => {
    assert.deepEqual(changeOf(secret, formOf(secret)), {})
  })

  test('the form of a secret sends an emptied description or list of hosts, so that the server removes it', () => {
    assert.deepEqual(changeOf(secret, { ...formOf(secret), value: 'new', description: '', hosts: '' }), {
      ...{ value: 'new', description: '', hosts: [] },
    })
  })
})
