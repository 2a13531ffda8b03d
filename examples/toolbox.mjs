// Everything an agent does inside a sandbox: files, sessions, a terminal, Python that keeps its state, git, a web server.
//
//   npm install @daytona/sdk@0
//   DAYTONA_API_URL=http://127.0.0.1:4600/api DAYTONA_API_KEY=$(./alcove key) node examples/toolbox.mjs
import assert from 'node:assert/strict'
import { Daytona } from '@daytona/sdk'

const daytona = new Daytona()
const sandbox = await daytona.create()
try {
  const { fs, process, codeInterpreter, git } = sandbox

  await fs.createFolder('notes', '755')
  await fs.uploadFile(Buffer.from('one two\nthree two\n'), 'notes/a.txt')
  await fs.replaceInFiles(['notes/a.txt'], 'two', '2')
  assert.equal(String(await fs.downloadFile('notes/a.txt')), 'one 2\nthree 2\n')
  assert.deepEqual(
    (await fs.listFiles('notes')).map(({ name }) => name),
    ['a.txt'],
  )
  console.log('files: written, changed, read')

  await process.createSession('work')
  await process.executeSessionCommand('work', { command: 'cd notes && export COLOUR=green' })
  const kept = await process.executeSessionCommand('work', { command: 'pwd; echo $COLOUR; echo oops >&2; false' })
  assert.deepEqual([kept.stdout, kept.stderr, kept.exitCode], ['/home/daytona/notes\ngreen\n', 'oops\n', 1])
  const asked = await process.executeSessionCommand('work', { command: 'read name; echo "hi $name"', runAsync: true })
  let followed = ''
  const following = process.getSessionCommandLogs(
    'work',
    asked.cmdId,
    (text) => {
      followed += text
    },
    () => {},
  )
  await process.sendSessionCommandInput('work', asked.cmdId, 'Ada')
  await following
  assert.match(followed, /hi Ada/)
  await process.deleteSession('work')
  console.log('sessions: kept their state, answered input')

  let shown = ''
  const terminal = await process.createPty({
    id: 'tty',
    cols: 80,
    rows: 24,
    onData: (data) => {
      shown += new TextDecoder().decode(data)
    },
  })
  await terminal.waitForConnection()
  await terminal.resize(132, 50)
  await terminal.sendInput('stty size; exit 3\n')
  assert.equal((await terminal.wait()).exitCode, 3)
  assert.match(shown, /50 132/)
  const endless = await process.createPty({ id: 'endless', onData: () => {} })
  await endless.waitForConnection()
  await endless.kill()
  assert.equal((await endless.wait()).exitCode, 137)
  console.log('terminals: typed, resized, ended, killed')

  const own = await codeInterpreter.createContext()
  await codeInterpreter.runCode('x = 20', { context: own })
  assert.equal((await codeInterpreter.runCode('print(x + 1)', { context: own })).stdout, '21\n')
  assert.equal((await codeInterpreter.runCode('print(x)')).error?.name, 'NameError')
  await assert.rejects(codeInterpreter.runCode('while True: pass', { timeout: 1 }), /timeout/i)
  await codeInterpreter.deleteContext(own)
  console.log('interpreter: kept its state, apart from the others')

  await process.executeCommand('git init -q -b main notes && git -C notes config user.email a@example.com')
  await git.add('notes', ['a.txt'])
  await git.commit('notes', 'First note', 'Ada', 'ada@example.com')
  assert.deepEqual((await git.branches('notes')).branches, ['main'])
  console.log('git: committed')

  await process.executeCommand('setsid python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &', 'notes')
  await process.executeCommand(
    'until curl -sf http://127.0.0.1:8000/ >/dev/null; do sleep 0.1; done',
    undefined,
    {},
    30,
  )
  const { url, token } = await sandbox.getPreviewLink(8000)
  // On a server of one's own, the host name of `url` is below localhost, which Node cannot resolve. The path of the
  // preview works everywhere.
  const path = new URL(`/preview/${sandbox.id}/8000/`, sandbox.toolboxProxyUrl)
  const page = await fetch(path, { headers: { 'x-daytona-preview-token': token } })
  assert.match(await page.text(), /a\.txt/)
  console.log(`preview: read; a browser would open ${url}?DAYTONA_SANDBOX_AUTH_KEY=${token} while the sandbox is there`)
} finally {
  await sandbox.delete()
}
