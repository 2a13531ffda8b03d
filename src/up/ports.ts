// Checks that all ports are free before any program starts, so that an error can name the port.
import { createServer } from 'node:net'
import { Complaint } from './complaint.ts'

const tryPort = (host: string, port: number) =>
  new Promise<string | undefined>((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })

/** Throws an error for the operator that names the first port that is not free. */
export const checkPortsAreFree = async (ports: readonly { host: string; port: number }[]): Promise<void> => {
  for (const { host, port } of ports) {
    const refusal = await tryPort(host, port)
    if (refusal === undefined) continue
    if (refusal === 'EADDRINUSE') {
      throw new Complaint(
        `port ${port} on ${host} is in use; give another with --port N (Alcove takes N, N+1 and N+2, and with --hosts N+3 and N+4; ALCOVE_SSH_LISTEN moves N+2)`,
      )
    }
    throw new Complaint(`cannot listen on ${host}:${port}: ${refusal}`)
  }
}
