// Finds out which calls the published packages of Daytona (0.x) can make, by reading the code of the packages.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { asCall } from '#src/http/unserved.ts'

const packages = resolve(import.meta.dirname, '../../node_modules/@daytona')

export type Operation = { name: string; call: string }

/** Lists the operations of a generated client. Each operation is one request that the client can make. */
export const operationsOf = (client: 'api-client' | 'toolbox-api-client'): Operation[] => {
  const directory = join(packages, client, 'src/api')
  return readdirSync(directory)
    .filter((file) => file.endsWith('-api.js'))
    .flatMap((file) => {
      const text = readFileSync(join(directory, file), 'utf8')
      const requests =
        /^ {8}(\w+): async \([\s\S]*?localVarPath = `([^`]+)`[\s\S]*?localVarRequestOptions = \{ method: '([A-Z]+)'/gm
      return [...text.matchAll(requests)].map(([, name, path, method]) => ({
        name: name!,
        call: asCall(method!, path!),
      }))
    })
}

/** A method of the SDK. `calls`: names of the operations that it calls, itself or through other methods of its class. */
export type SdkMethod = { owner: string; name: string; calls: ReadonlySet<string>; opensSocket: boolean }

/**
 * Returns the source text of each method under `Class.method`. A compiler indented the files, so indentation shows
 * where a method begins.
 */
const methodTexts = (source: string): Map<string, string> =>
  new Map(
    source.split(/^(?=.*\bclass \w+ (?:extends \S+ )?\{$)/m).flatMap((part) => {
      const owner = /\bclass (\w+)/.exec(part)?.[1]
      const methods = part.matchAll(/^( {4}| {8})(?:static )?(?:async )?\*?(\w+)\([^\n]*\{\n([\s\S]*?)^\1\}/gm)
      return [...methods].map(([, , name, text]) => [`${owner}.${name}`, text!] as const)
    }),
  )

/** Lists the public methods of each class that a declaration file (`.d.ts`) describes. */
const publicMethods = (declarations: string): { owner: string; name: string }[] =>
  [...declarations.matchAll(/^export declare class (\w+)[^\n]*\{\n([\s\S]*?)^\}/gm)].flatMap(([, owner, text]) =>
    [...new Set([...text!.matchAll(/^ {4}(?:static )?(\w+)(?:<[^\n]*>)?\(/gm)].map(([, name]) => name!))]
      .filter((name) => name !== 'constructor')
      .map((name) => ({ owner: owner!, name })),
  )

/** Lists the public methods of the TypeScript SDK, each with the operations that it may call. */
export const sdkMethods = (operations: readonly Operation[]): SdkMethod[] => {
  const known = new Set(operations.map(({ name }) => name))
  const directory = join(packages, 'sdk/esm')
  const files = readdirSync(directory).filter((file) => /^[A-Z]\w+\.d\.ts$/.test(file))
  const read = (file: string) => readFileSync(join(directory, file), 'utf8')
  const texts = new Map(files.flatMap((file) => [...methodTexts(read(file.replace('.d.ts', '.js')))]))

  const methodOf = (owner: string, name: string): SdkMethod => {
    const calls = new Set<string>()
    const seen = new Set<string>()
    let opensSocket = false
    const walk = (className: string, method: string): void => {
      const text = texts.get(`${className}.${method}`)
      if (text === undefined || seen.has(`${className}.${method}`)) return
      seen.add(`${className}.${method}`)
      if (text.includes('WebSocket')) opensSocket = true
      for (const [, called] of text.matchAll(/(?:Api|apiClient)\.(\w+)\(/g)) if (known.has(called!)) calls.add(called!)
      for (const [, own] of text.matchAll(/\bthis\.(\w+)\(/g)) walk(className, own!)
      for (const [, other] of text.matchAll(/\bsandbox\.(\w+)\(/g)) walk('Sandbox', other!)
    }
    walk(owner, name)
    return { owner, name, calls, opensSocket }
  }
  return files.flatMap((file) => publicMethods(read(file)).map(({ owner, name }) => methodOf(owner, name)))
}
