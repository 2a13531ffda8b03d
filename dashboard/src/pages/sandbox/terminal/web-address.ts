/**
 * The address of a link in a terminal, if it is http or https. Undefined if it has a user name or password, because
 * `https://example.com@evil.test` looks like an address of example.com.
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
