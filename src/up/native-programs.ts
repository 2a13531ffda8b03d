// Builds the C programs (agent, launcher) on this machine. make(1) does nothing if their source files have not changed.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { Complaint } from './complaint.ts'

const code = resolve(import.meta.dirname, '../..')

export const buildNativePrograms = (say: (line: string) => void): void => {
  for (const name of ['agent', 'native']) {
    const directory = join(code, name)
    if (!existsSync(join(directory, 'Makefile'))) continue
    if (spawnSync('make', ['-C', directory, '--question'], { stdio: 'ignore' }).status === 0) continue
    say(`Building ${name}/ …`)
    const { status, stdout, stderr } = spawnSync('make', ['-C', directory, `--jobs=${availableParallelism()}`], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Complaint(`make -C ${directory} failed:\n${stdout}${stderr}`)
  }
}
