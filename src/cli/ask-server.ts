// Calls the server of a data directory with the admin key that is stored in this directory.
import { callServer } from '#client/src/call.ts'
import { Complaint } from '#src/up/complaint.ts'
import { findAdminKey, findDataDirectory } from '#src/up/data-directory.ts'
import { findRunningUp, isJoinedRunner } from '#src/up/state-file.ts'

/**
 * Returns the URL and the admin key of the server of a data directory. Throws a Complaint (an error for the user) if no server
 * runs.
 */
export const serverOf = (directory: string): { url: string; key: string; hosts?: string | undefined } => {
  const data = findDataDirectory(directory)
  const up = data && findRunningUp(data.stateFile)
  if (data === undefined || !up) throw new Complaint(`no server is running with the data directory ${directory}`)
  if (isJoinedRunner(up)) {
    throw new Complaint(`${directory} belongs to a runner, not to a server. Give the --data of its server, ${up.url}`)
  }
  const key = findAdminKey(data)
  if (key === undefined) throw new Complaint(`the key of the server, ${data.secrets}/admin.key, no longer exists`)
  const host = up.host === '0.0.0.0' ? '127.0.0.1' : up.host.includes(':') ? `[${up.host}]` : up.host
  return { url: `http://${host}:${up.port}`, key, hosts: up.hosts }
}

/**
 * Sends a request to the server. Throws a Failure (the client's error for the user) if the server refuses the request or
 * does not answer. Throws a Complaint if no server runs in the directory.
 */
export const askServer = async <Answer>(
  directory: string,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> => {
  const { url, key } = serverOf(directory)
  return await callServer<Answer>(`${url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}
