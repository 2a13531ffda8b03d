// The lines of a build log about the download of layers: at most eleven, however long it takes.
import { asSize } from './limits.ts'

type Download = { layers: number; bytes: number }

/** Returns a line for each further tenth of the bytes. The progress never goes back. */
export const createDownloadLines = ({ layers, bytes }: Download) => {
  let said = 0
  return (came: number, complete: number): string | undefined => {
    const tenths = Math.min(10, Math.floor((came / Math.max(bytes, 1)) * 10))
    if (tenths <= said) return undefined
    said = tenths
    return `downloaded ${asSize(Math.min(came, bytes))} of ${asSize(bytes)}, ${Math.min(complete, layers)} of ${layers} layers complete`
  }
}
