import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { SecretStore } from './secret-store.ts'

const secret = (id: string, version = 1, value = `${id} ${version}`) => ({
  ...{ id, version, value, placeholder: `p-${id}`, hosts: ['a.test'], certificate: 'c', privateKey: 'k' },
})
const use = (sandboxId: string, generation: number, ...secretIds: string[]) => ({ sandboxId, generation, secretIds })
const values = (store: SecretStore, sandboxId: string) => store.of(sandboxId)?.map(({ value }) => value)

suite('`SecretStore` stores the values of secrets on a host', () => {
  test('`SecretStore` replaces the value of a secret, for all sandboxes, only if the new version is higher', () => {
    const store = new SecretStore()
    store.take({ secrets: [secret('a', 2)], sandboxes: [use('one', 1, 'a')] })
    store.take({ secrets: [secret('a', 1)], sandboxes: [use('two', 1, 'a')] })
    assert.deepEqual([values(store, 'one'), values(store, 'two')], [['a 2'], ['a 2']])
  })

  test('`SecretStore` ignores a sandbox’s secrets if it already has those of a newer generation', () => {
    const store = new SecretStore()
    store.take({ secrets: [], sandboxes: [use('one', 3)] })
    store.take({ secrets: [secret('a')], sandboxes: [use('one', 2, 'a')] })
    assert.deepEqual(values(store, 'one'), [])
  })

  test('`SecretStore` deletes a sandbox’s secret if control’s message for the sandbox has no value for it', () => {
    const store = new SecretStore()
    store.take({ secrets: [secret('a'), secret('b')], sandboxes: [use('one', 1, 'a', 'b')] })
    store.take({ secrets: [secret('b')], sandboxes: [use('one', 1, 'a', 'b')] })
    assert.deepEqual(values(store, 'one'), ['b 1'])
  })

  test('a sandbox missing in control’s list loses its secrets, except secrets sent after the list’s request', () => {
    const store = new SecretStore()
    store.take({ secrets: [secret('a')], sandboxes: [use('old', 1, 'a')] }, undefined, 10)
    store.take({ secrets: [secret('b')], sandboxes: [use('new', 1, 'b')] }, undefined, 30)
    assert.equal(store.of('unheard'), undefined)
    store.take({ secrets: [], sandboxes: [] }, 20, 40)
    assert.deepEqual([store.of('old'), values(store, 'new')], [undefined, ['b 1']])
  })
})
