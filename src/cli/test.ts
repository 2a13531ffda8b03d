// `alcove test`: starts scripts/test.ts, which developers can also start directly.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'

type Options = {
  check?: true
  name?: string
  faults?: true
  hosts?: true
  redTeam?: true
  seed?: string
  count?: string
}

const commandFor = (
  files: readonly string[],
  { check, name, faults, hosts, redTeam, seed, count }: Options,
): string[] => {
  if (redTeam) return ['red-team.ts']
  if (!faults)
    return ['test.ts', ...(check ? ['--check'] : []), ...(name === undefined ? [] : [`--name=${name}`]), ...files]
  return [
    'faults.ts',
    ...(hosts ? ['--hosts'] : []),
    ...(seed === undefined ? [] : ['--seed', seed]),
    ...(count === undefined ? [] : ['--count', count]),
  ]
}

export const test = async (files: readonly string[], options: Options): Promise<void> => {
  const [script = '', ...args] = commandFor(files, options)
  const path = resolve(import.meta.dirname, '../../scripts', script)
  const child = spawn(process.execPath, [path, ...args], { stdio: 'inherit' })
  // Ctrl-C sends a signal to all processes of the terminal. The tests then clean up, and this process waits for their end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [code] = (await once(child, 'exit')) as [number | null]
  process.exitCode = code ?? 1
}
