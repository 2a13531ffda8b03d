// Signed links to previews that were made on this page. The server lists none, so they are known only here.
import type { AnswerTo } from '../../../api/client.ts'

export type SignedLink = AnswerTo<'/sandbox/{sandboxIdOrName}/ports/{port}/signed-preview-url', 'get'> & {
  /** When the link ends, in ms since 1970, by the server's clock. */
  endsAt: number
}

export const lifetimes = [
  { seconds: 300, label: '5 minutes' },
  { seconds: 3600, label: '1 hour' },
  { seconds: 28_800, label: '8 hours' },
  { seconds: 86_400, label: '1 day' },
] as const

/** The links that still open something. */
export const withoutEnded = (links: readonly SignedLink[], now: number): SignedLink[] =>
  links.filter(({ endsAt }) => endsAt > now)

/** A port as people type it. Undefined: the text is none. */
export const readPort = (text: string): number | undefined => {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}
