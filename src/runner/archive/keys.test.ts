import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { chunkKey, manifestKey, prefixOf } from './keys.ts'

suite('keys of archives in the store', () => {
  test('in the store, a sandbox’s keys begin with `sandboxes/`, and an image’s keys with `images/`', () => {
    assert.equal(manifestKey({ sandboxId: 'a-1' }, 'first'), 'sandboxes/a-1/archives/first.json')
    assert.equal(manifestKey({ image: 'a-1.2' }, 'first'), 'images/a-1.2/archives/first.json')
    assert.equal(chunkKey({ sandboxId: 'a' }, 'b'.repeat(64)), `sandboxes/a/chunks/${'b'.repeat(64)}`)
  })

  test('a sandbox id or image name that would lead out of its directory in the store is refused', () => {
    for (const id of ['', '.', '..', '../a', 'a/b', '-a', 'a.b', 'a\n', 'a'.repeat(129)]) {
      assert.throws(() => prefixOf({ sandboxId: id }), TypeError, id)
      assert.throws(() => manifestKey({ sandboxId: 'a' }, id), TypeError, id)
    }
    for (const image of ['', '.', '..', '.a', 'a/b', 'a\n', 'a'.repeat(129)])
      assert.throws(() => prefixOf({ image }), TypeError, image)
    assert.equal(prefixOf({ sandboxId: 'a'.repeat(128) }), `sandboxes/${'a'.repeat(128)}/`)
  })
})
