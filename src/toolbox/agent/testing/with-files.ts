// For tests of file operations: an agent that runs outside a sandbox, its `Files` objects, and a directory of files.
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import type { Entry, FileContents } from '../agent.ts'
import { NativeAgent } from './native-agent.ts'

export const me = userInfo().username
export const content = async ({ stream }: FileContents): Promise<string> =>
  Buffer.concat(await stream.toArray()).toString()
export const refused = (errno: string) => ({ name: 'AgentRefused', stage: 'file', errno })
export const all = async (entries: AsyncIterable<Entry>): Promise<Map<string, Entry>> => {
  const byPath = new Map<string, Entry>()
  for await (const entry of entries) byPath.set(entry.path.toString('latin1'), entry)
  return byPath
}

/** Starts an agent, and makes a directory with every kind of file. The returned `files` calls the agent as the test's user. */
export const startWithFiles = async () => {
  const native = await NativeAgent.start()
  const at = (...names: string[]): string => join(native.directory, 'files', ...names)
  mkdirSync(at('deep', 'deeper', 'deepest'), { recursive: true })
  writeFileSync(at('plain'), 'plain text\n')
  writeFileSync(at('deep', 'deeper', 'file'), 'x')
  symlinkSync('plain', at('link'))
  symlinkSync('/etc', at('link-to-directory'))
  symlinkSync('nowhere', at('dangling'))
  execFileSync('mkfifo', [at('fifo')])
  return { native, files: native.agent.files(me), at, [Symbol.asyncDispose]: () => native[Symbol.asyncDispose]() }
}
