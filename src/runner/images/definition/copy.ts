// COPY and ADD: which files, and where to.
import { posix } from 'node:path'
import { type Instruction, jsonListIn, refuse } from './instructions.ts'

export type CopyStep = {
  line: number
  /** As a person reads it. */
  text: string
  copy: {
    sources: string[]
    /** Absolute; with a slash at its end it is a directory. */
    destination: string
    /** Names or numbers; empty: root, and the number of the owner. */
    owner: string
    group: string
    mode?: number
    /** ADD: archives are unpacked. */
    unpacks: boolean
  }
}

/** The words of a text with what is true at its line, or all of it as one. */
type WordsIn = (text: string, splits?: boolean) => string[]

/** Far more than there are. */
const mostFlags = 10

/** Words; or each string of a JSON list as one, in which quotes and variables mean the same. */
const argumentsIn = (rest: string, wordsIn: WordsIn): string[] =>
  jsonListIn(rest)?.map((part) => wordsIn(part, false).join('')) ?? wordsIn(rest)

const modeIn = (line: number, value: string): number => {
  if (/^[0-7]{3,5}$/.test(value) && Number.parseInt(value, 8) <= 0o7777) return Number.parseInt(value, 8)
  return refuse(line, '--chmod takes an octal number such as 755')
}

const ownerIn = (line: number, value: string) => {
  const [owner = '', group = '', ...more] = value.split(':')
  if (owner === '' || more.length > 0 || !/^[\w.-]*$/.test(owner + group))
    refuse(line, '--chown takes USER or USER:GROUP')
  return { owner, group }
}

export const copyIn = (instruction: Instruction, workdir: string, wordsIn: WordsIn): CopyStep => {
  const { line, name } = instruction
  const copy: CopyStep['copy'] = { sources: [], destination: '', owner: '', group: '', unpacks: name === 'ADD' }
  let { rest } = instruction
  let flags = 0
  for (let found = /^--(\S+)\s*/.exec(rest); found; found = /^--(\S+)\s*/.exec(rest)) {
    flags += 1
    if (flags > mostFlags) refuse(line, `${name} has more than ${mostFlags} flags`)
    rest = rest.slice(found[0].length)
    const [flag = ''] = wordsIn(found[1] as string)
    const [, key, value = ''] = /^([a-z-]+)(?:=(.*))?$/s.exec(flag) ?? []
    if (key === 'chown') Object.assign(copy, ownerIn(line, value))
    else if (key === 'chmod') copy.mode = modeIn(line, value)
    // Says only how layers are kept, and there are none here.
    else if (key !== 'link') refuse(line, `${name} with --${key ?? flag} is not supported`)
  }
  const given = argumentsIn(rest, wordsIn)
  const to = given.pop() ?? ''
  if (given.length === 0 || given.includes('') || to === '')
    return refuse(line, `${name} takes files and where they go`)
  const elsewhere = given.find((source) => /^(?:[a-z][a-z0-9+.-]*:\/\/|git@)/i.test(source))
  if (elsewhere !== undefined)
    refuse(line, `${name} takes nothing from other places (${elsewhere.slice(0, 60)}); RUN may`)
  if (given.length > 1 && !to.endsWith('/'))
    refuse(line, `${name} of several files goes to a directory, with / at its end`)
  const destination = posix.resolve('/', workdir, to)
  const isDirectory = /(?:^|\/)\.?$/.test(to) && destination !== '/'
  copy.sources = given
  copy.destination = isDirectory ? `${destination}/` : destination
  return { line, text: `${name} ${instruction.rest}`, copy }
}
