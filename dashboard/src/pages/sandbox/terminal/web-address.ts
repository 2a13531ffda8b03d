/**
 * The address of a link in a terminal, in the form in which the browser opens it. Undefined for all schemes except http and https,
 * and for an address with a user name or password: `https://example.com@evil.test` looks like an address of example.com.
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
