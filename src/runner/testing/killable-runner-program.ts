// `node killable-runner-program.ts INSTANCE DIRECTORY` makes a real host (test-host.ts) and runs the verbs that the test sends. It
// reports `begun` and `done` for each verb, until the test kills it.
import type { Assignment } from '#src/wire/runner-link.ts'
import { openTestHostIn } from './test-host.ts'

export type Order = { verb: 'start' | 'pause' | 'stop' | 'archive' | 'save' | 'destroy'; assignment: Assignment }

const [instance, directory] = process.argv.slice(2)
if (instance === undefined || directory === undefined)
  throw new Error('usage: killable-runner-program INSTANCE DIRECTORY')
const { host } = await openTestHostIn(instance, directory)

process.on('message', async ({ verb, assignment }: Order) => {
  process.send?.('begun')
  if (verb === 'destroy') await host.destroy(assignment.sandboxId, 'with archives')
  else await host[verb](assignment)
  process.send?.('done')
})
process.send?.('open')
