// A program with the simulated users of the fault test of hosts (ring.ts), on a machine of their own. The users use sandboxes until
// standard input ends. Then the program checks every confirmed change, deletes all sandboxes, and prints the outcome as the last
// line.
//   node ring-users.ts URL KEY SEED WORKERS
import { Client } from '#test/faults/client.ts'
import { randomFrom } from '#test/faults/random.ts'
import { findDoubles, listAll, listSnapshots } from '#test/faults/ring.ts'
import { type Tally, Worker } from '#test/faults/worker.ts'

export type UsersOutcome = { verbs: [string, number][]; complaints: string[] }

const [url = '', key = '', seed = '', count = ''] = process.argv.slice(2)
const client = new Client({ url, key })
const tally: Tally = new Map()
const workers = Array.from(
  { length: Number(count) },
  (_, at) => new Worker({ client, random: randomFrom(Number(seed) + at), tally, name: `w${at}`, lookInto: () => [] }),
)

let isOver = false
process.stdin.once('end', () => {
  isOver = true
})
process.stdin.resume()
console.log('users begin')
await Promise.all(workers.map((worker) => worker.run(() => isOver)))
for (const worker of workers) await worker.settle()
const complaints = [...workers.flatMap((worker) => worker.complaints), ...client.wrong, ...(await findDoubles(client))]
for (const { id } of await listAll(client)) await client.sure('DELETE', `/sandbox/${id}`)
for (const { id } of await listSnapshots(client)) await client.sure('DELETE', `/snapshots/${id}`)
console.log(`outcome ${JSON.stringify({ verbs: [...tally], complaints } satisfies UsersOutcome)}`)
process.exit(0)
