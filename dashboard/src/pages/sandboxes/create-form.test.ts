import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodyOf, curlOf, emptyForm, sdkOf } from './create-form.ts'

suite('the form of a new sandbox', () => {
  test('the empty form for a new sandbox sends an empty body, so that the server uses its defaults', () => {
    assert.deepEqual(bodyOf(emptyForm), {})
  })

  test('the form for a new sandbox turns its texts into the fields that `POST /sandbox` takes', () => {
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

  test('if the form for a new sandbox cannot read a line, its error quotes that line', () => {
    assert.throws(() => bodyOf({ ...emptyForm, env: 'A=1\nwrong' }), /“wrong” is not a variable/)
    assert.throws(() => bodyOf({ ...emptyForm, volumes: '/data' }), /“\/data” is not a volume/)
    assert.throws(() => bodyOf({ ...emptyForm, labels: 'x' }), /labels/)
  })

  test('the form for a new sandbox shows a curl command with a quoted body, and an SDK call with the image', () => {
    assert.match(curlOf('http://x/api', { name: "Ann's" }), /-d '\{"name":"Ann'\\''s"\}'$/)
    const body = bodyOf({ ...emptyForm, source: 'image', image: 'debian:12', cpu: '2' })
    assert.match(sdkOf('http://x/api', body), /"image": "debian:12",\n {2}"resources": \{\n {4}"cpu": 2\n/)
  })
})
