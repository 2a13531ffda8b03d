// `alcove user`: manages local accounts with the operator's key from the data directory.
import { askServer } from './ask-server.ts'

export const givePassword = async (directory: string, email: string): Promise<void> => {
  const { password } = await askServer<{ password: string }>(directory, 'POST', '/admin/users/password', { email })
  process.stdout.write(`${password}\n`)
}

export const addUser = async (directory: string, email: string, name: string | undefined): Promise<void> => {
  await askServer(directory, 'POST', '/admin/users', { email, ...(name === undefined ? {} : { name }) })
  await givePassword(directory, email)
}

/** Prints a one-time sign-in link. Without an e-mail address, the link is for the first administrator. */
export const giveLink = async (directory: string, email = 'admin@localhost'): Promise<void> => {
  const { url } = await askServer<{ url: string }>(directory, 'POST', '/admin/users/link', { email })
  process.stdout.write(`${url}\n`)
}
