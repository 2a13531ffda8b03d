// Reads the URL at which clients reach an SSH gateway: `ssh://host` or `ssh://host:port`.

export const sshUrlMeaning = 'where clients reach the SSH gateway, such as ssh://alcove.example.com:2222'

/** Returns host and port of an `ssh://` URL. Returns `undefined` if the text has another form. */
export const readSshUrl = (text: string): { host: string; port: number } | undefined => {
  const [, bracketed, plain, port = '22'] =
    /^ssh:\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_][A-Za-z0-9_.-]*))(?::(\d{1,5}))?\/?$/.exec(text) ?? []
  const host = bracketed ?? plain
  const number = Number(port)
  return host !== undefined && number >= 1 && number <= 65_535 ? { host, port: number } : undefined
}
