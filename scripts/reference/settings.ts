import { loadConfig as loadControl } from '#src/control/config.ts'
import { loadConfig as loadGate } from '#src/gate/config.ts'
import { readTelemetry } from '#src/kit/telemetry/settings.ts'
import { loadConfig as loadRunner } from '#src/runner/config.ts'
import { loadConfig as loadSshGateway } from '#src/ssh-gateway/config.ts'
import { readUpConfig } from '#src/up/config.ts'
import { code, page, table } from './markdown.ts'
import { meanings } from './setting-meanings.ts'
import { telemetryMeanings } from './telemetry-meanings.ts'

const isTelemetry = (name: string) => name.startsWith('OTEL_')

const telemetryTable = (): string => {
  const rows = Object.entries(telemetryMeanings).map(([names, meaning]) => {
    const each = names.split(', ')
    const patterns = each.map((name) => new RegExp(`^${name.replace('*', '(?:TRACES|METRICS|LOGS)')}$`))
    return { names: each.map(code).join(', '), meaning, patterns }
  })
  for (const name of namesRead((environment) => readTelemetry(environment, ''))) {
    if (rows.some(({ patterns }) => patterns.some((pattern) => pattern.test(name)))) continue
    throw new Error(`Say in scripts/reference/telemetry-meanings.ts what ${name} is for.`)
  }
  return table(
    ['variable', 'meaning'],
    rows.map(({ names, meaning }) => [names, meaning] as const),
  )
}

/**
 * Returns the settings of a program with their meanings, by calling its function `load` without any variable. The names that `load`
 * looks for are the settings, and the errors of `load` contain the meanings.
 */
const settingsOf = (load: (environment: NodeJS.ProcessEnv) => unknown): (readonly [string, string])[] => {
  const said = new Map<string, string>()
  const names = namesRead((nothing) => {
    try {
      load(nothing)
    } catch (error) {
      for (const [, name, meaning] of String((error as Error).message).matchAll(/^(\w+) is missing: (.*)$/gm)) {
        said.set(name!, `${sentence(meaning!)} \\*`)
      }
    }
  })
  return names.flatMap((name) => {
    if (isTelemetry(name)) return []
    const meaning = said.get(name) ?? meanings[name]
    if (meaning === undefined) throw new Error(`Say in scripts/reference/setting-meanings.ts what ${name} is for.`)
    return [[code(name), meaning.replaceAll('<', '\\<')] as const]
  })
}

/** Makes a sentence from the part of an error message that describes a setting. */
const sentence = (words: string) => `${words[0]?.toUpperCase()}${words.slice(1)}.`

/** Returns the names of all settings that a function reads, by giving it an environment without variables. */
const namesRead = (load: (nothing: NodeJS.ProcessEnv) => unknown): string[] => {
  const names = new Set<string>()
  load(
    new Proxy({} as NodeJS.ProcessEnv, {
      get: (_, name) => {
        names.add(String(name))
        return undefined
      },
    }),
  )
  return [...names]
}

export const settingsPage = () => {
  const section = (title: string, load: (environment: NodeJS.ProcessEnv) => unknown) => [
    `## ${title}`,
    table(['variable', 'meaning'], settingsOf(load)),
  ]
  return page(
    'Settings',
    'Each program reads its environment variables once, when it starts, and reports all wrong values together. `up` sets the variables of the programs that it starts. If you start a program in another way, set them yourself. \\*: required.',
    ...section('up', readUpConfig),
    ...section('control', loadControl),
    ...section('gate', loadGate),
    ...section('runner', loadRunner),
    ...section('ssh-gateway', loadSshGateway),
    `Each program also reads ${code('ALCOVE_LOG_LEVEL')}. ${meanings['ALCOVE_LOG_LEVEL']}`,
    '## Telemetry',
    'Control, gate, runner and ssh-gateway read these variables as the OpenTelemetry specification says. `up` passes every variable `OTEL_…` to them. An invalid value has no effect and causes a warning in the log.',
    telemetryTable(),
  )
}
