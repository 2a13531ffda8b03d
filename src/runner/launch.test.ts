// The launcher as it is built. No step here needs root but the ones that say so.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { LaunchFailed, runSteps, step } from './launch.ts'
import { builtLauncher } from './testing/test-host.ts'

const self = process.getuid?.() ?? 0

suite('the launcher', () => {
  let directory: string
  let launcher: string
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'alcove-launch-'))
    launcher = builtLauncher()
  })
  after(() => rmSync(directory, { recursive: true, force: true }))

  const failsWith = (steps: Parameters<typeof runSteps>[1], message: RegExp) =>
    assert.rejects(runSteps(launcher, steps), (error) => error instanceof LaunchFailed && message.test(error.message))

  test('steps run in order and may be repeated', async () => {
    const inner = join(directory, 'inner')
    const steps = [
      step.directory(inner, self, 0o750),
      step.file(join(inner, 'always'), self, 'one'),
      step.newFile(join(inner, 'once'), self, 'one'),
    ]
    await runSteps(launcher, steps)
    await runSteps(launcher, [
      ...steps,
      step.file(join(inner, 'always'), self, 'two'),
      step.newFile(join(inner, 'once'), self, 'two'),
    ])
    assert.equal(statSync(inner).mode & 0o777, 0o750)
    assert.equal(readFileSync(join(inner, 'always'), 'utf8'), 'two')
    assert.equal(readFileSync(join(inner, 'once'), 'utf8'), 'one')
  })

  test('the first step that fails is named, with its reason, and nothing comes after it', async () => {
    const after = join(directory, 'after')
    await failsWith(
      [step.directory(join(directory, 'no/such'), self, 0o700), step.directory(after, self, 0o700)],
      /^directory: No such file or directory \(.*no\/such\)$/,
    )
    assert.throws(() => statSync(after))
    await failsWith([step.listen(`/${'x'.repeat(200)}`)], /^listen: the path of the socket is too long$/)
    await failsWith([['nonsense']], /^nonsense: no such step$/)
    await failsWith([['file', 'too few']], /^file: too few arguments$/)
    await failsWith([step.exec(['/no/such/program'])], /^exec: No such file or directory/)
  })

  test('shared memory of the host itself is never touched', async () => {
    await failsWith([step.sharedMemory(process.pid, 4096)], /^shm: this is no sandbox$/)
  })

  test('a file is never written through a link', async () => {
    const link = join(directory, 'link')
    const target = join(directory, 'target')
    await runSteps(launcher, [step.exec(['ln', '-s', target, link])])
    await failsWith([step.file(link, self, 'x')], /^file: Too many levels of symbolic links/)
    assert.throws(() => statSync(target))
  })

  test('what it becomes has the listening socket as descriptor 3 and no other of ours', async () => {
    const socket = join(directory, 'a.sock')
    const note = join(directory, 'pid')
    const running = runSteps(launcher, [
      step.listen(socket),
      step.exec(['sh', '-c', `echo $$ > ${note}; exec sleep 1000`]),
    ])
    const ended = assert.rejects(running, LaunchFailed)
    const read = (path: string) => {
      try {
        return readFileSync(path, 'utf8').trim()
      } catch {
        return ''
      }
    }
    while (read(`/proc/${read(note)}/comm`) !== 'sleep') await new Promise(setImmediate)
    const descriptors = `/proc/${read(note)}/fd`
    const open = readdirSync(descriptors).map((fd) => `${fd} ${readlinkSync(join(descriptors, fd))}`)
    // Nobody accepts, and still the connection is there: it waits in the backlog.
    const connection = createConnection(socket)
    await once(connection, 'connect')
    connection.destroy()
    process.kill(Number(read(note)), 'SIGKILL')
    await ended
    assert.deepEqual(
      open.map((descriptor) => descriptor.replace(/\[\d+\]/, '')),
      ['0 /dev/null', '1 /dev/null', '2 /dev/null', '3 socket:'],
    )
  })
})
