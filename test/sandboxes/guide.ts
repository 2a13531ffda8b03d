// Reads the pages of docs/guides, and runs the code on these pages.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after } from 'node:test'
import type { Platform } from './harness.ts'

export const checkout = resolve(import.meta.dirname, '../..')

/**
 * Makes the working directory of a user who follows a guide: it has only `node_modules` with the SDK, and no file of Alcove. The
 * directory is removed after the suite that calls this function.
 */
export const makeDesk = (): string => {
  const desk = mkdtempSync(join(tmpdir(), 'alcove-desk-'))
  mkdirSync(join(desk, 'node_modules'))
  symlinkSync(join(checkout, 'node_modules/@daytona'), join(desk, 'node_modules/@daytona'))
  after(() => rmSync(desk, { recursive: true, force: true }))
  return desk
}

export const readPage = (path: string): string => readFileSync(join(checkout, path), 'utf8')

/** Returns a page's code blocks in a language, for example `sh`. More words may follow the language's name. */
export const blocksOf = (page: string, language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}(?: .*)?\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, text]) => text ?? '')

/** Returns the programs on a page of a guide. They are the code blocks with a file name after the language's name. */
export const programsOf = (page: string): Map<string, string> =>
  new Map([...page.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```/gm)].map(([, name, text]) => [name ?? '', text ?? '']))

/** Replaces the addresses and the data directory in the text of a guide by those of the test's server. Returns the changed text. */
export const addressedTo = ({ url, data }: Pick<Platform, 'url' | 'data'>, text: string): string => {
  const port = Number(new URL(url).port)
  return text
    .replaceAll(/\b460([012])\b/g, (_, place) => String(port + Number(place)))
    .replaceAll(/[\w./]*\/alcove key\b/g, `${checkout}/alcove key --data ${data}`)
}

type RunOptions = { cwd: string; env?: Record<string, string>; timeoutMs?: number }

/** Runs a program and returns its exit code, and everything that it has printed. */
export const runProgram = async (
  command: string,
  args: string[],
  { cwd, env = {}, timeoutMs = 240_000 }: RunOptions,
) => {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}
