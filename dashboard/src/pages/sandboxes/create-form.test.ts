import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodyOf, curlOf, emptyForm, sdkOf } from './create-form.ts'

suite('the form of a new sandbox', () => {
  test('`bodyOf` returns an empty body for an empty form, so that the server uses its defaults', () => {
    assert.deepEqual(bodyOf(emptyForm), {})
  })

  test('`bodyOf` turns the texts of the form into the fields that `POST /sandbox` takes', () => {
    const form = {
      ...emptyForm,
      ...{ name: ' box ', cpu: '2', autoStop: '0', labels: 'team=blue', env: 'A=1\n\nB=x=y', volumes: 'data:/srv' },
      ...{ network: 'domains' as const, allowList: 'a.example\n b.example', secrets: 'TOKEN=github' },
    }
    assert.deepEqual(bodyOf(form), {
      ...{ name: 'box', cpu: 2, autoStopInterval: 0, labels: { team: 'blue' }, env: { A: '1', B: 'x=y' } },
      domainAllowList: 'a.example,b.example',
      volumes: [{ volumeId: 'data', mountPath: '/srv' }],
      secrets: [{ TOKEN: 'github' }],
    })
    assert.deepEqual(bodyOf({ ...emptyForm, source: 'image', image: 'debian:12' }), {
      buildInfo: { dockerfileContent: 'FROM debian:12\n' },
    })
  })

  test('`bodyOf` throws an error that quotes the line it cannot read', () => {
    assert.throws(() => bodyOf({ ...emptyForm, env: 'A=1\nwrong' }), /“wrong” is not a variable/)
    assert.throws(() => bodyOf({ ...emptyForm, volumes: '/data' }), /“\/data” is not a volume/)
    assert.throws(() => bodyOf({ ...emptyForm, labels: 'x' }), /labels/)
  })

  test('`curlOf` quotes the request body for a shell, and `sdkOf` writes the image into the SDK call', () => {
    assert.match(curlOf('http://x/api', { name: "Ann's" }), /-d '\{"name":"Ann'\\''s"\}'$/)
    const body = bodyOf({ ...emptyForm, source: 'image', image: 'debian:12', cpu: '2' })
    assert.match(sdkOf('http://x/api', body), /"image": "debian:12",\n {2}"resources": \{\n {4}"cpu": 2\n/)
  })
})
