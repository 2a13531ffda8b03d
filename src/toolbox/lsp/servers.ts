// The language servers of all sandboxes: at most one per language and project. The servers end with the gate, and callers then
// start new ones.
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import { StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { asTold } from '../refusals.ts'
import { callersFault } from '../running/start-failure.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { absolute, uriOf } from './files.ts'
import { type Language, programsFor } from './programs.ts'
import type { ServerRequest } from './schemas.ts'
import { isMissing, LanguageServer } from './server.ts'

/** Maximum number of language servers of one sandbox. Each may use hundreds of MiB of the sandbox's memory. */
export const mostServers = 8
/** A server that gets no call for this time is ended. */
const idleMs = 15 * 60_000

const places = new Budget({ each: mostServers })

type Entry = {
  starting: Promise<LanguageServer>
  server?: LanguageServer
  idle?: NodeJS.Timeout
  /** URIs of the open documents. */
  documents: Set<string>
}

const entries = new Map<string, Entry>()

const placeOf = async ({ id, agent, assignment }: ToolboxSandbox, { languageId, pathToProject }: ServerRequest) => {
  const directory = await absolute(agent.files(assignment.user), pathToProject)
  return { key: JSON.stringify([id, languageId, directory]), directory }
}

const initialize = async (server: LanguageServer, directory: string): Promise<void> => {
  const rootUri = uriOf(directory)
  const workspaceFolders = [{ uri: rootUri, name: directory.split('/').at(-1) ?? '' }]
  await server.request('initialize', { processId: null, rootUri, workspaceFolders, capabilities: {} })
  server.notify('initialized', {})
}

/**
 * Starts the language server: tries the programs for the language in order, until one exists in the sandbox and speaks the
 * protocol.
 */
const open = async (sandbox: ToolboxSandbox, language: Language, directory: string): Promise<LanguageServer> => {
  const { commands, install } = programsFor[language]
  let failure: Problem | undefined
  for (const argv of commands) {
    try {
      const spec = { argv, env: environmentOf(sandbox), cwd: directory }
      const server = await LanguageServer.run(sandbox, spec)
      try {
        await initialize(server, directory)
        return server
      } catch (error) {
        server.end()
        throw error
      }
    } catch (error) {
      if (isMissing(error)) continue
      if (!(error instanceof StartFailed)) failure = asTold(error)
      else {
        const { user } = sandbox.assignment
        const fault = callersFault(error, { argv, env: {}, cwd: directory, user, mergeOutput: false })
        if (fault !== undefined) throw fault
        failure = new Problem('unprocessable', `The sandbox could not start ${argv[0]}: ${error.errno}.`)
      }
    }
  }
  if (failure !== undefined) throw failure
  throw new Problem(
    'unprocessable',
    `This sandbox has no language server for ${language}. Install one in the sandbox: ${install}`,
  )
}

/** Restarts the timer that ends the server after `idleMs` without calls. */
const postpone = (entry: Entry): void => {
  clearTimeout(entry.idle)
  entry.idle = setTimeout(() => entry.server?.end(), idleMs).unref()
}

/** Starts the server of the language and the project. Does nothing if this server runs already. */
export const startServer = async (sandbox: ToolboxSandbox, wanted: ServerRequest): Promise<void> => {
  const { key, directory } = await placeOf(sandbox, wanted)
  const known = entries.get(key)
  if (known !== undefined && !known.server?.hasEnded) {
    await known.starting
    postpone(known)
    return
  }
  if (!places.take(sandbox.id)) {
    throw new Problem(
      'rate_limited',
      `This sandbox has ${mostServers} language servers, the most that it can have; stop one first.`,
    )
  }
  const entry: Entry = { starting: open(sandbox, wanted.languageId, directory), documents: new Set() }
  entries.set(key, entry)
  const forget = () => {
    clearTimeout(entry.idle)
    if (entries.get(key) === entry) entries.delete(key)
    places.give(sandbox.id)
  }
  try {
    entry.server = await entry.starting
  } catch (error) {
    forget()
    throw error
  }
  void entry.server.ended.then(forget)
  postpone(entry)
}

/** A running language server. `directory`: the absolute path of its project. */
export type Running = { server: LanguageServer; documents: Set<string>; directory: string }

/** Returns the running server. Throws a 400 if the server was not started, or has ended. */
export const getServer = async (sandbox: ToolboxSandbox, wanted: ServerRequest): Promise<Running> => {
  const { key, directory } = await placeOf(sandbox, wanted)
  const entry = entries.get(key)
  const server = await entry?.starting.catch(() => undefined)
  if (entry === undefined || server === undefined || server.hasEnded) throw new Problem('lsp_not_started')
  postpone(entry)
  return { server, documents: entry.documents, directory }
}
