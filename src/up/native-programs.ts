// Builds the C programs of Alcove (agent, launcher) on this machine. If the source files have not changed, make(1) does nothing.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type CommandFailed, runCommand } from '#src/kit/run-command.ts'
import { Complaint } from './complaint.ts'

const code = resolve(import.meta.dirname, '../..')

export const buildNativePrograms = async (say: (line: string) => void): Promise<void> => {
  const build = async (name: string) => {
    const directory = join(code, name)
    if (!existsSync(join(directory, 'Makefile'))) return
    if (spawnSync('make', ['-C', directory, '--question'], { stdio: 'ignore' }).status === 0) return
    say(`Building ${name}/ …`)
    await runCommand(['make', '-C', directory], { timeoutMs: 600_000 }).catch((cause: CommandFailed) => {
      throw new Complaint(`make -C ${directory} failed:\n${cause.stderr}`, { cause })
    })
  }
  await Promise.all(['agent', 'native'].map(build))
}
