// A PostgreSQL for tests: the real one, and quick, because what tests write need not survive the machine.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '#src/kit/log.ts'
import { startPostgres } from '#src/postgres/embedded.ts'

/** Any unprivileged uid that nobody else uses. */
const uid = 64_202

const memory = '/dev/shm'
const roomyBytes = 2 ** 30

/** Whether syncing costs nothing there, and this machine lets that much be kept and run there. */
const isRoomyMemory = () => {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const mount = mounts.find((line) => line.startsWith(`tmpfs ${memory} `))
  if (mount === undefined || /\bnoexec\b/.test(mount)) return false
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize > roomyBytes
}

export type TestPostgres = {
  /** Of a superuser. */
  url: string
  pid: number
  stop: () => Promise<void>
}

/** A test that is killed stops nothing; so somebody waits for the end of a pipe that only we hold open. */
const endAfterUs = (pid: number, place: string) => {
  const script = 'read -r _; kill -QUIT "$1"; timeout 10 tail --pid="$1" -f /dev/null; rm -rf -- "$2"'
  const guard = spawn('sh', ['-c', script, 'sh', String(pid), place], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.unref()
  ;(guard.stdin as Socket).unref()
  return guard
}

export const startTestPostgres = async (): Promise<TestPostgres> => {
  const place = mkdtempSync(join(isRoomyMemory() ? memory : tmpdir(), 'alcove-test-postgres-'))
  const remove = () => rmSync(place, { recursive: true, force: true })
  chmodSync(place, 0o711)
  const { url, pid, stop } = await startPostgres({
    directory: join(place, 'data'),
    socketDirectory: join(place, 'socket'),
    uid,
    gid: uid,
    log: silentLog(),
  }).catch((error) => {
    remove()
    throw error
  })
  const guard = endAfterUs(pid, place)
  return {
    url,
    pid,
    stop: async () => {
      guard.kill('SIGKILL')
      await stop()
      remove()
    },
  }
}
