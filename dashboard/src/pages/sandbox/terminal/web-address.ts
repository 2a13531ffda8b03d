/**
 * The address of a link in a terminal, in the form in which the browser opens it. Undefined for all schemes except http and
 * https, and for an address with a name and password: such an address can look like one of another host.
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
