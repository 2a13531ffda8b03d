import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SendFile, Uploads } from './uploads.ts'

const owner = { id: 'box', toolboxProxyUrl: 'http://gate' }
const dropped = (path: string) => ({ file: new File(['four'], path), path })

/** Simulates the function `sendFile`. The test decides when each upload succeeds or fails. */
const heldSends = () => {
  const sends: { path: string; done: () => void; fail: (error: Error) => void; progress: (sent: number) => void }[] = []
  const send: SendFile = (_, path, __, { signal, onProgress }) =>
    new Promise((done, fail) => {
      sends.push({ path, done, fail, progress: onProgress })
      signal.addEventListener('abort', () => fail(new Error('aborted')))
    })
  return { sends, send }
}
const settle = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

test('files are uploaded to the directory on which they were dropped, two at the same time', async () => {
  const { sends, send } = heldSends()
  const uploads = new Uploads(owner, send)
  uploads.add('/home', ['a', 'dir/b', 'c'].map(dropped))
  assert.deepEqual(
    sends.map(({ path }) => path),
    ['/home/a', '/home/dir/b'],
  )
  sends[0]!.progress(2)
  assert.deepEqual([uploads.snapshot()[0]!.sent, uploads.snapshot()[0]!.size], [2, 4])
  sends[0]!.done()
  await settle()
  assert.equal(sends[2]!.path, '/home/c')
})

test('a failed upload shows its error message and does not stop the other uploads', async () => {
  const { sends, send } = heldSends()
  const uploads = new Uploads(owner, send)
  let arrived = 0
  uploads.onArrived = () => {
    arrived += 1
  }
  uploads.add('/', ['a', 'b'].map(dropped))
  sends[0]!.fail(new Error('The disk is full.'))
  sends[1]!.done()
  await settle()
  const [a, b] = uploads.snapshot()
  assert.deepEqual([a!.state, (a!.error as Error).message, b!.state], ['failed', 'The disk is full.', 'done'])
  assert.deepEqual([arrived, uploads.isBusy], [1, false])
})

test('a cancel stops all running and waiting uploads, but no upload of a file that is added later', async () => {
  const { sends, send } = heldSends()
  const uploads = new Uploads(owner, send)
  uploads.add('/', ['a', 'b', 'c'].map(dropped))
  uploads.cancel()
  await settle()
  assert.equal(sends.length, 2)
  assert.ok(uploads.snapshot().every(({ state }) => state === 'cancelled'))
  uploads.add('/', [dropped('d')])
  sends[2]!.done()
  await settle()
  assert.equal(uploads.snapshot().at(-1)!.state, 'done')
  uploads.clear()
  assert.deepEqual(uploads.snapshot(), [])
})
