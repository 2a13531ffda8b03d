// Kills control many times between the commit of an event and the send of its webhook. Fails if a committed event did not arrive,
// an uncommitted event arrived, or an event came out of order. `node bench/webhook-kills.ts [kills] [moments]`. With `moments`,
// kills control at several moments before, during and after the send.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Moment, runKills } from '#test/control/webhook-kills.ts'

const kills = Number(process.argv[2] ?? 200)
const around: readonly Moment[] = [0, 2, 5, 0, 10, 20, 1, 40]
const placed = (index: number): Moment =>
  process.argv[3] === 'moments' ? (around[index % around.length] ?? 0) : 'held'

const began = new Date()
const counts = await runKills(
  Array.from({ length: kills }, (_, index) => placed(index)),
  console.log,
)
const seconds = Math.round((Date.now() - began.getTime()) / 1000)
const directory = join(import.meta.dirname, 'results')
mkdirSync(directory, { recursive: true })
const stamp = began.toISOString().slice(0, 19).replaceAll(':', '-')
writeFileSync(join(directory, `webhook-kills-${stamp}.json`), `${JSON.stringify({ seconds, ...counts }, null, 2)}\n`)
console.log(JSON.stringify({ seconds, ...counts }))
process.exit(0)
