import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { identityOf, waitUntilGone } from '#src/kit/process-identity.ts'
import { confined } from './confine.ts'

const needsRoot = process.getuid?.() === 0 ? false : 'giving root away needs root'
const uid = 61099

suite('a confined program', { skip: needsRoot }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-confine-'))
  chmodSync(scratch, 0o711)
  after(() => rmSync(scratch, { recursive: true, force: true }))

  const closed = join(scratch, 'closed', 'code')
  const open = join(scratch, 'open')
  mkdirSync(closed, { recursive: true })
  mkdirSync(open)
  chmodSync(join(scratch, 'closed'), 0o700)
  writeFileSync(join(closed, 'hello'), 'hello')

  const run = (script: string) => {
    const views = [{ source: closed, at: open }]
    const [file = '', ...args] = confined({ command: ['sh', '-c', script], uid, views, mayBindLowPorts: false })
    const { stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' })
    return `${stdout}${stderr}`.trim()
  }

  test('has its own uid and gid, no groups, no capabilities and can gain none', () => {
    assert.equal(run('id -u; id -g; id -G'), `${uid}\n${uid}\n${uid}`)
    const status = run('cat /proc/self/status')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`${set}:\t0+\n`))
    assert.match(status, /NoNewPrivs:\t1/)
  })

  test('reads the code at its view although the real place is closed to it, and cannot write there', () => {
    assert.equal(run(`cat ${open}/hello`), 'hello')
    assert.match(run(`cat ${closed}/hello`), /Permission denied/)
    assert.match(run(`touch ${open}/new`), /Read-only file system/)
  })

  test('leaves no mount on the host', () => {
    run('true')
    assert.equal(readFileSync('/proc/self/mountinfo', 'utf8').includes(open), false)
  })

  test('ends when its parent is killed', async () => {
    const [file = '', ...args] = confined({ command: ['sleep', '600'], uid, views: [], mayBindLowPorts: false })
    const script = `
      const { spawn } = require('node:child_process')
      const child = spawn(${JSON.stringify(file)}, ${JSON.stringify(args)}, { stdio: 'ignore', detached: true })
      const { readFileSync } = require('node:fs')
      const tell = () => readFileSync('/proc/' + child.pid + '/comm', 'utf8') === 'sleep\\n' ? console.log(child.pid) : setTimeout(tell, 5)
      tell()`
    const parent = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [said] = (await once(parent.stdout, 'data')) as [Buffer]
    const sleeper = identityOf(Number(said.toString()))
    parent.kill('SIGKILL')
    assert.equal(await waitUntilGone(sleeper, 20_000), true)
  })
})
