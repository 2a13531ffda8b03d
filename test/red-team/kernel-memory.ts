// Attacks that once filled the kernel's memory with objects that no limit counted. test/kernel-memory tries all kinds of objects.
// The memory of the whole host is measured, so the host should be idle.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cgroupAt } from '#src/runner/cgroup/cgroup.ts'
import { readLayout } from '#src/runner/cgroup/layout.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { attacks, buildAttacks, holds, measureAttack } from '../kernel-memory/attacks.ts'
import type { Box } from '../sandboxes/box.ts'
import type { Platform } from '../sandboxes/harness.ts'
import { type Attack, unless } from './attack.ts'

const tried = ['acl-shm', 'acl-memfd', 'acl-memfd-at', 'aio-polls', 'aio-contexts', 'poll-tables', 'tcp-keys']
const seconds = 0.8

const upload = async ({ key }: Platform, { id, record }: Box, program: Buffer) => {
  const body = new FormData()
  body.append('file', new Blob([new Uint8Array(program)]), 'attacks')
  const url = `${record['toolboxProxyUrl']}/${id}/files/upload?path=/usr/local/bin/attacks`
  const reply = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body })
  if (!reply.ok) throw new Error(`the attacks could not be uploaded: ${reply.status} ${await reply.text()}`)
}

export const attackOnKernelMemory: Attack = {
  name: 'fill memory of the kernel that no limit counts',
  boundary: 'sandbox → resources',
  try: async ({ platform, root }) => {
    const scratch = await mkdtemp(join(tmpdir(), 'alcove-red-team-'))
    try {
      buildAttacks(join(scratch, 'attacks'))
      await upload(platform, root, await readFile(join(scratch, 'attacks')))
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
    await root.run('chmod 755 /usr/local/bin/attacks')
    const { instance } = dataDirectoryAt(platform.data)
    const cgroup = cgroupAt(readLayout(), `/alcove-${instance}/${root.id}`)
    const run = async (line: string) => (await root.try(line)).result
    const got: string[] = []
    for (const attack of attacks.filter(({ name }) => tried.includes(name))) {
      const measure = () => measureAttack(attack.name, seconds, { cgroup, run })
      // Other programs of the host influence the measurement. So an attack counts as successful only if two measurements show
      // success.
      if (holds(attack, await measure())) continue
      const again = await measure()
      if (!holds(attack, again)) got.push(`${attack.object}: ${Math.round(again.unchargedMiB)} MiB`)
    }
    return unless(got, `${tried.length} kinds of objects stay small, or are refused`)
  },
}
