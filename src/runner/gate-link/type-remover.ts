// The program that takes types out of files inside the sandbox: sucrase in one piece, made when it is first needed. What the
// caller sends is compiled on the runner (compiler.ts), but the files that it imports are in the sandbox only.
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

/** An expression: its function `transform`. */
export const typeRemover = async (): Promise<string> => {
  made ??= make()
  try {
    return `(()=>{${await made};return sucrase.transform})()`
  } catch (error) {
    made = undefined
    throw error
  }
}
