// A process that packs a disk until it is killed: `node doomed-packer.ts STORE DISK`. A line for each chunk that is safe.
import { packDisk } from '../pack.ts'
import { openStore } from '../store.ts'
import { diskIn } from './disks.ts'

const [path = '', directory = ''] = process.argv.slice(2)
await packDisk({
  store: openStore({ kind: 'directory', path }),
  sandboxId: 'box',
  archiveId: 'first',
  disk: diskIn(directory),
  onProgress: ({ bytes }) => process.stdout.write(`${bytes}\n`),
})
