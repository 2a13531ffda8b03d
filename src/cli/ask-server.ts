// A call to the server of a data directory, with the operator's key that lies there.
import { Complaint } from '#src/up/complaint.ts'
import { findAdminKey, findDataDirectory } from '#src/up/data-directory.ts'
import { findRunningUp } from '#src/up/state-file.ts'

/** Throws a Complaint with what the server says. */
export const askServer = async <Answer>(
  directory: string,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> => {
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
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await reply.text()
  const answer = text === '' ? {} : JSON.parse(text)
  if (!reply.ok) throw new Complaint(answer.message ?? `the server answered ${reply.status}`)
  return answer as Answer
}
