// Parses COPY and ADD: the files to copy, and their destination.
import { posix } from 'node:path'
import type { Repository } from '../repository.ts'
import { type At, type AtInstruction, type Instruction, jsonListIn, refuse } from './instructions.ts'
import type { Origin } from './origins.ts'

export type CopyStep = {
  line: number
  /** The line as it is written, for the build log. */
  text: string
  copy: {
    /** Stage or image that the files come from. Absent: the files that the caller sent with the definition. */
    from?: Origin
    sources: string[]
    /** Here-documents of the line: files whose contents are in the definition itself. */
    documents: { name: string; content: string }[]
    /** Files to download. `name` is empty if the URL contains no file name. */
    urls: { url: string; name: string }[]
    /** A git repository to copy. A line with a repository has no further source. */
    repository?: Repository
    /**
     * Expected digest of the downloaded file, or expected commit of the repository. Allowed only if the line has a single
     * source.
     */
    checksum?: string
    /** Absolute path. A slash at its end means that the destination is a directory. */
    destination: string
    /**
     * Name or number of the user who owns the copied files. Empty: root, but files of a stage, an image or an unpacked archive
     * keep their owners.
     */
    owner: string
    /** Name or number of the group of the copied files. Empty: the group whose number is that of `owner`. */
    group: string
    mode?: number
    /** Whether tar archives among the sources are unpacked, as ADD does. */
    unpacks: boolean
    excludes: string[]
    /** `--parents`: the directories of a source's path are created at the destination too. */
    keepsParents: boolean
  }
}

type Reader = {
  /** Expands the variables in `text`, and returns the words of the result. With `splits: false` the whole text is one word. */
  wordsIn: (text: string, splits?: boolean) => string[]
  /** Returns the text of a here-document with its variables expanded. */
  linesIn: (text: string) => string
  originOf: (text: string) => Origin
  workdir: string
}

/**
 * Returns the arguments of an instruction: words of the line, or strings of a JSON list. Variables are expanded in both forms.
 */
const argumentsIn = (rest: string, wordsIn: Reader['wordsIn']): string[] =>
  jsonListIn(rest)?.map((part) => wordsIn(part, false).join('')) ?? wordsIn(rest)

const modeIn = (at: At, value: string): number => {
  if (/^[0-7]{3,5}$/.test(value) && Number.parseInt(value, 8) <= 0o7777) return Number.parseInt(value, 8)
  return refuse(at, '--chmod takes an octal number', 'write for example --chmod=755')
}

const ownerIn = (at: At, value: string) => {
  const [owner = '', group = '', ...more] = value.split(':')
  if (owner === '' || more.length > 0 || !/^[\w.-]*$/.test(owner + group))
    refuse(at, '--chown takes one user and one group', 'write --chown=USER or --chown=USER:GROUP')
  return { owner, group }
}

/** Returns advice for a user who has given the instruction `name` a flag that the instruction does not support. */
const flagInstead = (name: string, key: string): string => {
  if (name === 'COPY' && ['checksum', 'keep-git-dir'].includes(key)) return `write ADD --${key}`
  return name === 'ADD' && ['from', 'parents'].includes(key) ? `write COPY --${key}` : 'leave it out'
}

const isSwitchedOn = (value: string | undefined) => value === undefined || value === 'true'

const flagInto = (copy: CopyStep['copy'], at: AtInstruction, flag: string, { originOf }: Reader): void => {
  const { name } = at
  const [, key = flag, value] = /^--([a-z-]+)(?:=(.*))?$/s.exec(flag) ?? []
  if (key === 'chown') Object.assign(copy, ownerIn(at, value ?? ''))
  else if (key === 'chmod') copy.mode = modeIn(at, value ?? '')
  else if (key === 'from' && name === 'COPY') copy.from = originOf(value ?? '')
  else if (key === 'checksum' && name === 'ADD') copy.checksum = value ?? ''
  else if (key === 'exclude' && value) copy.excludes.push(value)
  else if (key === 'parents' && name === 'COPY') copy.keepsParents = isSwitchedOn(value)
  // `--link` is accepted without effect: it concerns layers, and Alcove's builds have no layers. `repositoryIn` handles
  // `--keep-git-dir`.
  else if (key !== 'link' && !(key === 'keep-git-dir' && name === 'ADD'))
    refuse(at, `--${key.slice(0, 40)} is not supported`, flagInstead(name, key))
}

/** Maximum number of URLs of one line. All their files are on the host at the same time. */
const mostAddresses = 100

const otherPlace = /^(?:[a-z][a-z0-9+.-]*:\/\/|git@)/i
const isRepository = (source: string) => /^git@|^git:|^ssh:|\.git(?:[#?].*)?$/i.test(source)

const urlIn = (at: AtInstruction, source: string): CopyStep['copy']['urls'][number] => {
  const shown = source.replace(/\/\/[^/@]*@/, '//').slice(0, 100)
  if (at.name !== 'ADD') return refuse(at, `COPY cannot copy from a URL (${shown})`, 'write ADD instead of COPY')
  const url = URL.parse(source)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    return refuse(at, `only http:// and https:// URLs are allowed (${shown})`, 'fetch the file with RUN')
  if (url.username !== '' || url.password !== '')
    return refuse(at, `a URL with a password would be shown in the build log (${shown})`, 'COPY the file instead')
  url.hash = ''
  return { url: url.href, name: nameIn(url) }
}

/** Decodes characters of a URL that are written with `%`, such as `%20`. Undefined if the result is not valid text. */
const decoded = (text: string): string | undefined => {
  try {
    return decodeURI(text)
  } catch {
    return undefined
  }
}

const refShape = /^\w[\w./@+-]*$/
const digestShape = /^sha256:[0-9a-f]{64}$/
const commitShape = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/** Parses `https://HOST/PATH.git#REF:DIRECTORY`. */
const repositoryIn = (at: AtInstruction, source: string, flags: readonly string[]): Repository => {
  const instead = 'write https://HOST/PATH.git#REF:DIRECTORY, where REF and DIRECTORY may be left out'
  if (!/^https?:/i.test(source)) {
    const shown = source.replace(/\/\/[^/@]*@/, '//').slice(0, 100)
    return refuse(at, `a repository needs an http:// or https:// URL (${shown})`, instead)
  }
  const { url: whole } = urlIn(at, source)
  const url = new URL(whole)
  const fragment = decoded(URL.parse(source)?.hash.slice(1) ?? '')
  if (fragment === undefined) return refuse(at, 'the URL of the repository is not valid', instead)
  const [ref = '', directory = '', ...more] = fragment.split(':')
  const path = posix.resolve('/', directory).slice(1)
  const isFine =
    (ref === '' || refShape.test(ref)) && !ref.includes('..') && !/[\0\n]|(?:^|\/)\.\.(?:\/|$)/.test(directory)
  if (url.search !== '' || more.length > 0 || !isFine)
    return refuse(at, 'the URL of the repository is not valid', instead)
  const keepsHistory = flags.some((flag) => flag === '--keep-git-dir' || flag === '--keep-git-dir=true')
  return { url: whole, ref: ref || 'HEAD', directory: path, keepsHistory }
}

const checkChecksum = (at: AtInstruction, { checksum, repository, urls }: CopyStep['copy'], sources: number): void => {
  if (checksum === undefined) return
  if (sources !== 1 || (urls.length === 0 && repository === undefined))
    refuse(at, '--checksum needs a single source: a URL or a repository', 'write a line for each source')
  if (repository !== undefined && !commitShape.test(checksum))
    refuse(at, '--checksum of a repository must be the hash of a commit', 'write all of its 40 digits')
  if (repository === undefined && !digestShape.test(checksum))
    refuse(at, '--checksum of a file must be a SHA-256 digest', 'write --checksum=sha256: and all 64 digits')
}

/** Returns the last part of the URL's path, as a file name. Empty if that part is not a valid file name. */
const nameIn = ({ pathname }: URL): string => {
  const last = posix.basename(pathname.endsWith('/') ? '' : pathname)
  try {
    const name = decodeURIComponent(last)
    return name.includes('/') || name.includes('\0') || name === '..' ? '' : name
  } catch {
    return last
  }
}

export const copyIn = (instruction: Instruction, reader: Reader): CopyStep => {
  const { line, name, rest, flags, documents } = instruction
  const { wordsIn, linesIn, workdir } = reader
  const copy: CopyStep['copy'] = {
    ...{ sources: [], documents: [], urls: [], destination: '', owner: '', group: '' },
    ...{ unpacks: name === 'ADD', excludes: [], keepsParents: false },
  }
  // Variables in `--from` are not expanded: variables have no values yet when the builder chooses the stages to build.
  for (const flag of flags)
    flagInto(copy, instruction, flag.startsWith('--from') ? flag : wordsIn(flag, false).join(''), reader)
  const given = argumentsIn(rest, wordsIn)
  const to = given.pop() ?? ''
  if (given.length === 0 || given.includes('') || to === '')
    return refuse(instruction, `${name} needs at least one file and a destination`, `write ${name} FILE DESTINATION`)
  if (given.length > 1 && !to.endsWith('/'))
    refuse(instruction, 'the destination of several files must be a directory', 'write / at the end of the destination')
  const destination = posix.resolve('/', workdir, to)
  const isDirectory = /(?:^|\/)\.?$/.test(to) && destination !== '/'
  const waiting = [...documents]
  for (const source of given) {
    const document = waiting.find((each) => source.replace(/^\d*<<-?/, '') === each.name && source.includes('<<'))
    if (document === undefined && name === 'ADD' && otherPlace.test(source) && isRepository(source))
      copy.repository = repositoryIn(instruction, source, flags)
    else if (document === undefined && otherPlace.test(source)) copy.urls.push(urlIn(instruction, source))
    else if (document === undefined) copy.sources.push(source)
    else {
      waiting.splice(waiting.indexOf(document), 1)
      const content = document.isQuoted ? document.content : linesIn(document.content)
      copy.documents.push({ name: document.name, content })
    }
  }
  if (copy.urls.length > mostAddresses)
    refuse(instruction, `it has more than ${mostAddresses} URLs`, 'write several lines')
  checkChecksum(instruction, copy, given.length)
  if (copy.repository !== undefined && given.length > 1)
    refuse(instruction, 'a repository must be the only source of its line', 'write a line for each source')
  if (isDirectory && copy.urls.some((each) => each.name === ''))
    refuse(instruction, 'the URL contains no file name', 'write a file name at the end of the destination')
  copy.destination = isDirectory ? `${destination}/` : destination
  return { line, text: [name, ...flags, rest].join(' '), copy }
}
