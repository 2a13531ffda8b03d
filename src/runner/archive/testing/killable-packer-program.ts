// A program that packs a disk until the test kills it: `node killable-packer-program.ts STORE DISK`. It prints a line after each
// stored chunk.
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
