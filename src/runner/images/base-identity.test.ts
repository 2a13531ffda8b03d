import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type BaseIdentity, imageOfBase, nameOfContent, readIdentity } from './base-identity.ts'

const config = { entrypoint: ['run'], env: { A: 'b' }, user: 'root', workdir: '/' }
const content = { sha256: 'a'.repeat(64), salt: 'b'.repeat(32) }
const built: BaseIdentity = { tree: 'c'.repeat(64), content, config, largeIds: [300_000] }
const pulled: BaseIdentity = { digest: `sha256:${'d'.repeat(64)}`, config, largeIds: [] }

suite('the identity of a base image', () => {
  test('a base image’s identity stays the same if the identity is written as JSON and read again', () => {
    for (const identity of [built, pulled])
      assert.deepEqual(readIdentity(JSON.parse(JSON.stringify(identity))), identity)
  })

  test('if another host wrote a base image’s identity with an invalid field, the identity is refused', () => {
    const wrong: unknown[] = [
      ...[undefined, null, 'text', [], {}],
      { ...built, content: undefined },
      { ...built, digest: pulled.digest },
      { ...built, tree: '../../etc' },
      { ...built, content: { ...content, sha256: 'A'.repeat(64) } },
      { ...built, content: { ...content, salt: '../x' } },
      { ...pulled, digest: 'sha256:../x' },
      { ...built, config: undefined },
      { ...built, config: { ...config, entrypoint: [1] } },
      { ...built, config: { ...config, env: { A: 1 } } },
      { ...built, config: { ...config, env: { A: 'x'.repeat(300_000) } } },
      { ...built, config: { ...config, user: 'x'.repeat(2000) } },
      { ...built, largeIds: [-1] },
      { ...built, largeIds: [2 ** 32] },
      { ...built, largeIds: Array.from({ length: 1001 }, (_, at) => at) },
    ]
    for (const value of wrong) assert.equal(readIdentity(value), undefined, JSON.stringify(value)?.slice(0, 200))
  })

  test('base images get different names if their files, settings or random numbers (`salt`) differ', () => {
    const names = [{ ...content, sha256: 'e'.repeat(64) }, { ...content, salt: 'e'.repeat(32) }, content].map(
      nameOfContent,
    )
    assert.equal(new Set(names).size, 3)
    const images = [
      built,
      pulled,
      { ...built, largeIds: [] },
      { ...built, config: { ...config, user: 'other' } },
      { ...built, content: { ...content, salt: 'e'.repeat(32) } },
    ].map(imageOfBase)
    assert.equal(new Set(images).size, 5)
  })
})
