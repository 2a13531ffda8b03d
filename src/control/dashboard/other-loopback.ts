// Recognises a browser that has opened control by another loopback name than the one in the public URL, for example
// `localhost` instead of `127.0.0.1`. Users can sign in only under the name in the public URL.

const loopbackNames: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/**
 * Whether the caller used a loopback name other than that of the public URL, at the same port. If so, the browser can
 * be redirected to the public URL. False if one of the two names is no loopback name, or if the public URL has https:
 * then a reverse proxy may have replaced the name that the browser used.
 */
export const isOtherLoopback = (host: string | undefined, publicUrl: string): boolean => {
  const ours = new URL(publicUrl)
  const asked = URL.parse(`http://${host}`)
  return (
    asked !== null &&
    ours.protocol === 'http:' &&
    loopbackNames.includes(ours.hostname) &&
    loopbackNames.includes(asked.hostname) &&
    asked.port === ours.port &&
    asked.hostname !== ours.hostname
  )
}
