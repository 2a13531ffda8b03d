// Measures 50 creates at the same time from a snapshot with 64 MiB of its own data: on the host that made it, on a host that has
// fetched it, and on a host that must fetch it first. `node bench/travel.ts`, as root.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { addRunner, call, settingsOf, startHost, startServer, untilAnswer } from '#test/hosts/hosts.ts'
import { Network } from '#test/hosts/namespaces.ts'
import { keep, percentile, timed } from './samples.ts'

const creates = 50
const command = 'head -c 67108864 /dev/urandom > /home/daytona/data && sync && echo done'

await using network = await Network.open()
const [machine, second] = [await network.addHost('server'), await network.addHost('second')]
const env = await settingsOf(network)
const server = await startServer(machine, env)
await startHost(server, second, env, { token: await addRunner(server, 'second') })

const must = async (method: string, path: string, body?: unknown) => {
  const answer = await server.api(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}
const drain = (name: string, unschedulable: boolean) => must('PATCH', `/runners/${name}/scheduling`, { unschedulable })
const images = join(network.directory, 'archives/images')

/** Makes a snapshot on the server's own host and waits until it is in the store. */
const makeSnapshot = async (name: string, isInStore: () => boolean): Promise<void> => {
  await drain('second', true)
  await drain('local', false)
  const { id } = await must('POST', '/sandbox', { name: `origin-${name}` })
  const url = `http://${machine.address}:4601/toolbox/${id}/process/execute`
  await call(machine, server.key, 'POST', url, { command, timeout: 60 })
  await must('POST', `/sandbox/${id}/snapshot`, { name })
  await untilAnswer(
    () => server.api('GET', `/snapshots/${name}`),
    ({ body }) => body['state'] === 'active',
  )
  while (!isInStore()) await pause(50)
  // Waits a moment, because control learns later than this program that the snapshot is in the store.
  await pause(1000)
}

const createMany = async (snapshot: string) => {
  const each: number[] = []
  const total = await timed(() =>
    Promise.all(
      Array.from({ length: creates }, async () => {
        each.push(
          await timed(async () => {
            const { id } = await must('POST', '/sandbox', { snapshot })
            await untilAnswer(
              () => server.api('GET', `/sandbox/${id}`),
              ({ body }) => body['state'] === 'started',
            )
          }),
        )
      }),
    ),
  )
  const { items } = (await must('GET', '/sandbox?limit=200')) as { items: { id: string; snapshot: string }[] }
  for (const { id, snapshot: from } of items) if (from === snapshot) await must('DELETE', `/sandbox/${id}`)
  await pause(3000)
  return { total, each }
}

/** Returns how many images are complete in the store. The manifest of an image is written last. */
const stored = () =>
  existsSync(images) ? readdirSync(images).filter((name) => existsSync(join(images, name, 'archives'))).length : 0
await makeSnapshot('first', () => stored() === 1)
const here = await createMany('first')
await drain('second', false)
await drain('local', true)
await pause(5000)
const there = await createMany('first')

second.block(machine.address)
await makeSnapshot('second', () => stored() === 2)
await drain('local', true)
await drain('second', false)
second.unblock(machine.address)
await untilAnswer(
  () => server.api('GET', '/runners/second'),
  ({ body }) => body['state'] === 'ready' && body['silentSince'] === undefined,
)
const coming = await createMany('second')

for (const [name, { total, each }] of Object.entries({ here, there, coming })) {
  console.log(`${name.padEnd(8)} all ${total.toFixed(0)} ms, p50 of one ${percentile(each, 0.5).toFixed(0)} ms`)
}
console.log(
  `brought ÷ here ${(there.total / here.total).toFixed(2)}, coming ÷ here ${(coming.total / here.total).toFixed(2)}`,
)
console.log(keep('travel', { creates, here, there, coming }))
