// Tests the agent as PID 1 of a real sandbox. Skipped without root.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import { TestHost } from '#src/runner/testing/test-host.ts'
import { needsRoot } from '#test/needs-root.ts'
import { type Agent, agentAt, type JobEvent } from './agent.ts'
import { until } from './testing/native-agent.ts'

const MiB = 1024 * 1024

suite('the agent as PID 1 of a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  let id: string
  let agent: Agent
  before(async () => {
    box = await TestHost.start()
    id = (await box.started()).sandboxId
    agent = agentAt(box.host.get(id)!.socketPath)
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const job = (jobId: string, script: string, user: string, ringBytes: number) => ({
    ...{ id: jobId, argv: ['/bin/sh', '-c', script], env: { PATH: '/bin' }, user, ringBytes },
  })
  const follow = async (jobId: string): Promise<{ text: string; lost: number; last: JobEvent | undefined }> => {
    const seen = { text: '', lost: 0, last: undefined as JobEvent | undefined }
    for await (const event of agent.jobs.attach(jobId, 0)) {
      if (event.type === 'output' && seen.text.length < 4096) seen.text += event.data
      if (event.type === 'truncated') seen.lost += event.lostBytes
      seen.last = event
    }
    return seen
  }

  test('root in a sandbox can neither end the agent nor read its memory and environment', async () => {
    const { bootId } = await agent.info()
    await box.run(id, 'kill -TERM 1; kill -KILL 1; kill -INT 1; kill -STOP 1; kill -HUP 1')
    for (const look of [
      'cat /proc/1/mem',
      'cat /proc/1/environ',
      'cat /proc/1/maps',
      'cat /proc/1/fd/0',
      'ls /proc/1/root/',
    ]) {
      const { exitCode, output } = await box.run(id, look)
      assert.ok(exitCode !== 0 && output.includes('Permission denied'), `${look}: ${output}`)
    }
    assert.equal((await agent.info()).bootId, bootId)
  })

  test('if a sandbox runs out of memory, the kernel kills commands before the agent', async () => {
    const score = (pid: number | string) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'))
    const inside = Number((await box.run(id, 'cat /proc/self/oom_score_adj')).output)
    assert.ok(score(box.pidOf(id)) < inside)
  })

  test('a terminal belongs to its user, and is the controlling terminal of its job', async () => {
    const script =
      'stat -c "%U %a" $(readlink /proc/self/fd/0 2>/dev/null || echo /dev/pts/0); echo word > /dev/tty; id -u'
    const spec = { ...job('terminal', script, 'daytona', MiB), terminal: { cols: 80, rows: 24 } }
    await agent.jobs.spawn(spec)
    const { text, last } = await follow('terminal')
    assert.equal(text, 'daytona 620\r\nword\r\n1000\r\n')
    assert.deepEqual(last, { type: 'exit', exitCode: 0, signal: null })
  })

  test('a job’s output can be larger than the sandbox’s memory, because it is stored on the disk', async () => {
    const total = 320 * MiB
    await agent.jobs.spawn(job('large', `dd if=/dev/zero bs=65536 count=${total / 65536}`, 'daytona', 256 * MiB))
    const { lost, last } = await follow('large')
    assert.deepEqual(last, { type: 'exit', exitCode: 0, signal: null })
    const record = (await agent.jobs.list()).find((entry) => entry.id === 'large')!
    assert.ok(record.endOffset > total && record.endOffset - record.startOffset === 256 * MiB)
    assert.ok(lost <= record.startOffset)
    await agent.jobs.remove('large')
  })

  test('a job that writes to a full disk loses output, reports the loss, and continues to run', async () => {
    await box.run(id, 'dd if=/dev/urandom of=/root/fill bs=1M count=3000', 'root')
    await agent.jobs.spawn(
      job('full', `dd if=/dev/zero bs=65536 count=${(64 * MiB) / 65536}; echo end`, 'root', 128 * MiB),
    )
    const { lost, last } = await follow('full')
    assert.deepEqual(last, { type: 'exit', exitCode: 0, signal: null })
    assert.ok(lost > 0)
    await agent.jobs.remove('full')
    const refused = agent.files('root').write('/root/more', [Buffer.alloc(8 * MiB)])
    await assert.rejects(refused, { stage: 'file', errno: /ENOSPC|EDQUOT/ })
    assert.equal((await box.run(id, 'ls -A /root')).output, 'fill')
    await box.run(id, 'rm /root/fill')
  })

  test('if the disk fills up, a session command loses output and reports it; earlier output stays intact', async () => {
    const { sessions } = agent
    const ringBytes = 16 * MiB
    await sessions.open({ id: 'disk', env: { PATH: '/bin' }, user: 'root', shell: 'sh', ringBytes })
    const attached = async (commandId: string) => {
      const seen = { wrong: 0, kept: 0, lost: 0, exitCode: -1 }
      for await (const event of sessions.attach('disk', commandId, 0)) {
        if (event.type === 'truncated') seen.lost += event.lostBytes
        if (event.type === 'exit') seen.exitCode = event.end?.exitCode ?? -1
        if (event.type !== 'output') continue
        seen.kept += event.data.length
        seen.wrong += event.data.filter((byte) => byte !== 0).length
      }
      return seen
    }
    const run = async (commandId: string, text: string) => {
      await sessions.exec('disk', { id: commandId, text, keepInput: false, echoInput: false })
      return await attached(commandId)
    }
    const write = (bytes: number) => `dd if=/dev/zero bs=65536 count=${bytes / 65536} 2> /dev/null`
    // Fill the disk between two outputs of the command. The disk is copy-on-write, so even overwriting the first output
    // needs free space.
    const fill = 'dd if=/dev/urandom of=/root/fill bs=1M count=3000 2> /dev/null'
    const filling = await run('filling', `${write(24 * MiB)}; ${fill}; ${write(24 * MiB)}`)
    assert.deepEqual([filling.exitCode, filling.kept + filling.lost, filling.wrong], [0, 48 * MiB, 0])
    // Read the output again: the call above followed the output live, and so also got parts that did not fit on the full disk.
    const filled = await attached('filling')
    assert.deepEqual([filled.exitCode, filled.kept + filled.lost, filled.wrong], [0, 48 * MiB, 0])
    assert.ok(filled.lost > 48 * MiB - ringBytes, `${filled.lost} bytes were lost`)
    await box.run(id, 'rm /root/fill')
    const roomy = await run('roomy', write(20 * MiB))
    assert.deepEqual([roomy.exitCode, roomy.kept + roomy.lost, roomy.wrong], [0, 20 * MiB, 0])
    assert.ok(roomy.kept >= ringBytes)
    await sessions.remove('disk')
  })

  test('a file call at the sandbox’s process limit fails with EAGAIN, and works again once processes end', async () => {
    const bomb = await agent.exec({
      argv: ['/bin/sh', '-c', 'while :; do sleep 1000 & done'],
      ...{ env: { PATH: '/bin' }, user: 'daytona', mergeOutput: true },
    })
    const deadline = Date.now() + 60_000
    let stage = ''
    while (stage === '' && Date.now() < deadline) {
      const tried = agent.files('daytona').stat('/')
      await tried.catch((error: { stage?: string; errno?: string }) => {
        stage = `${error.stage} ${error.errno}`
      })
    }
    assert.equal(stage, 'system EAGAIN')
    bomb.close()
    await assert.rejects(bomb.exit)
    // Wait until nearly all processes of the fork bomb have ended. Otherwise the next command could fail, too.
    const count = () => box.run(id, 'set -- /proc/[0-9]*; echo $#').then(({ output }) => Number(output))
    await until(
      () =>
        count().then(
          (left) => left < 20,
          () => false,
        ),
      'the end of all that was started',
    )
  })

  test('file calls act on the sandbox’s files with the permissions of the user that they name', async () => {
    const files = agent.files('daytona')
    await box.run(id, 'mkdir -m 777 /notes')
    await files.write('/notes/note', [Buffer.from('mine')])
    assert.equal((await box.run(id, 'cat /notes/note; stat -c %U /notes/note')).output, 'minedaytona')
    await assert.rejects(files.write('/etc/passwd', []), { stage: 'file', errno: 'EACCES' })
    await assert.rejects(files.read('/proc/1/environ'), { stage: 'file', errno: 'EACCES' })
    await assert.rejects(agent.files('root').read('/proc/1/environ'), { stage: 'file', errno: 'EACCES' })
  })

  // This test must be the last: it ends the sandbox.
  test('SIGTERM from the host to the agent ends the sandbox and its processes', async () => {
    const pid = box.pidOf(id)
    await agent.jobs.spawn(job('polite', 'sleep 1000 & wait', 'daytona', MiB))
    process.kill(pid, 'SIGTERM')
    await until(
      () => !existsSync(`/proc/${pid}`) || / [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')),
      'its end',
    )
    await assert.rejects(agent.info(), { name: 'AgentGone' })
  })
})
