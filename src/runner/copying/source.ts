// Sources of files for COPY: the files uploaded with a definition, or another sandbox of the build.
import type { WantedFile, WantedFiles } from './selection.ts'
import type { Tree } from './tree.ts'

export type Contents = {
  wanted: [WantedFile, ...WantedFile[]]
  /** `pieces` contains exactly this many bytes. */
  size: number
  pieces: AsyncIterable<Buffer>
}

export interface CopySource {
  /** The tree of files: at least those that these paths and patterns can match. */
  tree(sources: readonly string[]): Promise<Tree>
  /** Yields each wanted file once. Read the pieces of a file before asking for the next file. */
  contents(files: WantedFiles): AsyncGenerator<Contents>
  /** Describes the source in an error sentence: "there is no x <place>". */
  readonly place: string
}
