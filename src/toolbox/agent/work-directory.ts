// Starts commands, and resolves relative paths, in the working directory of the image. The agent itself would use the user's home.
import type { Agent, Files } from './agent.ts'
import { type CommandSpec, StartFailed } from './command.ts'
import type { Path } from './files.ts'

/** Resolves a relative path in `directory`. Without `directory`, the agent will resolve the path in the user's home. */
export const pathFrom = (directory: string | undefined, path: string): string =>
  directory === undefined || path.startsWith('/') ? path : `${directory}/${path}`

/** An agent whose processes start in `directory` (absolute), or in the user's home if `directory` cannot be entered. */
export const agentIn = (agent: Agent, directory: string): Agent => {
  const begin = async <Spec extends Pick<CommandSpec, 'cwd'>, Begun>(
    start: (spec: Spec) => Promise<Begun>,
    spec: Spec,
  ): Promise<Begun> => {
    if (spec.cwd) return await start(spec)
    try {
      return await start({ ...spec, cwd: directory })
    } catch (error) {
      // The caller did not request this directory, so the command starts in the home of its user instead.
      if (error instanceof StartFailed && error.stage === 'cwd') return await start(spec)
      throw error
    }
  }
  return {
    ...agent,
    exec: (spec, signal) => begin((begun: CommandSpec) => agent.exec(begun, signal), spec),
    jobs: { ...agent.jobs, spawn: (spec) => begin(agent.jobs.spawn, spec) },
    sessions: { ...agent.sessions, open: (spec) => begin(agent.sessions.open, spec) },
    files: (user) => filesIn(agent.files(user), directory),
  }
}

const filesIn = (files: Files, directory: string): Files => {
  const beginning = Buffer.from(`${directory}/`)
  const at = (path: Path): Path => {
    if (typeof path === 'string') return pathFrom(directory, path)
    return path[0] === beginning[0] ? path : Buffer.concat([beginning, path])
  }
  return {
    ...files,
    directory: async () => directory,
    stat: (path, options) => files.stat(at(path), options),
    list: (path, depth) => files.list(at(path), depth),
    read: (path, options) => files.read(at(path), options),
    write: (path, contents, options) => files.write(at(path), contents, options),
    mkdir: (path, mode) => files.mkdir(at(path), mode),
    move: (from, to, options) => files.move(at(from), at(to), options),
    remove: (path, options) => files.remove(at(path), options),
    setPermissions: (path, change) => files.setPermissions(at(path), change),
  }
}
