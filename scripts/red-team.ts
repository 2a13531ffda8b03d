// `alcove test --red-team`: starts a temporary server, and runs the attacks on it that SECURITY.md lists.
// It takes at most three minutes, and needs resources for two sandboxes.
// Exit code 1: an attack succeeded.
import { type Row, runAttacks } from '#test/red-team/attack.ts'
import { attacks } from '#test/red-team/attacks.ts'
import { attackOnKernelMemory } from '#test/red-team/kernel-memory.ts'
import { createBox } from '#test/sandboxes/box.ts'
import { platform } from '#test/sandboxes/harness.ts'

const mostMs = 3 * 60_000

if (process.getuid?.() !== 0) {
  console.error('alcove: the attacks need sandboxes, and those need root: sudo ./alcove test --red-team')
  process.exit(1)
}

const all = [...attacks, attackOnKernelMemory]
const widest = Math.max(...all.map(({ boundary }) => boundary.length))
const say = ({ result, boundary, name, sentence }: Row) =>
  console.log(`${result.padEnd(18)}  ${boundary.padEnd(widest)}  ${name}: ${sentence}`)

console.error('Starting a server of its own …')
await using alcove = await platform({ own: true })
await using box = await createBox(alcove)
await using root = await createBox(alcove, { user: 'root' })
const rows = await runAttacks(all, { platform: alcove, box, root }, { untilMs: Date.now() + mostMs, say })
const count = (result: Row['result']) => rows.filter((row) => row.result === result).length
console.log(`${count('held')} held, ${count('not held')} not held, ${count('could not be tried')} could not be tried`)
process.exitCode = count('not held') > 0 ? 1 : 0
