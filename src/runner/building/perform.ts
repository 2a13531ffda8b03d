// Runs one line of a definition in the sandbox of its stage.
import type { CopySource } from '#src/runner/copying/source.ts'
import type { BuildStep, CopyStep, Origin, RunStep } from '#src/runner/images/definition/plan.ts'
import { ImageFailed } from '#src/runner/images/image-failed.ts'
import type { Library } from '#src/runner/images/library.ts'
import { asSize } from '#src/runner/images/limits.ts'
import { piecesOf } from '#src/runner/images/web-file.ts'
import { AgentRefused } from '#src/toolbox/agent/agent.ts'
import { copyFiles, type Fetched } from '../copying/copier.ts'
import { ownDirectory, SandboxSource } from '../copying/sandbox-source.ts'
import { TarSource } from '../copying/tar-source.ts'
import { mount } from './mounts.ts'
import { runCommandOf } from './run-step.ts'
import type { StageLog } from './stage-log.ts'
import type { Workplace } from './workplace.ts'

type Performing = {
  log: StageLog
  mostBytes: number
  signal: AbortSignal
  withWebFile: Library['withWebFile']
  withRepository: Library['withRepository']
  /**
   * Returns the source of the files of a COPY or a mount. Without `origin`: the files that the caller sent with the definition.
   */
  sourceOf: (origin: Origin | undefined) => CopySource
}

/** Runs a line of the definition. Returns the digests of the files, or the commit of the repository, that it has downloaded. */
export const perform = async (place: Workplace, step: BuildStep, performing: Performing): Promise<string[]> => {
  try {
    if ('argv' in step) await run(place, step, performing)
    else if ('copy' in step) return await copyLine(place, step, performing)
    else await makeDirectory(place, step.directory)
    return []
  } catch (error) {
    if (error instanceof AgentRefused)
      throw new ImageFailed('build-failed', `the files cannot be written (${error.errno})`, { cause: error })
    throw error
  }
}

export const sourceOfPlace = (place: Workplace, name: string, signal: AbortSignal): CopySource =>
  new SandboxSource({ files: place.files(), place: name, signal })

const run = async (place: Workplace, step: RunStep, performing: Performing): Promise<void> => {
  const { signal, log, mostBytes, sourceOf } = performing
  const unmount = await mount(step.mounts ?? [], { files: place.files(), sourceOf, mostBytes, signal })
  if (step.isOffline) await place.setOffline(true)
  await runCommandOf(place, step, { signal, onText: (text) => log.add(text) })
  if (step.isOffline) await place.setOffline(false)
  await unmount()
}

const copyLine = async (
  place: Workplace,
  { line, text, copy }: CopyStep,
  performing: Performing,
): Promise<string[]> => {
  const { log } = performing
  log.add(`Line ${line}: ${text}\n`)
  const digests: string[] = []
  log.add(`${await copyWith(place, copy, performing, digests)}\n`)
  return digests
}

/**
 * Downloads the files that the line names, and then copies all files. `fetched`: the files that are downloaded so far. Together they
 * may have `mostBytes`, because all of them are on the host until the last one is copied.
 */
const copyWith = async (
  place: Workplace,
  copy: CopyStep['copy'],
  performing: Performing,
  digests: string[],
  fetched: readonly Fetched[] = [],
): Promise<string> => {
  const { sourceOf, mostBytes, signal, withWebFile, withRepository } = performing
  const { repository, checksum } = copy
  if (repository !== undefined)
    return withRepository({ repository, checksum, mostBytes, signal }, ({ file, size, commit }) => {
      digests.push(commit)
      const source = new TarSource({ read: () => piecesOf({ file, size }), place: 'in the repository', signal })
      return copyFiles({ ...copy, sources: ['/'], unpacks: false }, { source, files: place.files(), mostBytes, signal })
    })
  const next = copy.urls[fetched.length]
  if (next === undefined) {
    const source = copy.sources.length === 0 ? undefined : sourceOf(copy.from)
    return copyFiles(copy, { source, files: place.files(), fetched, mostBytes, signal })
  }
  const { url, name } = next
  const left = fetched.reduce((bytes, { size }) => bytes - size, mostBytes)
  if (left <= 0) throw tooLargeTogether(mostBytes)
  let isHere = false
  const fetching = withWebFile({ url, checksum: copy.checksum, mostBytes: left, signal }, (file) => {
    const { size, modifiedSeconds, digest } = file
    isHere = true
    digests.push(digest)
    const here = { name, size, modifiedSeconds, pieces: () => piecesOf(file) }
    return copyWith(place, copy, performing, digests, [...fetched, here])
  })
  return fetching.catch((error: unknown) => {
    // After the download, the error is about the copy.
    const isTooLarge = !isHere && error instanceof ImageFailed && error.failure === 'too-large'
    throw isTooLarge && fetched.length > 0 ? tooLargeTogether(mostBytes, error) : error
  })
}

const tooLargeTogether = (mostBytes: number, cause?: unknown) =>
  new ImageFailed('too-large', `The files are together larger than the image may be (${asSize(mostBytes)}).`, { cause })

export const removeOwn = async (place: Workplace): Promise<void> => {
  try {
    await place.files().remove(ownDirectory, { recursive: true })
  } catch (error) {
    if (!(error instanceof AgentRefused && error.errno === 'ENOENT')) throw error
  }
}

const makeDirectory = async (place: Workplace, directory: string): Promise<void> => {
  const files = place.files()
  try {
    await files.mkdir(directory, 0o755)
    if ((await files.stat(directory, { followLink: true })).type === 'directory') return
  } catch (error) {
    throw new ImageFailed('build-failed', `the directory ${directory} cannot be made`, { cause: error })
  }
  throw new ImageFailed('build-failed', `${directory} is no directory`)
}
