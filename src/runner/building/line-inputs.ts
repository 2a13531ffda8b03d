// Finds the inputs of a line of a definition: files, stages, images and URLs. A line with an unknown input has no cache key.
import { fingerprintOf } from '../copying/fingerprint.ts'
import type { CopySource } from '../copying/source.ts'
import type { BuildStep, CopyStep, Mount, Origin } from '../images/definition/plan.ts'
import { copyOf } from './mounts.ts'

export type InputParts = {
  /** The files that the caller sent with the definition. */
  files: CopySource | undefined
  /** Returns the cache key of the disk after a stage's last line. Undefined if the key is unknown. */
  keyOfStage: (index: number) => string | undefined
  /** Returns text that identifies an image: its digest, or the name of an image that never changes. */
  identityOf: (image: string) => Promise<string>
  signal: AbortSignal
}

/**
 * Returns texts that identify a line's inputs. Undefined if an input is unknown. A URL with a checksum needs no text: the line
 * itself contains the checksum. `fetched`: digests of what an ADD without a checksum has downloaded.
 */
export const inputsOf = async (
  step: BuildStep,
  fetched: readonly string[] | undefined,
  parts: InputParts,
): Promise<string[] | undefined> => {
  const inputs = 'copy' in step ? await ofCopy(step.copy, fetched, parts) : await ofMounts(step, parts)
  const known = inputs.filter((each) => each !== undefined)
  return known.length === inputs.length ? known : undefined
}

/** Whether a line downloads a file or a repository whose content may differ from one build to the next. */
export const mayChange = (step: BuildStep): boolean =>
  'copy' in step &&
  (step.copy.urls.length > 0 || step.copy.repository !== undefined) &&
  step.copy.checksum === undefined

type Inputs = Promise<(string | undefined)[]>

const ofCopy = async (copy: CopyStep['copy'], fetched: readonly string[] | undefined, parts: InputParts): Inputs => {
  const isFetched = copy.urls.length > 0 || copy.repository !== undefined
  const urls = !isFetched || copy.checksum !== undefined ? [] : (fetched ?? [undefined])
  if (copy.sources.length === 0) return [...urls]
  const own = copy.from === undefined ? await fingerprint(copy, parts) : await identity(copy.from, parts)
  return [own, ...urls]
}

const ofMounts = (step: BuildStep, parts: InputParts): Inputs =>
  Promise.all(('argv' in step ? (step.mounts ?? []) : []).map((mount) => ofMount(mount, parts)))

const ofMount = async (mount: Mount, parts: InputParts): Promise<string | undefined> => {
  if ('from' in mount && mount.from !== undefined) return identity(mount.from, parts)
  return mount.type === 'bind' ? fingerprint(copyOf(mount.source, mount.target), parts) : 'nothing'
}

const identity = async (origin: Origin, { keyOfStage, identityOf }: InputParts): Promise<string | undefined> =>
  'stage' in origin ? keyOfStage(origin.stage) : identityOf(origin.image)

/** Returns a hash of the files that a COPY line copies. Undefined if they cannot be read; the line then fails when it runs. */
const fingerprint = async (copy: CopyStep['copy'], { files, signal }: InputParts): Promise<string | undefined> => {
  if (files === undefined) return undefined
  const wanted = { ...copy, isOwned: copy.owner !== '' }
  try {
    return await fingerprintOf(await files.tree(copy.sources), wanted, signal)
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}
