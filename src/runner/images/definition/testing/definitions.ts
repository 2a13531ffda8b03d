// Reads the typical Dockerfiles in `definitions.txt`. In that file, a line with a name comes before each Dockerfile. If the
// Dockerfile has to be refused, the line also contains the expected error.
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
