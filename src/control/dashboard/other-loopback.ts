// People open a server on their own machine as `localhost` or as `127.0.0.1`. Signing in works at one of them only: at the
// one that the public URL names.

const loopbackNames: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/**
 * Whether the caller used another name of this machine than the public URL has, at the same port. Then the public URL is
 * right for the caller too. For any other name this is not known: a reverse proxy may have replaced the name.
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
