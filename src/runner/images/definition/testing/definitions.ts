// Reads the Dockerfiles in `definitions.txt`. A line before each Dockerfile has its name and, if the Dockerfile must be refused,
// the expected error.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const text = readFileSync(join(import.meta.dirname, 'definitions.txt'), 'utf8')

export const definitions = text
  .split(/^=== /m)
  .slice(1)
  .map((part) => {
    const [head = ''] = part.split('\n', 1)
    const [name = '', refusal] = head.split(' · refused: ')
    return { name, refusal, dockerfile: part.slice(head.length + 1) }
  })
