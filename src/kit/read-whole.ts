/** Reads a whole body into memory. If it has more than `mostBytes`, throws the error that `tooLarge` returns. */
export const readWhole = async (
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mostBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> => {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.length
    if (bytes > mostBytes) throw tooLarge()
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
