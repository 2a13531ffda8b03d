import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodyOf, emptyForm, isComplete } from './create-form.ts'

suite('the form of a new snapshot', () => {
  test('the form for a new snapshot sends only the fields in which something was typed', () => {
    assert.deepEqual(bodyOf({ ...emptyForm, name: ' a ', image: ' debian:12 ' }), { name: 'a', imageName: 'debian:12' })
    const form = { ...emptyForm, name: 'a', source: 'dockerfile' as const, dockerfile: 'FROM x\n' }
    assert.deepEqual(bodyOf({ ...form, entrypoint: 'sleep\n1 h\n', cpu: '2', disk: '5', region: 'eu' }), {
      name: 'a',
      buildInfo: { dockerfileContent: 'FROM x\n' },
      entrypoint: ['sleep', '1 h'],
      cpu: 2,
      disk: 5,
      regionId: 'eu',
    })
  })

  test('the form for a new snapshot is not complete without a name, and without an image or a Dockerfile', () => {
    assert.equal(isComplete({ ...emptyForm, name: 'a' }), false)
    assert.equal(isComplete({ ...emptyForm, image: 'debian:12' }), false)
    assert.equal(isComplete({ ...emptyForm, name: 'a', source: 'dockerfile' }), true)
  })
})
