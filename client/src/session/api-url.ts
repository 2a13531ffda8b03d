import { cleanLine } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'

/** Returns the base URL of the API for a server's address. The address may end in `/api` or not. */
export const apiUrlOf = (url: string): string => {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Failure(
      `${cleanLine(url)} is not the URL of a server, such as https://alcove.example.com.`,
      exitCodes.usage,
    )
  const { username, password, search, hash } = new URL(url)
  // The error does not quote the address, because it may contain a password.
  if (`${username}${password}${search}${hash}` !== '')
    throw new Failure('The URL of a server must not contain a user name, password, query or fragment.', exitCodes.usage)
  return `${url.replace(/\/+$/, '').replace(/\/api$/, '')}/api`
}
