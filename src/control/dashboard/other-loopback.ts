// Recognises a browser that has opened control by another loopback name, such as `localhost` for `127.0.0.1`.
// Users can sign in only under the name in the public URL.

const loopbackNames: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/**
 * Whether the caller and the public URL use different loopback names and the same port. False if the public URL has https. A
 * reverse proxy may then have changed the header Host that the browser sent.
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
