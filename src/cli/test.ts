// `alcove test`: the test runner is a script of its own, so that it can be read and run without the command line.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'

export const test = async (files: readonly string[], { check }: { check: boolean }): Promise<void> => {
  const script = resolve(import.meta.dirname, '../../scripts/test.ts')
  const child = spawn(process.execPath, [script, ...(check ? ['--check'] : []), ...files], { stdio: 'inherit' })
  // Ctrl-C reaches the whole group; the tests clean up and end by themselves, and we end with them.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [code] = (await once(child, 'exit')) as [number | null]
  process.exitCode = code ?? 1
}
