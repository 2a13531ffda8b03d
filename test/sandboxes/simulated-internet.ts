// A simulated Internet for a test in namespaces of its own (private-host.ts): a DNS server, and HTTPS servers whose certificates
// the host trusts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { type Certified, makeAuthority, makeServerCertificate } from '#src/kit/certificate.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { nameServerIn } from '#src/runner/network/testing/name-server.ts'
import { preparePrivateHost } from '#src/runner/network/testing/private-host.ts'

const dns = '198.51.100.53'
const dayMs = 86_400_000

export type SimulatedInternet = AsyncDisposable & {
  certify: (names: string[]) => Certified
  /** Starts a program in the simulated Internet and waits for the first output. Returns the stream of the program's output. */
  start: (program: string, input: unknown) => Promise<Readable>
}

/** Mounts `content` over a file of the host. Only this test sees the content, because the test has its own mount namespace. */
const replaceFile = async (path: string, directory: string, name: string, content: string) => {
  await writeFile(join(directory, name), content)
  await runCommand(['mount', '--bind', join(directory, name), path])
}

/**
 * Starts the simulated Internet. `addresses`: the address of each host name, in 198.51.100.0/24. `directory`: the directory for
 * files that the simulated Internet needs.
 */
export const simulateInternet = async (
  directory: string,
  addresses: Record<string, string>,
): Promise<SimulatedInternet> => {
  await preparePrivateHost([...new Set(Object.values(addresses)), dns])
  await replaceFile('/etc/resolv.conf', directory, 'resolv.conf', `nameserver ${dns}\n`)
  const span = { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + dayMs) }
  const world = makeAuthority('The world', span)
  await replaceFile('/etc/ssl/certs/ca-certificates.crt', directory, 'world.pem', world.certificate)
  await using stack = new AsyncDisposableStack()
  const names = stack.use(await nameServerIn('outside', dns))
  const entries = Object.entries(addresses).map(([name, address]) => [name, { addresses: [address] }])
  await names.say(Object.fromEntries(entries))
  const kept = stack.move()
  return {
    certify: (names) => makeServerCertificate({ name: 'The world', ...world }, names, span),
    start: async (program, input) => {
      const child = spawn('nsenter', ['--net=/run/netns/outside', process.execPath, program], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      kept.defer(() => void child.kill('SIGKILL'))
      child.stdin.end(JSON.stringify(input))
      await once(child.stdout, 'data')
      return child.stdout
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
