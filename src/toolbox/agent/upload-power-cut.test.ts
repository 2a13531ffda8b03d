// Checks that an uploaded file is on the disk before the answer is sent. Needs root, because strace records the agent's syncs.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { type Operation, Recorder } from '#test/power-cut/recorder.ts'
import { cutsOf, Disk } from '#test/power-cut/remains.ts'
import { NativeAgent } from './testing/native-agent.ts'

const contents = 'what was uploaded'

type Wish = { name: string; makeParents?: boolean; old?: string }

/** Uploads a file. Returns the possible contents of the file after a power cut, for every moment at which the power can fail. */
const uploadAndCut = async (native: NativeAgent, { name, old, ...options }: Wish) => {
  const path = join(native.directory, name)
  await using recorder = await Recorder.attach(native.pid)
  const half = Math.floor(contents.length / 2)
  const pieces = [contents.slice(0, half), contents.slice(half)].map((piece) => Buffer.from(piece))
  await native.agent.files(userInfo().username).write(path, pieces, options)
  // strace may have ended before it recorded the agent's answer. `told` stands for the answer that the gate got.
  const operations: Operation[] = [...(await recorder.stop()), { kind: 'told' }]
  assert.ok(
    operations.some((each) => each.kind === 'write' && each.bytes.length > 0),
    'the contents were recorded',
  )
  const disk = new Disk(old === undefined ? {} : { [path]: old })
  const cuts = [...cutsOf(operations, native.directory, disk)]
  const answers = cuts.at(-1)!.told
  const remains = cuts.map(({ told, remains, after }) => ({ told, after, text: remains.get(name)?.toString() }))
  return { remains, answered: remains.filter(({ told }) => told === answers) }
}

const isWhole = (cuts: { text: string | undefined; after: string }[]) => {
  assert.ok(cuts.length > 0)
  for (const { text, after } of cuts) assert.equal(text, contents, after)
}

suite('uploads that a power cut interrupts', { skip: needsRoot }, () => {
  test('after a power cut, a new file is complete if its upload was answered, otherwise complete or absent', async () => {
    await using native = await NativeAgent.start('release')
    const { remains, answered } = await uploadAndCut(native, { name: 'new' })
    isWhole(answered)
    isWhole(remains.filter(({ text }) => text !== undefined))
  })

  test('an uploaded file in new directories survives a power cut once the upload was answered', async () => {
    await using native = await NativeAgent.start('release')
    isWhole((await uploadAndCut(native, { name: 'some/new/file', makeParents: true })).answered)
  })

  test('once an upload into an existing file is answered, the new contents survive a power cut', async () => {
    await using native = await NativeAgent.start('release')
    const old = 'what was there before, and longer'
    writeFileSync(join(native.directory, 'old'), old)
    isWhole((await uploadAndCut(native, { name: 'old', old })).answered)
  })

  test('a power cut leaves a whole program, old or new; once its upload was answered, it is the new program', async () => {
    await using native = await NativeAgent.start('release')
    const program = join(native.directory, 'program')
    copyFileSync('/bin/sleep', program)
    chmodSync(program, 0o755)
    const running = spawn(program, ['1000'])
    try {
      await once(running, 'spawn')
      const { remains, answered } = await uploadAndCut(native, { name: 'program', old: 'the old program' })
      isWhole(answered)
      isWhole(remains.filter(({ text }) => text !== 'the old program'))
      assert.equal(readFileSync(program, 'utf8'), contents)
    } finally {
      running.kill()
      await once(running, 'exit')
    }
  })
})
