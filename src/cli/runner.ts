// `alcove runner add`, `token`, `list`, `drain`, `remove`: the operator's commands for the runners of a server.
import { authorityHashIn } from '#src/wire/hosts.ts'
import { askServer, serverOf } from './ask-server.ts'

export const addRunner = async (directory: string, id: string, regionId: string | undefined): Promise<void> => {
  const { apiKey } = await askServer<{ apiKey: string }>(directory, 'POST', '/runners', {
    name: id,
    ...(regionId === undefined ? {} : { regionId }),
  })
  printToken(directory, apiKey)
}

export const renewToken = async (directory: string, id: string): Promise<void> => {
  const { apiKey } = await askServer<{ apiKey: string }>(directory, 'POST', `/runners/${encodeURIComponent(id)}/token`)
  printToken(directory, apiKey)
}

/** Returns what to type where the runner will be. `hosts`: where control listens for hosts of the network. */
export const joinCommand = (token: string, { url, hosts }: { url: string; hosts?: string | undefined }): string =>
  hosts !== undefined && authorityHashIn(token) !== undefined
    ? `On the other machine, as root: ./alcove runner --join https://${hosts} --token ${token}`
    : `On this machine, as root: ./alcove runner --join ${url} --data DIRECTORY --token ${token}`

/** Prints the token alone on standard output, for scripts, and the command for people on standard error. */
const printToken = (directory: string, token: string): void => {
  process.stdout.write(`${token}\n`)
  console.error(joinCommand(token, serverOf(directory)))
}

type Runner = {
  id: string
  region: string
  state: string
  sandboxes: number
  warm: number
  silentSince?: string
  lostAt?: string
  givenUp: number
  leftovers: number
}

/** Words of the command line for the states of a runner, as the API calls them. */
const words: Record<string, string> = { disabled: 'drained', unresponsive: 'silent', initializing: 'starting' }

const stateOf = ({ state, lostAt, silentSince }: Runner): string => {
  if (lostAt !== undefined) return 'lost'
  if (silentSince !== undefined && state !== 'disabled') return 'silent'
  return words[state] ?? state
}

/** What a line says after the number of sandboxes. */
const remarksOf = ({ warm, silentSince, lostAt, givenUp, leftovers }: Runner): string => {
  const remarks = [
    ...(warm > 0 ? [`of which ${warm} warm, of nobody yet`] : []),
    ...(silentSince === undefined ? [] : [`not heard since ${silentSince}`]),
    ...(lostAt === undefined ? [] : [`lost: ${givenUp} are errors, ${leftovers} can start elsewhere`]),
  ]
  return remarks.map((remark) => `, ${remark}`).join('')
}

/**
 * Returns a heading and a line for each runner. The number of sandboxes includes warm sandboxes, which nobody owns yet,
 * because their disks use the runner too.
 */
export const runnerLines = (runners: readonly Runner[]): string[] => {
  const line = (id: string, region: string, state: string, sandboxes: string) =>
    `${id.padEnd(20)} ${region.padEnd(12)} ${state.padEnd(10)} ${sandboxes}`
  return [
    line('RUNNER', 'REGION', 'STATE', 'SANDBOXES'),
    ...runners.map((runner) =>
      line(runner.id, runner.region, stateOf(runner), `${runner.sandboxes}${remarksOf(runner)}`),
    ),
  ]
}

export const listRunners = async (directory: string): Promise<void> => {
  for (const line of runnerLines(await askServer<Runner[]>(directory, 'GET', '/runners'))) console.log(line)
}

export const drainRunner = async (directory: string, id: string, isDrained: boolean): Promise<void> => {
  await askServer(directory, 'PATCH', `/runners/${encodeURIComponent(id)}/scheduling`, {
    unschedulable: isDrained,
  })
  console.log(isDrained ? `${id} gets no new sandboxes; those that it has go on.` : `${id} gets new sandboxes again.`)
}

export const loseRunner = async (directory: string, id: string): Promise<void> => {
  const { givenUp, leftovers } = await askServer<Runner>(directory, 'POST', `/runners/${encodeURIComponent(id)}/lost`)
  console.log(`${id} is lost. ${leftovers} of its sandboxes can be started elsewhere; ${givenUp} are errors.`)
}

export const removeRunner = async (directory: string, id: string, force: boolean): Promise<void> => {
  await askServer(directory, 'DELETE', `/runners/${encodeURIComponent(id)}${force ? '?force=true' : ''}`)
  console.log(`${id} is removed.`)
}
