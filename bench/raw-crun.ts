// The lower bound for starts and commands: crun without Alcove's programs. The containers have the root file system, namespaces,
// seccomp filter and limits of a sandbox.
import { chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '#src/kit/run-command.ts'
import { uidBase, uidCount } from '#src/runner/oci/ids.ts'

type Config = {
  process: { args: string[] }
  linux: {
    cgroupsPath: string
    uidMappings: unknown
    gidMappings: unknown
    namespaces: { type: string; path?: string }[]
  }
  root: { path: string }
  mounts: { source: string; destination: string }[]
}

export type RawCrun = {
  /**
   * Mounts a new disk and starts a container on it. Then runs in the container the command that the function `openRawCrun` was
   * given.
   */
  createAndExec: (id: string) => Promise<void>
  /** Runs the command with `crun exec` in a running container. */
  exec: (id: string) => Promise<void>
  remove: (id: string) => Promise<void>
  [Symbol.asyncDispose]: () => Promise<void>
}

/**
 * Makes containers by crun alone, with the OCI configuration of the running sandbox `model`. A shell script mounts their overlay in
 * a private mount namespace. `hidden`: a mount that crun must not see on a host with both cgroup versions.
 */
export const openRawCrun = async (
  model: string,
  lower: string,
  directory: string,
  hidden: string,
  command: readonly string[],
): Promise<RawCrun> => {
  const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as Config
  const netns = 'alcove-bench'
  await runCommand(['ip', 'netns', 'add', netns])
  mkdirSync(directory, { recursive: true })
  const crun = ['crun', '--root', join(directory, 'state'), '--cgroup-manager', 'cgroupfs']
  const shell = async (text: string, id: string) => {
    await runCommand([
      'unshare',
      '-m',
      '--propagation',
      'private',
      'sh',
      '-ec',
      text,
      'sh',
      id,
      directory,
      lower,
      hidden,
    ])
  }
  const hide = 'if [ -n "$4" ]; then umount -l "$4"; fi'

  // crun changes the owner of its stdin. So stdin is a file of this benchmark, and not the host's /dev/null.
  const exec = (id: string) =>
    shell(`${hide}; exec ${crun.join(' ')} exec "$1" ${command.join(' ')} <"$2/$1/config.json"`, id)

  return {
    createAndExec: async (id) => {
      const bundle = join(directory, id)
      mkdirSync(bundle, { recursive: true })
      const rootfs = join(bundle, 'rootfs')
      const own = structuredClone(config)
      own.process.args = ['sleep', '1000']
      own.root.path = rootfs
      own.linux.cgroupsPath = `/alcove-bench/${id}`
      // The overlay mount below maps no user ids. The container's root must be the user id `uidBase`, because this user owns the
      // files.
      own.linux.uidMappings = own.linux.gidMappings = [{ containerID: 0, hostID: uidBase, size: uidCount }]
      for (const namespace of own.linux.namespaces) {
        if (namespace.type === 'network') namespace.path = `/run/netns/${netns}`
      }
      own.mounts = own.mounts.filter(({ source }) => !source.startsWith('/run/alcove'))
      writeFileSync(join(bundle, 'config.json'), JSON.stringify(own))
      for (const name of ['upper', 'work', 'rootfs']) mkdirSync(join(bundle, name))
      chownSync(join(bundle, 'upper'), uidBase, uidBase)
      await shell(
        `${hide}; b="$2/$1"; mount -t overlay overlay -o "lowerdir=$3,upperdir=$b/upper,workdir=$b/work" "$b/rootfs"
         exec ${crun.join(' ')} run --detach --bundle "$b" "$1" <"$b/config.json" >"$b/log" 2>&1`,
        id,
      )
      await exec(id)
    },
    exec,
    remove: async (id) => {
      await shell(`${hide}; exec ${crun.join(' ')} delete --force "$1"`, id)
      rmSync(join(directory, id), { recursive: true, force: true })
    },
    [Symbol.asyncDispose]: async () => {
      await runCommand(['ip', 'netns', 'delete', netns])
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
