#!/usr/bin/env node
// Starts the program. The published package contains the built program. In a checkout, this file builds it if its source
// has changed, so that `npx --package ./client alcove` works in a fresh clone: npm only links a directory, and npm 12 runs
// no scripts.
import { existsSync } from 'node:fs'
import module from 'node:module'

const here = (path) => new URL(path, import.meta.url)

if (Number(process.versions.node.split('.')[0]) < 20) {
  console.error(`alcove: this needs Node 20 or newer, and this is Node ${process.versions.node}`)
  process.exit(69)
}
module.enableCompileCache?.()
if (existsSync(here('../src/main.ts'))) {
  const { build } = await import('../build.js')
  await build()
}
await import('../dist/alcove.js')
