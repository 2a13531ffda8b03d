import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { frameOf, jsonFrameOf } from '#src/kit/length-frames.ts'
import { silentLog } from '#src/kit/log.ts'
import { assignmentWith } from '#src/toolbox/testing/assignment.ts'
import { RunnerLink } from './runner-link.ts'

const here = (id: string) => ({
  type: 'here',
  sandbox: { id, assignment: assignmentWith({ sandboxId: id }), status: 'started', socketPath: `/nowhere/${id}` },
})

/** Starts a simulated runner that sends `frames` to each gate that connects, and nothing else. */
const startRunner = async (frames: readonly Buffer[]) => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-runner-link-'))
  const path = join(directory, 'runner.sock')
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    for (const frame of frames) socket.write(frame)
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    path,
    get connections() {
      return sockets.size
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const { assignment, ...unassigned } = here('bad').sandbox

suite('a wrong message of a runner to the gate', () => {
  for (const [name, bad] of Object.entries({
    'is no JSON': frameOf(Buffer.from('{"type":')),
    'is null': jsonFrameOf(null),
    'is of an unknown type': jsonFrameOf({ type: 'elsewhere', sandboxId: 'before' }),
    'names no sandbox': jsonFrameOf({ type: 'here' }),
    'has no assignment': jsonFrameOf({ type: 'here', sandbox: unassigned }),
    'has a generation that is no number': jsonFrameOf({
      type: 'here',
      sandbox: { ...unassigned, assignment: { ...assignment, generation: 'newest' } },
    }),
    'has a status that does not exist': jsonFrameOf({
      type: 'here',
      sandbox: { ...unassigned, assignment, status: 'lost' },
    }),
    'is of one sandbox and belongs to another': jsonFrameOf({
      type: 'here',
      sandbox: { ...unassigned, assignment: { ...assignment, sandboxId: 'before' } },
    }),
  })) {
    test(`a wrong message of a runner is ignored if it ${name}; the sandboxes in the other messages are served`, {
      timeout: 20_000,
    }, async () => {
      const frames = [jsonFrameOf(here('before')), bad, jsonFrameOf(here('behind')), jsonFrameOf({ type: 'whole' })]
      await using runner = await startRunner(frames)
      using link = new RunnerLink(runner.path, silentLog())
      // A second connection means that the bad message has closed the first connection. The loop then ends, and the
      // assertion fails.
      while (!link.isCurrent && runner.connections < 2) await link.untilChanged('behind', 50)
      assert.deepEqual(
        ['before', 'bad', 'behind'].map((id) => link.get(id)?.socketPath),
        ['/nowhere/before', undefined, '/nowhere/behind'],
      )
      assert.equal(link.isCurrent, true)
      assert.equal(runner.connections, 1)
    })
  }
})
