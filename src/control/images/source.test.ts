import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readReference, readSource } from './source.ts'

const digest = `sha256:${'a'.repeat(64)}`

suite('the name of an image', () => {
  const readings = [
    ['python', 'docker.io/library/python:latest'],
    ['python:3.12-slim', 'docker.io/library/python:3.12-slim'],
    ['team/tool', 'docker.io/team/tool:latest'],
    ['docker.io/python', 'docker.io/library/python:latest'],
    ['ghcr.io/team/tool:1', 'ghcr.io/team/tool:1'],
    ['localhost:5000/a/b/c:1', 'localhost:5000/a/b/c:1'],
    ['localhost/tool', 'localhost/tool:latest'],
    [`python@${digest}`, `docker.io/library/python@${digest}`],
    [`python:3.12@${digest}`, `docker.io/library/python@${digest}`],
  ] as const
  for (const [given, read] of readings) {
    test(`the image reference ${given} is read as ${read}`, () => assert.equal(readReference(given), read))
  }

  const refused = [
    '',
    ':',
    ':tag',
    'UPPER',
    'a//b',
    '/a',
    'a/',
    '../a',
    'a b',
    'a@sha256:1',
    'a:',
    '-a',
    'http://a/b',
    'a\u0000',
  ]
  for (const given of [...refused, 'x'.repeat(600), '$(reboot)', '--help']) {
    test(`the image reference ${JSON.stringify(given.slice(0, 20))} is refused`, () =>
      assert.throws(() => readReference(given), /imageName/))
  }
})

suite('the source of a snapshot', () => {
  const read = (imageName: string) => readSource({ name: 'n', imageName }, 'ours')

  test('a snapshot may be made from an image file only if the file is in the operator’s directory for images', () => {
    assert.deepEqual(read('oci-archive:base/tool.tar'), { kind: 'file', path: 'base/tool.tar' })
    for (const path of ['/etc/passwd', '../x', 'a/../../x', '', 'a:b']) {
      assert.throws(() => read(`docker-archive:${path}`), /relative path/)
    }
  })

  test('a snapshot’s source must be an image name or a definition, but not both', () => {
    const buildInfo = { dockerfileContent: 'FROM python\n' }
    assert.deepEqual(readSource({ name: 'n', buildInfo }, 'ours'), { kind: 'definition', dockerfile: 'FROM python\n' })
    assert.throws(() => readSource({ name: 'n' }, 'ours'), /one of them/)
    assert.throws(() => readSource({ name: 'n', imageName: 'a', buildInfo }, 'ours'), /one of them/)
  })

  test('a snapshot’s definition names uploaded files by their hashes; any other name of a file is refused', () => {
    const [one, two] = ['a'.repeat(32), 'b'.repeat(32)]
    const read = (...contextHashes: string[]) =>
      readSource({ name: 'n', buildInfo: { dockerfileContent: 'FROM x', contextHashes } }, 'ours')
    assert.deepEqual(read(one, two, one), {
      kind: 'definition',
      dockerfile: 'FROM x',
      contexts: { organizationId: 'ours', hashes: [one, two] },
    })
    for (const wrong of ['', 'x', '../../theirs', 'A'.repeat(32), 'a'.repeat(65), `${one}/..`, `${one}\n`])
      assert.throws(() => read(wrong), /no hash/)
  })
})
