// What COPY may take files from: what was uploaded with a definition, or another sandbox.
import type { WantedFile, WantedFiles } from './selection.ts'
import type { Tree } from './tree.ts'

export type Contents = {
  wanted: [WantedFile, ...WantedFile[]]
  /** Exactly as many bytes come. */
  size: number
  pieces: AsyncIterable<Buffer>
}

export interface CopySource {
  /** What is there, at least as far as these paths and patterns mean it. */
  tree(sources: readonly string[]): Promise<Tree>
  /** Each wanted file once. The pieces have to be read before the next is asked for. */
  contents(files: WantedFiles): AsyncGenerator<Contents>
  /** Where it is, for a sentence. */
  readonly place: string
}
