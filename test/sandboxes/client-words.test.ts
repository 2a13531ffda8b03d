// Some packages that use the SDK search error messages for words. The errors of a real server must have the words for which
// `@computesdk/daytona` 1.7.32, `@mastra/daytona` 0.4.1 and `@langchain/daytona` 0.1.2 search. guide-frameworks.test.ts runs these
// packages.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Daytona, type Sandbox } from '@daytona/sdk'
import { type Platform, platform } from './harness.ts'

/** Returns the kind of failure that a framework, such as Mastra, recognizes by words in the error's message. */
type Reading = (error: Error) => string | undefined

const includes = (error: Error, ...words: string[]) => words.some((word) => error.message.includes(word))

const computeSdk = {
  create: ((error) => {
    if (includes(error, 'unauthorized', 'API key')) return 'authentication'
    return includes(error, 'quota', 'limit') ? 'quota' : undefined
  }) satisfies Reading,
  get: ((error) => (includes(error, 'not found', '404') ? 'gone' : undefined)) satisfies Reading,
}

const deadSandbox = [
  /sandbox is not running/i,
  /sandbox already destroyed/i,
  /sandbox.*not found/i,
  /failed to resolve container IP/i,
  /is the sandbox started/i,
]
const mastra: Reading = (error) => (deadSandbox.some((pattern) => pattern.test(String(error))) ? 'dead' : undefined)

const langChain = {
  execute: ((error) => (includes(error, 'timeout') ? 'timed out' : undefined)) satisfies Reading,
  files: (({ message }) => {
    const text = message.toLowerCase()
    if (text.includes('not found') || text.includes('enoent')) return 'file_not_found'
    if (text.includes('permission') || text.includes('eacces')) return 'permission_denied'
    return text.includes('directory') || text.includes('eisdir') ? 'is_directory' : 'invalid_path'
  }) satisfies Reading,
}

const failureOf = async (work: () => Promise<unknown>): Promise<Error> => {
  try {
    await work()
  } catch (error) {
    assert.ok(error instanceof Error)
    return error
  }
  return assert.fail('it did not fail')
}

const reads = async (work: () => Promise<unknown>, reading: Reading, wanted: string | undefined) => {
  const error = await failureOf(work)
  assert.equal(reading(error), wanted, error.message)
}

suite('programs that search for words in errors', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform()
    daytona = new Daytona({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })
    sandbox = await daytona.create({ name: 'words' })
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  test('the framework ComputeSDK can tell a wrong API key and an exceeded quota from all other errors', async () => {
    const stranger = new Daytona({ apiKey: 'dtn_nobody', apiUrl: `${alcove.url}/api` })
    await reads(() => stranger.create(), computeSdk.create, 'authentication')
    const large = { image: 'debian:12', resources: { cpu: 1000, memory: 9999, disk: 99_999 } }
    await reads(() => daytona.create(large), computeSdk.create, 'quota')
    await reads(() => daytona.create({ name: 'words' }), computeSdk.create, undefined)
    await reads(() => daytona.create({ snapshot: 'none' }), computeSdk.create, undefined)
  })

  test('the framework LangChain can see from an error that a call timed out, or why a file call failed', async () => {
    const { fs, process } = sandbox
    await reads(() => process.executeCommand('sleep 9', undefined, undefined, 1), langChain.execute, 'timed out')
    const contents = Buffer.from('x')
    for (const [path, wanted] of [
      ['/tmp/none', 'file_not_found'],
      ['/etc/shadow', 'permission_denied'],
      ['/tmp', 'is_directory'],
      ['/etc/passwd/below', 'is_directory'],
    ] as const) {
      await reads(() => fs.downloadFile(path), langChain.files, wanted)
    }
    await reads(() => fs.uploadFile(contents, '/root/x'), langChain.files, 'permission_denied')
    await reads(() => fs.uploadFile(contents, '/tmp'), langChain.files, 'is_directory')
    await reads(() => fs.createFolder('/root/x/y', '755'), langChain.files, 'permission_denied')
  })

  test('if a call to a running sandbox fails, the framework Mastra does not conclude that the sandbox ended', async () => {
    const { fs, process } = sandbox
    await reads(() => fs.downloadFile('/tmp/sandbox/none'), mastra, undefined)
    await reads(() => fs.uploadFile(Buffer.from('x'), '/root/sandbox'), mastra, undefined)
    await reads(() => process.getSession('none'), mastra, undefined)
    await reads(() => process.executeCommand('sleep 9', undefined, undefined, 1), mastra, undefined)
    await reads(() => daytona.create({ name: 'words' }), mastra, undefined)
  })

  test('any call to a stopped sandbox fails with an error that makes the framework Mastra start the sandbox', async () => {
    await sandbox.stop()
    const { fs, process, git, codeInterpreter } = sandbox
    const terminal = async () => {
      const handle = await process.createPty({ id: 'p', onData: () => undefined })
      await handle.waitForConnection()
    }
    for (const step of [
      () => process.createSession('s'),
      () => process.executeCommand('true'),
      () => process.codeRun('1'),
      () => fs.listFiles('/tmp'),
      () => fs.uploadFile(Buffer.from('x'), '/tmp/x'),
      () => git.status('/tmp'),
      () => codeInterpreter.runCode('1'),
      terminal,
    ]) {
      await reads(step, mastra, 'dead')
    }
    await sandbox.start()
    assert.equal((await process.executeCommand('echo awake')).result, 'awake\n')
  })

  test('the frameworks ComputeSDK, LangChain and Mastra can see from an error that the sandbox is deleted', async () => {
    const { id, process, codeInterpreter } = sandbox
    await sandbox.delete(60, true)
    await reads(() => daytona.get(id), computeSdk.get, 'gone')
    await reads(() => daytona.get('words'), computeSdk.get, 'gone')
    await reads(() => sandbox.delete(), computeSdk.get, 'gone')
    for (const step of [() => process.executeCommand('true'), () => codeInterpreter.runCode('1')]) {
      await reads(step, mastra, 'dead')
    }
  })
})
