// Keeps the programs of a joined host running, as `up` does with the programs of a server.
import { join } from 'node:path'
import { identityOf } from '#src/kit/process-identity.ts'
import { commandFor } from './command-for.ts'
import { Complaint } from './complaint.ts'
import type { DataDirectory } from './data-directory.ts'
import type { Display } from './display.ts'
import { upStateWriter, writeUpState } from './state-file.ts'
import { type Program, Supervised } from './supervised.ts'

type JoinedParts = {
  data: DataDirectory
  controlUrl: URL
  runner: { id: string; regionId: string }
  programs: readonly Program[]
  display: Pick<Display, 'say' | 'endProgress'>
  stopAsked: Promise<string>
}

const graceMs = 4000

/**
 * Keeps the programs of a joined host running until somebody stops this process. Throws an error for the operator if the server
 * refuses the runner. In both cases, the host's sandboxes keep running.
 */
export const keepJoined = async ({ data, controlUrl, runner, programs, display, stopAsked }: JoinedParts) => {
  const refused = Promise.withResolvers<never>()
  // Returns the content for the state file. The file outlives this process, and shows other commands that a joined runner has this
  // data directory.
  const current = () => ({
    ...identityOf(process.pid),
    ...{
      host: controlUrl.hostname,
      port: Number(controlUrl.port || (controlUrl.protocol === 'https:' ? 443 : 80)),
      url: controlUrl.origin,
    },
    programs: all.map(({ state }) => state),
  })
  const write = upStateWriter(data.stateFile, display.say)
  const save = () => write(current())
  const onChange = ({ state: { name, state, lastEnd } }: Supervised) => {
    save()
    if (state === 'waiting') {
      display.say(`The ${name} ended (${lastEnd}); starting it again. Log: ${join(data.log, `${name}.log`)}`)
    }
    if (state === 'refused') {
      const why = `${controlUrl.origin} no longer accepts runner "${runner.id}", for example after "alcove runner remove"`
      const what = `Join again with a new token ("alcove runner add" on the server prints one), or remove this runner and its sandboxes: ${commandFor('purge', data.path)}`
      refused.reject(new Complaint(`${why}. Its sandboxes keep running. ${what}`))
    }
  }
  const all = programs.map((program) => new Supervised(program, onChange))
  // Write the state file before any program is started. If the file cannot be written, no program may start.
  writeUpState(data.stateFile, current())
  for (const each of all) each.begin()
  try {
    const ready = Promise.all(all.map(({ firstReady }) => firstReady)).then(() => 'ready')
    const outcome = await Promise.race([ready, stopAsked, refused.promise])
    display.endProgress()
    if (outcome !== 'ready') return
    process.stdout.write(`Runner "${runner.id}" has joined ${controlUrl.origin} in region "${runner.regionId}".\n`)
    display.say(`Stopping (${await Promise.race([stopAsked, refused.promise])}) …`)
  } finally {
    display.endProgress()
    await Promise.all(all.map((each) => each.stop(graceMs)))
    save()
  }
}
