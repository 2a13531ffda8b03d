// Makes a sandbox from the options of the command line.
import { readFileSync } from 'node:fs'
import type { Api } from '../api.ts'
import { exitCodes, Failure } from '../failure.ts'
import type { Activity } from '../print/progress.ts'
import { asSandbox, type Sandbox } from './sandbox.ts'
import { settle } from './settle.ts'

export type CreateOptions = {
  image?: string
  snapshot?: string
  name?: string
  env?: string[]
  label?: string[]
  cpu?: number
  memory?: number
  disk?: number
  autoStop?: number
}

/** How long to wait for the answer to a create, in ms. The server itself answers after at most 30 s. */
const createMs = 120_000

/** Reads pairs `NAME=VALUE`. For `NAME` alone, the value comes from the environment variables in `from`. */
export const readPairs = (pairs: readonly string[] = [], from: NodeJS.ProcessEnv = {}): Record<string, string> =>
  Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      const [name, value] = at < 0 ? [pair, from[pair]] : [pair.slice(0, at), pair.slice(at + 1)]
      if (name === '' || value === undefined)
        throw new Failure(`"${pair}" is not of the form NAME=VALUE.`, exitCodes.usage)
      return [name, value]
    }),
  )

/** Returns a Dockerfile that consists only of this image. */
const definitionOf = (image: string): string => {
  if (/[\s\p{Cc}]/u.test(image) || image === '')
    throw new Failure(
      'The name of an image must not be empty, and must not contain spaces or control characters.',
      exitCodes.usage,
    )
  return `FROM ${image}\n`
}

export const readDockerfile = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`The file cannot be read: ${(error as Error).message}`, exitCodes.localFile)
  }
}

export const bodyOf = (options: CreateOptions, variables: NodeJS.ProcessEnv): Record<string, unknown> => {
  const { image, snapshot, name, env, label, cpu, memory, disk, autoStop } = options
  return {
    ...(image === undefined ? {} : { buildInfo: { dockerfileContent: definitionOf(image) } }),
    ...(snapshot === undefined ? {} : { snapshot }),
    ...(name === undefined ? {} : { name }),
    ...(env === undefined ? {} : { env: readPairs(env, variables) }),
    ...(label === undefined ? {} : { labels: readPairs(label) }),
    ...(cpu === undefined ? {} : { cpu }),
    ...(memory === undefined ? {} : { memory }),
    ...(disk === undefined ? {} : { disk }),
    ...(autoStop === undefined ? {} : { autoStopInterval: autoStop }),
  }
}

/** Asks the server to make a sandbox. The answer may come before the sandbox has started. */
export const requestSandbox = async (api: Api, body: Record<string, unknown>): Promise<Sandbox> =>
  asSandbox(await api.ask<Sandbox>('POST', '/sandbox', { body, patience: createMs }))

export const untilStarted = (api: Api, sandbox: Sandbox, activity?: Activity): Promise<Sandbox> =>
  settle(api, sandbox, ['started'], activity)
