// Makes a program that runs in sandboxes and removes the types from TypeScript files that a caller's code imports. The program is
// the npm package sucrase, bundled at the first request.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { runCommand } from '#src/kit/run-command.ts'

let made: Promise<string> | undefined

const make = async (): Promise<string> => {
  const esbuild = fileURLToPath(import.meta.resolve(`@esbuild/linux-${process.arch}/bin/esbuild`))
  const entry = createRequire(import.meta.url).resolve('sucrase')
  const options = [
    '--bundle',
    '--minify',
    '--platform=node',
    '--target=node18',
    '--format=iife',
    '--global-name=sucrase',
  ]
  return await runCommand([esbuild, entry, ...options, '--log-level=error'], { timeoutMs: 30_000 })
}

/** Returns the text of a JavaScript expression. Its value is sucrase's function `transform`, which removes types. */
export const typeRemover = async (): Promise<string> => {
  made ??= make()
  try {
    return `(()=>{${await made};return sucrase.transform})()`
  } catch (error) {
    made = undefined
    throw error
  }
}
