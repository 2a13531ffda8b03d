// The files of the built dashboard: `up` builds them, and control serves them.
import { extname } from 'node:path'

/** The content type of each kind of file that the build may have. Other files are not served. */
export const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** Whether the build stores compressed copies beside this file: `name.br` and `name.gz`. */
export const isCompressible = (name: string): boolean => /[;+]|json/.test(contentTypes[extname(name)] ?? '')

/** The encodings of these copies, best first, and the ends of their names. */
export const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/**
 * The file beside the directory of a build that says, in one sentence, why there is no build. `up` writes it when the build
 * has failed, and control shows the sentence.
 */
export const reasonBeside = (directory: string): string => `${directory}.failed`
