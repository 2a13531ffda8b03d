// A program that bundles and compresses the pages of the dashboard. It is a process of its own, because it needs much memory and
// runs the code of many packages.
//   node process.ts SOURCE OUT
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'vite'
import { isCompressible } from '#src/wire/dashboard-files.ts'

/** Files with fewer bytes are not compressed, because compression would not make them smaller. */
const leastBytes = 1024

const compress = (path: string): void => {
  const bytes = readFileSync(path)
  if (!isCompressible(path) || bytes.length < leastBytes) return
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }))
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
}

const [source = '', out = ''] = process.argv.slice(2)

/** Prints the first lines of an error, which name the file and what is wrong in it, and ends the process. */
const complain = (error: Error & { errors?: readonly Error[] }): never => {
  const { message } = error.errors?.[0] ?? error
  const boxes = /[\u2500-\u257f]+/g
  const lines = stripVTControlCharacters(message).replaceAll(boxes, ' ').trim().split('\n')
  process.stderr.write(`${lines.slice(0, 4).join('\n')}\n`)
  process.exit(1)
}

// `native`: Node loads Vite's configuration. Otherwise Vite would write a file beside it, but the checkout may be read-only.
await build({
  root: source,
  configLoader: 'native',
  logLevel: 'silent',
  build: { outDir: out, emptyOutDir: true, reportCompressedSize: false },
}).catch(complain)
const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
for (const each of files) compress(join(each.parentPath, each.name))
