// Lets ADD copy the files in a tar file on this host, such as the tar file of a git repository.
import { EventLoopTurns } from '#src/kit/yield.ts'
import type { WantedFiles } from './selection.ts'
import type { Contents, CopySource } from './source.ts'
import { readTar } from './tar-reader.ts'
import { Tree } from './tree.ts'

type TarSourceParts = { read: () => AsyncIterable<Buffer>; place: string; signal: AbortSignal }

export class TarSource implements CopySource {
  readonly place: string
  readonly #read: TarSourceParts['read']
  readonly #signal: AbortSignal

  constructor({ read, place, signal }: TarSourceParts) {
    this.place = place
    this.#read = read
    this.#signal = signal
  }

  async tree(): Promise<Tree> {
    const tree = new Tree()
    let file = 0
    for await (const { entry } of readTar(this.#read(), new EventLoopTurns(this.#signal))) {
      tree.add(entry, { tar: 0, file })
      file += 1
    }
    return tree
  }

  async *contents(files: WantedFiles): AsyncGenerator<Contents> {
    let file = -1
    for await (const { entry, contents } of readTar(this.#read(), new EventLoopTurns(this.#signal))) {
      this.#signal.throwIfAborted()
      file += 1
      const wanted = files.get({ tar: 0, file })
      if (wanted !== undefined) yield { wanted, size: entry.size, pieces: contents }
    }
  }
}
