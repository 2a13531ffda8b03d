/**
 * The address behind a link in a terminal, as the browser would open it, if it is one of the web. Other kinds (javascript:,
 * file:, programs' own) are never opened. So are addresses with a name and password, which serve to pretend another host.
 */
export const webAddress = (link: string): URL | undefined => {
  if (link.length > 2048) return undefined
  let url: URL
  try {
    url = new URL(link)
  } catch {
    return undefined
  }
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  return isWeb && url.username === '' && url.password === '' ? url : undefined
}
