// `alcove runner add`, `token`, `list`, `drain`, `lost`, `remove`: the operator's commands for the runners of a server.
import { createInterface } from 'node:readline/promises'
import { setTimeout } from 'node:timers/promises'
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

/**
 * Returns the command to type on the runner's machine. `hosts`: address on which control listens for hosts of other
 * machines.
 */
export const joinCommand = (token: string, { url, hosts }: { url: string; hosts?: string | undefined }): string =>
  hosts !== undefined && authorityHashIn(token) !== undefined
    ? `On the other machine, as root: ./alcove runner --join https://${hosts} --token ${token}`
    : `On this machine, as root: ./alcove runner --join ${url} --data DIRECTORY --token ${token}`

/**
 * Prints only the token on standard output, for scripts. Prints the command with which a host joins on standard error,
 * for people.
 */
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
  isEmptied: boolean
  silentSince?: string
  lostAt?: string
  givenUp: number
  leftovers: number
}

/** The words that the command line uses for states of a runner, by the API's names of these states. */
const words: Record<string, string> = { disabled: 'drained', unresponsive: 'silent', initializing: 'starting' }

const stateOf = ({ state, lostAt, silentSince }: Runner): string => {
  if (lostAt !== undefined) return 'lost'
  if (silentSince !== undefined && state !== 'disabled') return 'silent'
  return words[state] ?? state
}

/** Returns the remarks that `runner list` prints after the number of sandboxes of a runner. */
const remarksOf = ({ warm, isEmptied, silentSince, lostAt, givenUp, leftovers }: Runner): string => {
  const remarks = [
    ...(warm > 0 ? [`${warm} of them warm (nobody owns them yet)`] : []),
    ...(isEmptied ? ['being emptied'] : []),
    ...(silentSince === undefined ? [] : [`not heard since ${silentSince}`]),
    ...(lostAt === undefined ? [] : [`lost: ${givenUp} are in error, ${leftovers} can start elsewhere`]),
  ]
  return remarks.map((remark) => `, ${remark}`).join('')
}

/** Returns a heading and a line for each runner. Warm sandboxes are counted too, because their disks use space on the runner. */
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
  console.log(
    isDrained ? `${id} gets no new sandboxes. Its existing sandboxes stay.` : `${id} gets new sandboxes again.`,
  )
}

type Emptying = {
  isEmptied: boolean
  running: number
  left: number
  moving: number
  staying: { sandboxId: string; reason: string }[]
}

const sandboxes = (count: number): string => (count === 1 ? '1 sandbox' : `${count} sandboxes`)

/** While `drain --move` empties a runner: seconds between two requests to control for the progress. */
const lookAgainSeconds = 2

/**
 * Returns the lines to print when no more sandboxes can move, or when the emptying was stopped. Undefined while
 * sandboxes still move.
 */
export const endOfEmptying = (id: string, { isEmptied, left, staying }: Emptying): string[] | undefined => {
  if (!isEmptied) return [`${id} is no longer being emptied.`]
  if (left === 0) return [`${id} is empty. "alcove runner remove ${id}" takes it out of service.`]
  // Control lists at most 100 sandboxes that cannot be moved. If it lists fewer, all other sandboxes can be moved, and the emptying
  // goes on. If it lists 100, this command cannot know whether the other sandboxes can be moved, so it does not wait for them.
  if (left > staying.length && staying.length < 100) return undefined
  return [
    `${sandboxes(left)} cannot be moved from ${id}:`,
    ...staying.map(({ sandboxId, reason }) => `${sandboxId}  ${reason}`),
  ]
}

/**
 * Asks control to move all sandboxes of a runner to other runners, and prints the progress.
 * If this command ends earlier, control continues.
 *
 * A move ends the processes of running sandboxes. The command therefore asks for confirmation on a terminal.
 */
export const emptyRunner = async (directory: string, id: string, isAgreed: boolean): Promise<void> => {
  const path = `/runners/${encodeURIComponent(id)}`
  const look = () => askServer<Emptying>(directory, 'GET', `${path}/emptying`)
  const { running } = await look()
  console.log(
    `${sandboxes(running)} on ${id} ${running === 1 ? 'is' : 'are'} running. The move ends the processes and keeps the files.`,
  )
  if (running > 0 && !isAgreed && process.stdin.isTTY && !(await isConfirmed())) {
    console.log('Nothing is moved.')
    return
  }
  await askServer(directory, 'PATCH', `${path}/scheduling`, { unschedulable: true, move: true })
  for (let last = ''; ; ) {
    const now = await look()
    const end = endOfEmptying(id, now)
    if (end !== undefined) {
      for (const line of end) console.log(line)
      if (now.left > 0) process.exitCode = 1
      return
    }
    const said = `${sandboxes(now.left)} left, ${now.moving} moving, ${now.staying.length} cannot be moved`
    if (said !== last) console.log(said)
    last = said
    await setTimeout(lookAgainSeconds * 1000)
  }
}

const isConfirmed = async (): Promise<boolean> => {
  const asking = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return /^y(es)?$/i.test((await asking.question('Move them? [y/N] ')).trim())
  } finally {
    asking.close()
  }
}

export const loseRunner = async (directory: string, id: string): Promise<void> => {
  const { givenUp, leftovers } = await askServer<Runner>(directory, 'POST', `/runners/${encodeURIComponent(id)}/lost`)
  console.log(
    `${id} is lost. ${leftovers} of its sandboxes can be started elsewhere; ${givenUp} are in the state error.`,
  )
}

export const removeRunner = async (directory: string, id: string, force: boolean): Promise<void> => {
  await askServer(directory, 'DELETE', `/runners/${encodeURIComponent(id)}${force ? '?force=true' : ''}`)
  console.log(`${id} is removed.`)
}
