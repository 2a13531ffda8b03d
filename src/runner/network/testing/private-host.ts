// For tests that change the host's network: runs the test file again, in a process with network and mount namespaces of its own.
import { execFile } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { runCommand } from '#src/kit/run-command.ts'

const marker = '--private-host'

export const isPrivateHost = process.argv.includes(marker)

/** Runs the test file `file` in namespaces of its own. If a test in that file fails, throws an error with the output. */
export const runOnPrivateHost = (file: string, timeoutMs = 300_000) =>
  new Promise<void>((resolve, reject) => {
    const argv = ['--net', '--mount', '--propagation', 'private', process.execPath, file, marker]
    // With NODE_TEST_CONTEXT, the new process would not print its results as text.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    execFile('unshare', argv, { env, timeout: timeoutMs, killSignal: 'SIGKILL' }, (error, stdout, stderr) =>
      error === null ? resolve() : reject(new Error(`${error.message}\n${stdout}\n${stderr}`)),
    )
  })

// Unmounts the host's loop devices in this mount namespace, which began as a copy of the host's mounts. Otherwise a server on the
// host could not release its pool's disk image.
const letGoOfLoopDevices = async () => {
  const findMounts = async () =>
    (await readFile('/proc/self/mountinfo', 'utf8'))
      .split('\n')
      .filter((line) => / - \S+ \/dev\/loop/.test(line))
      .map((line) => line.split(' ')[4] ?? '')
  for (const place of (await findMounts()).reverse()) {
    await runCommand(['umount', '--lazy', place]).catch(async (error) => {
      // The mount may be gone already: when a directory is removed on the host, the kernel unmounts all mounts on this directory in
      // other namespaces.
      if ((await findMounts()).includes(place)) throw error
    })
  }
}

/**
 * A network namespace that simulates the Internet. This namespace is connected to the namespace of the test, and tests start their
 * servers in it.
 */
type Outside = { netns: string }

export const wayOut = '198.51.100.1'

/** Makes `addresses`, and nothing else, reachable from the namespace of the test, through a router. */
export const preparePrivateHost = async (addresses: readonly string[]): Promise<Outside> => {
  await letGoOfLoopDevices()
  await runCommand(['mount', '-t', 'tmpfs', 'tmpfs', '/run'])
  await mkdir('/run/netns')
  const netns = 'outside'
  await runCommand(['ip', '-batch', '-'], {
    input: [
      'link set lo up',
      `netns add ${netns}`,
      `link add up0 type veth peer name eth0 netns ${netns}`,
      `addr add ${wayOut}/24 dev up0`,
      'link set up0 up',
    ].join('\n'),
  })
  await runCommand(['ip', '-n', netns, '-batch', '-'], {
    input: [
      'link set lo up',
      'addr add 198.51.100.2/24 dev eth0',
      'link set eth0 up',
      ...addresses.map((address) => `addr add ${address}/32 dev lo`),
    ].join('\n'),
  })
  await runCommand(['ip', 'route', 'add', 'default', 'via', '198.51.100.2'])
  return { netns }
}
