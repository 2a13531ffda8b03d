// Parses more than 100 Dockerfiles of the kinds that people commonly write. docs/reference/dockerfiles.md has a table of these
// Dockerfiles.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { ImageFailed } from '../image-failed.ts'
import type { ContainerConfig } from '../manifest.ts'
import { emptyConfig, planOf } from './plan.ts'
import { definitions } from './testing/definitions.ts'

/** The configuration of a typical base image. */
const base = {
  ...emptyConfig(),
  env: { PATH: '/bin', HOME: '/root', NB_UID: '1000', NB_GID: '100', ROS_DISTRO: 'humble' },
}

suite('Dockerfiles as people write them', () => {
  test('at least 95 % of more than 100 typical Dockerfiles are accepted', () => {
    assert.ok(definitions.length >= 100, `${definitions.length}`)
    const refused = definitions.filter(({ refusal }) => refusal !== undefined)
    assert.ok((definitions.length - refused.length) / definitions.length >= 0.95)
  })

  for (const { name, refusal, dockerfile } of definitions) {
    test(refusal === undefined ? `${name} is accepted` : `${name} is refused with advice what to write`, () => {
      if (refusal === undefined) {
        const { stages } = planOf(dockerfile, true)
        assert.ok(stages.length > 0)
        const configs = new Map<number, ContainerConfig>()
        for (const { index, from, on } of stages) {
          const below = from !== 'scratch' && 'stage' in from ? configs.get(from.stage) : base
          configs.set(index, on(below ?? base).config)
        }
        return
      }
      assert.throws(
        () => planOf(dockerfile, true),
        (error: unknown) => {
          assert.ok(error instanceof ImageFailed)
          assert.match(error.message, /^Line \d+ of the definition \([A-Z]+\): /)
          assert.ok(error.message.includes(refusal), error.message)
          return true
        },
      )
    })
  }
})
