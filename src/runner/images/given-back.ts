// Counts the bytes of image files that this runner has removed since its start, separately for each reason of removal.
import type { GivenBackReason, ImageKind, ImageStorage } from '#src/wire/image-storage.ts'

export class GivenBack {
  readonly #bytes: ImageStorage['givenBack'] = {}

  add(kind: ImageKind, reason: GivenBackReason, bytes: number): void {
    if (bytes <= 0) return
    const ofKind = this.#bytes[kind] ?? {}
    this.#bytes[kind] = { ...ofKind, [reason]: (ofKind[reason] ?? 0) + bytes }
  }

  read(): ImageStorage['givenBack'] {
    return this.#bytes
  }
}
