// Facts about the files of the dashboard. They are used by `up`, which builds the dashboard, and control, which serves it.
import { extname } from 'node:path'

/** The content type for each file extension that a build may contain. Files with other extensions are not served. */
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

/** Whether the build puts compressed copies beside this file, as `name.br` and `name.gz`. */
export const isCompressible = (name: string): boolean => /[;+]|json/.test(contentTypes[extname(name)] ?? '')

/** The encodings of the compressed copies, with their file extensions. The best encoding comes first. */
export const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/** Returns the path of the file in which `up` writes one sentence for control: why the dashboard could not be built. */
export const reasonBeside = (directory: string): string => `${directory}.failed`
