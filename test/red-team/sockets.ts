// Attacks by somebody who controls an unprivileged program of the server: on the sockets of the agents, and by requests to the
// runner as the gate sends them.
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { users } from '#src/kit/confined.ts'
import { Frames, frameOf } from '#src/kit/length-frames.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { type Attack, unless } from './attack.ts'

/** Connects to a unix socket with only the rights of the user `uid`. */
const openAs = (uid: number, path: string): Socket => {
  const groups = process.getgroups?.() ?? []
  process.setgroups?.([])
  process.setegid?.(uid)
  process.seteuid?.(uid)
  try {
    return connect({ path, allowHalfOpen: true }).on('error', () => {})
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
    process.setgroups?.(groups)
  }
}

const opens = async (uid: number, path: string): Promise<boolean> => {
  const socket = openAs(uid, path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

const nobody = 65_534
const hash = 'a'.repeat(32)

/** Messages that the runner must refuse: they ask for something that no gate may do, or are malformed. */
const tooMuch: readonly string[] = [
  '{"ask":"start","sandboxId":"box"}',
  '{"ask":"exec","sandboxId":"box","argv":["id"]}',
  '{"ask":"measure","sandboxId":"../../secrets"}',
  '{"ask":"measure","sandboxId":"box","path":"/etc/shadow"}',
  `{"ask":"put-context","organizationId":"../../x","hash":"${hash}"}`,
  `{"ask":"list-contexts","organizationId":"x","beginning":"../"}`,
  `{"ask":"put-part","organizationId":"x","hash":"${hash}","uploadId":"../x","part":1}`,
  '{"ask":"compile","format":"--plugin"}',
  '[',
  `${'['.repeat(100_000)}`,
]

/** Sends a message to the runner and returns the answer. Returns `undefined` if the runner closes the connection. */
const answerTo = async (path: string, message: Uint8Array): Promise<unknown> => {
  const socket = openAs(users.gate, path)
  try {
    await once(socket, 'connect')
    socket.write(message)
    const answer = await new Frames(socket, 1024 * 1024).next()
    return answer === undefined ? undefined : JSON.parse(String(answer))
  } finally {
    socket.destroy()
  }
}

export const attacksOnSockets: readonly Attack[] = [
  {
    name: 'agents and the runner, called by other programs than the gate',
    boundary: 'API → host',
    try: async ({ platform, box }) => {
      const { agentSockets, runnerSocket } = dataDirectoryAt(platform.data)
      const ofBox = readdirSync(agentSockets).find((name) => name.startsWith(box.id))
      if (ofBox === undefined) throw new Error('the socket of the agent is not where it should be')
      const paths = [join(agentSockets, ofBox), runnerSocket]
      const others = Object.entries({ ...users, nobody }).filter(([name]) => name !== 'gate')
      const got: string[] = []
      for (const path of paths) {
        if (!(await opens(users.gate, path))) throw new Error(`not even the gate can open ${path}`)
        for (const [name, uid] of others) if (await opens(uid, path)) got.push(`${name} opens ${path}`)
      }
      return unless(got, `${others.length} users cannot open them`)
    },
  },
  {
    name: 'a gate that is taken over asks the runner for more than it may have',
    boundary: 'toolbox caller → toolbox',
    try: async ({ platform }) => {
      const { runnerSocket } = dataDirectoryAt(platform.data)
      const pid = await platform.pidOf('runner')
      const got: string[] = []
      for (const text of tooMuch) {
        const answer = await answerTo(runnerSocket, frameOf(Buffer.from(text)))
        if (answer !== undefined && !('refused' in (answer as object))) got.push(text.slice(0, 60))
      }
      const announced = Buffer.alloc(64)
      announced.writeUInt32LE(2 ** 31)
      const answer = (await answerTo(runnerSocket, announced)) as object | undefined
      if (answer !== undefined && !('refused' in answer)) got.push('a message of 2 GiB')
      if ((await platform.pidOf('runner')) !== pid) got.push('the runner ended')
      return unless(got, `${tooMuch.length + 1} requests are refused`)
    },
  },
]
