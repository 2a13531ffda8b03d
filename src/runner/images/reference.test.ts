import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { ImageFailed } from './image-failed.ts'
import { formatReference, isThisMachine, parseReference, pinned } from './reference.ts'

const digest = `sha256:${'a'.repeat(64)}`
const whole = (text: string) => formatReference(parseReference(text))

suite('names of images', () => {
  test('an image name without a registry refers to an image of Docker Hub, as in Docker', () => {
    const names = {
      alpine: 'docker.io/library/alpine:latest',
      'alpine:3.20': 'docker.io/library/alpine:3.20',
      'org/app': 'docker.io/org/app:latest',
      'docker.io/alpine': 'docker.io/library/alpine:latest',
      'index.docker.io/library/alpine:1': 'docker.io/library/alpine:1',
      'ghcr.io/x/y/z:v1.0_a-b': 'ghcr.io/x/y/z:v1.0_a-b',
      'localhost/x': 'localhost/x:latest',
      'localhost:5000/x:1': 'localhost:5000/x:1',
      '127.0.0.1:5000/x': '127.0.0.1:5000/x:latest',
      [`ghcr.io/x/y@${digest}`]: `ghcr.io/x/y@${digest}`,
    }
    for (const [name, expected] of Object.entries(names)) assert.equal(whole(name), expected)
  })

  test('if an image name has both a tag and a digest, the digest says which image is meant', () => {
    assert.equal(whole(`alpine:3.20@${digest}`), `docker.io/library/alpine@${digest}`)
    assert.equal(formatReference(pinned(parseReference('a.b/c:1'), digest)), `a.b/c@${digest}`)
  })

  test('an invalid image name is refused, and no part of a name is used as an option or a path', () => {
    const wrong = [
      ...['', ' ', '/', 'a/', '/a', 'a//b', '-a', '--tls-verify=false', 'A', 'a b', 'a\nb', 'a\0', 'a:', 'a:b:c', 'ü'],
      ...['a@', 'a@sha256:1', `a@sha512:${'a'.repeat(128)}`, `a@${digest}@${digest}`, '../a', 'a/../b', './a', '.a/b'],
      ...['host:0/a', 'host:99999/a', 'host:x/a', 'ho_st.x/a', '-h.x/a', 'docker://a', 'oci:a/b', `${'a'.repeat(256)}`],
    ]
    for (const name of wrong) assert.throws(() => parseReference(name), ImageFailed, JSON.stringify(name))
  })

  test('a registry address with localhost or any loopback address is recognized as this machine', () => {
    for (const host of ['localhost', 'LOCALHOST:1', 'x.localhost:1', '127.1:1', '127.0.0.1:5000', '0.0.0.0:1'])
      assert.ok(isThisMachine(parseReference(`${host}/a`)), host)
    for (const host of ['docker.io', 'localhost.example', '10.0.0.1:5000', 'x127.0.0.1'])
      assert.ok(!isThisMachine(parseReference(`${host}/a`)), host)
  })
})
