// A source of files for COPY and ADD: the files that came with the definition, those of another stage or image, or a repository.
import type { WantedFile, WantedFiles } from './selection.ts'
import type { Tree } from './tree.ts'

export type Contents = {
  wanted: [WantedFile, ...WantedFile[]]
  /** Total size of `pieces` in bytes. */
  size: number
  pieces: AsyncIterable<Buffer>
}

export interface CopySource {
  /**
   * Returns the names and metadata of the source's files: at least of all files that `sources` (paths and patterns) can match.
   */
  tree(sources: readonly string[]): Promise<Tree>
  /** Yields each wanted file once. The caller must read the pieces of a file before it requests the next file. */
  contents(files: WantedFiles): AsyncGenerator<Contents>
  /** Name of the source for users, as the end of an error sentence that begins with "there is no FILE". */
  readonly place: string
}
