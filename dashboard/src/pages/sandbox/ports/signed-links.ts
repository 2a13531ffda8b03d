// The signed preview links that the user has made since the page was opened. The server does not list them.
import type { AnswerTo } from '../../../api/client.ts'

export type SignedLink = AnswerTo<'/sandbox/{sandboxIdOrName}/ports/{port}/signed-preview-url', 'get'> & {
  /** When the link expires, in ms since 1970, on the server's clock. */
  endsAt: number
}

export const lifetimes = [
  { seconds: 300, label: '5 minutes' },
  { seconds: 3600, label: '1 hour' },
  { seconds: 28_800, label: '8 hours' },
  { seconds: 86_400, label: '1 day' },
] as const

/** The links that have not expired at the time `now`. */
export const withoutEnded = (links: readonly SignedLink[], now: number): SignedLink[] =>
  links.filter(({ endsAt }) => endsAt > now)

/** Reads a port that the user has typed. Undefined if the text is not a port number. */
export const readPort = (text: string): number | undefined => {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}
