// `alcove user`: local accounts, kept by the operator with the key that lies in the data directory.
import { Complaint } from '#src/up/complaint.ts'
import { findAdminKey, findDataDirectory } from '#src/up/data-directory.ts'
import { findRunningUp } from '#src/up/state-file.ts'

const ask = async (directory: string, path: string, body: object): Promise<Record<string, string>> => {
  const data = findDataDirectory(directory)
  const up = data && findRunningUp(data.stateFile)
  if (data === undefined || !up) throw new Complaint(`no server runs in ${directory}`)
  let key: string | undefined
  try {
    key = findAdminKey(data)
  } catch {
    throw new Complaint('only root may read the key of the server; use sudo')
  }
  const host = up.host === '0.0.0.0' ? '127.0.0.1' : up.host.includes(':') ? `[${up.host}]` : up.host
  const reply = await fetch(`http://${host}:${up.port}/api${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  })
  const answer = (await reply.json()) as Record<string, string>
  if (!reply.ok) throw new Complaint(answer['message'] ?? `the server answered ${reply.status}`)
  return answer
}

export const givePassword = async (directory: string, email: string): Promise<void> => {
  const { password } = await ask(directory, '/admin/users/password', { email })
  process.stdout.write(`${password}\n`)
}

export const addUser = async (directory: string, email: string, name: string | undefined): Promise<void> => {
  await ask(directory, '/admin/users', { email, ...(name === undefined ? {} : { name }) })
  await givePassword(directory, email)
}
