import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { imageConfigBounds } from '#src/wire/runner-link.ts'
import { imageConfigOf, ourEntryOf, ownArchitecture, parseConfig, parseManifest } from './manifest.ts'

const { words, wordCharacters, nameCharacters, pathCharacters } = imageConfigBounds

const parse = (config: object) => parseConfig(JSON.stringify({ os: 'linux', architecture: ownArchitecture, config }))

suite('the manifest of an image', () => {
  test('an image is refused if its author chooses the address from which one of its layers is downloaded', () => {
    const described = { digest: `sha256:${'a'.repeat(64)}`, size: 1 }
    const layer = { ...described, mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip' }
    const parse = (layers: object[]) => parseManifest(JSON.stringify({ config: described, layers }))
    assert.deepEqual(parse([layer]), { manifest: { config: described, layers: [described] } })
    const elsewhere = { ...layer, urls: ['http://10.0.0.1/layer'] }
    assert.throws(() => parse([layer, elsewhere]), { failure: 'unsupported', message: /outside of its registry/ })
  })
})

suite('the index of an image for several platforms', () => {
  test('an image’s index entry is chosen only if operating system and processor are those of the host', () => {
    const entry = (os: string, architecture: string) => ({
      ...{ digest: `sha256:${os}-${architecture}`, size: 1, isArtifact: false },
      platform: { os, architecture },
    })
    const [others, ours] = [
      [entry('linux', 'other'), entry('windows', ownArchitecture)],
      entry('linux', ownArchitecture),
    ]
    assert.equal(ourEntryOf([...others, ours]), ours)
    assert.throws(() => ourEntryOf(others), { failure: 'wrong-architecture' })
  })
})

suite('the configuration of an image', () => {
  test('an image configuration with a command, variables, user and directory of maximum length is accepted', () => {
    const Env = [`${'A'.repeat(nameCharacters)}=${'x'.repeat(100_000)}`]
    const command = ['x'.repeat(wordCharacters), ...Array<string>(words - 1).fill('')]
    const { config } = parse({
      Env,
      Entrypoint: command,
      User: 'u'.repeat(nameCharacters),
      WorkingDir: `/${'d'.repeat(pathCharacters - 1)}`,
    })
    assert.deepEqual(imageConfigOf(config).entrypoint, command)
  })

  test('an image configuration is refused if control would refuse it when the runner reports it', () => {
    const refused: [RegExp, object][] = [
      [/more than 1000 words/, { Entrypoint: Array(words).fill('x'), Cmd: ['x'] }],
      [/word .* longer than 128 KiB/, { Cmd: ['x'.repeat(wordCharacters + 1)] }],
      [/variable is longer than 128 KiB/, { Env: [`A=${'x'.repeat(wordCharacters - 1)}`] }],
      [/name of a variable/, { Env: [`${'A'.repeat(nameCharacters + 1)}=`] }],
      [/its user/, { User: 'x'.repeat(nameCharacters + 1) }],
      [/its working directory/, { WorkingDir: `/${'x'.repeat(pathCharacters)}` }],
      [/together/, { Env: ['A', 'B'].map((name) => `${name}=${'x'.repeat(100_000)}`), Cmd: ['x'.repeat(100_000)] }],
    ]
    for (const [message, config] of refused) assert.throws(() => parse(config), { failure: 'unsupported', message })
  })

  test('an image configuration with a NUL is refused; a lone surrogate in a configuration is replaced', () => {
    assert.throws(() => parse({ Cmd: ['a\0b'] }), { failure: 'corrupted' })
    assert.deepEqual(parse({ Cmd: ['a\ud800b'] }).config.cmd, ['a\ufffdb'])
  })
})
