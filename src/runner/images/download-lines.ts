// Makes the progress lines of a build log about the download of an image's layers: at most ten, however long the download takes.
import { asSize } from './limits.ts'

type Download = { layers: number; bytes: number }

/** Returns a function that makes a line for the log whenever another tenth of all bytes has arrived. */
export const createDownloadLines = ({ layers, bytes }: Download) => {
  let said = 0
  return (came: number, complete: number): string | undefined => {
    const tenths = Math.min(10, Math.floor((came / Math.max(bytes, 1)) * 10))
    if (tenths <= said) return undefined
    said = tenths
    return `downloaded ${asSize(Math.min(came, bytes))} of ${asSize(bytes)}, ${Math.min(complete, layers)} of ${layers} layers complete`
  }
}
