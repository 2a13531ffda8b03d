// Measures podman for comparison, if it is installed, in the same run as Alcove. The containers have the root file system of
// Alcove's sandboxes and no network.
import { runCommand } from '#src/kit/run-command.ts'

export type Podman = {
  /** Runs the command that the function `openPodman` was given, in a new container (`podman run --rm`). */
  runOnce: () => Promise<void>
  /** Starts the container in which `exec` runs commands. */
  start: () => Promise<void>
  exec: () => Promise<void>
  [Symbol.asyncDispose]: () => Promise<void>
}

const name = 'alcove-bench'

/** Prepares podman. Returns `undefined` if it is not installed, or cannot run a container on this machine. */
export const openPodman = async (rootfs: string, command: readonly string[]): Promise<Podman | undefined> => {
  // Podman's default limits for files and processes are higher than some machines allow, so lower ones are set.
  const common = ['--runtime', 'crun', '--cgroup-manager', 'cgroupfs']
  const flags = [
    '--network',
    'none',
    '--ulimit',
    'nofile=16384:16384',
    '--ulimit',
    'nproc=4096:4096',
    '--rootfs',
    `${rootfs}:O`,
  ]
  const podman = async (...args: string[]) => {
    // On a host with both cgroup versions, crun works only if it cannot see the mount of cgroup v2.
    const hidden = 'umount -l /sys/fs/cgroup/unified 2>/dev/null || :; exec "$@"'
    const sight = ['unshare', '-m', '--propagation', 'private', 'sh', '-c', hidden, 'sh']
    await runCommand([...sight, 'podman', ...common, ...args], { timeoutMs: 60_000 })
  }
  const runOnce = () => podman('run', '--rm', ...flags, ...command)
  try {
    await runOnce()
  } catch (error) {
    console.log(`podman is left out: ${error instanceof Error ? error.message.split('\n').at(-1) : error}`)
    return undefined
  }
  return {
    runOnce,
    start: () => podman('run', '--detach', '--name', name, ...flags, 'sleep', '1000'),
    exec: () => podman('exec', name, ...command),
    [Symbol.asyncDispose]: () => podman('rm', '--force', '--time', '0', name),
  }
}
