// `alcove runner add`, `list`, `drain`, `remove`: what the operator does with the runners of a server.
import { askServer } from './ask-server.ts'

export const addRunner = async (directory: string, id: string, regionId: string | undefined): Promise<void> => {
  const { token } = await askServer<{ token: string }>(directory, 'POST', '/runners', {
    id,
    ...(regionId === undefined ? {} : { regionId }),
  })
  process.stdout.write(`${token}\n`)
}

type Runner = { id: string; regionId: string; state: string; sandboxes: number; lastHeartbeatAt: string | null }

export const listRunners = async (directory: string): Promise<void> => {
  for (const { id, regionId, state, sandboxes } of await askServer<Runner[]>(directory, 'GET', '/runners'))
    console.log(`${id.padEnd(20)} ${regionId.padEnd(12)} ${state.padEnd(14)} ${sandboxes} sandboxes`)
}

export const drainRunner = async (directory: string, id: string, isDrained: boolean): Promise<void> => {
  await askServer(directory, 'PATCH', `/runners/${encodeURIComponent(id)}`, { isDrained })
}

export const removeRunner = async (directory: string, id: string, force: boolean): Promise<void> => {
  await askServer(directory, 'DELETE', `/runners/${encodeURIComponent(id)}${force ? '?force=true' : ''}`)
}
