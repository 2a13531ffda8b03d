// Splits and joins paths inside a sandbox. `..` stays for the kernel to resolve: if `a/link` leads to `/b/c`, then `a/link/..` is
// `/b`.

/** The path of `name` in a directory. */
export const join = (directory: string, name: string): string =>
  directory.endsWith('/') ? `${directory}${name}` : `${directory}/${name}`

/** The directory that contains the file or directory at this path. For `/`, it is `/` itself. */
export const parentOf = (path: string): string => {
  const trimmed = path.replace(/\/+$/, '')
  const slash = trimmed.lastIndexOf('/')
  return slash <= 0 ? '/' : trimmed.slice(0, slash)
}

export const nameOf = (path: string): string => path.split('/').findLast((part) => part !== '') ?? '/'

/** The directories from the root down to the path, and the path itself, each with its name. */
export const crumbsOf = (path: string): { name: string; path: string }[] => {
  const crumbs = [{ name: '/', path: '/' }]
  for (const name of path.split('/').filter((part) => part !== '')) {
    crumbs.push({ name, path: join(crumbs.at(-1)!.path, name) })
  }
  return crumbs
}

const longestNameBytes = 255

/** Says in a sentence why Linux would refuse a file name. Undefined if the name is valid. */
export const problemOfName = (name: string): string | undefined => {
  if (name === '') return 'A name is needed.'
  if (name === '.' || name === '..') return `"${name}" always means a directory. Choose another name.`
  if (name.includes('/')) return 'A name cannot contain a slash.'
  if (name.includes('\0')) return 'A name cannot contain a NUL character.'
  const bytes = new TextEncoder().encode(name).length
  return bytes > longestNameBytes ? `The name has ${bytes} bytes; at most ${longestNameBytes} are allowed.` : undefined
}
