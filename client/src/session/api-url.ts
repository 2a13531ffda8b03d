import { cleanLine } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'

/** Returns the base URL of the API for the address of a server, with or without `/api` at its end. */
export const apiUrlOf = (url: string): string => {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Failure(`${cleanLine(url)} is not a URL of a server.`, exitCodes.usage)
  return `${url.replace(/\/+$/, '').replace(/\/api$/, '')}/api`
}
