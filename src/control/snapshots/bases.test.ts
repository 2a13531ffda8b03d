import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

/** Makes a snapshot from a Dockerfile. Returns the source of its image, as runners get it. */
const sourceOf = async (app: TestControl, name: string, dockerfileContent: string) => {
  const made = await app.as('owner').post('/snapshots', { name, buildInfo: { dockerfileContent } })
  assert.equal(made.status, 200, made.text)
  const [{ image }] = (await app.database.sql`select image from snapshots where name = ${name}`) as unknown as [
    { image: string },
  ]
  const images: { image: string; source: object }[] = (await app.with(keys.runner).get('/runners/images')).body
  return images.find((each) => each.image === image)?.source as { snapshots?: object }
}

suite('a definition that uses a snapshot as a base', () => {
  test('a Dockerfile’s FROM, --from or --mount names a snapshot or, if no snapshot has that name, an image', async () => {
    await using app = await startControl()
    // A connected runner that reports that it has the built-in image.
    await using _ = await connectRunner(app)
    const dockerfile = [
      'FROM --platform=linux/amd64 default AS a',
      'FROM nobody-here',
      'COPY --from=default /x /x',
      'RUN --mount=type=bind,from=alpine:3,target=/y true',
    ].join('\n')
    assert.deepEqual((await sourceOf(app, 'one', dockerfile)).snapshots, { default: 'default' })
    const byVariable = 'ARG BASE="default"\nFROM $BASE\n'
    assert.deepEqual((await sourceOf(app, 'variable', byVariable)).snapshots, { default: 'default' })
    assert.equal((await sourceOf(app, 'two', 'FROM docker.io/library/default\n')).snapshots, undefined)
  })

  test('POST /snapshots and POST /sandbox answer 400 if the Dockerfile’s FROM names a snapshot that is not active', async () => {
    await using app = await startControl()
    await sourceOf(app, 'unready', 'FROM alpine\n')
    const buildInfo = { dockerfileContent: 'FROM unready\n' }
    const refused = await app.as('owner').post('/snapshots', { name: 'next', buildInfo })
    assert.equal(refused.status, 400)
    assert.match(refused.text, /FROM unready: the snapshot is building, and not active/)
    assert.equal((await app.as('owner').post('/sandbox', { buildInfo })).status, 400)
  })

  test('a build ignores another organization’s snapshot, as if that snapshot did not exist', async () => {
    await using app = await startControl()
    await sourceOf(app, 'ours', 'FROM alpine\n')
    const buildInfo = { dockerfileContent: 'FROM ours\n' }
    const made = await app.as('stranger').post('/snapshots', { name: 'theirs', buildInfo })
    assert.equal(made.status, 200, made.text)
  })
})
