// `alcove control` runs control alone, in the foreground, as any user. It installs and compiles nothing.
import { existsSync } from 'node:fs'
import { nodeCommand } from '#src/kit/own-code.ts'
import { Complaint } from '#src/up/complaint.ts'
import { defaultCacheDirectory, defaultMostWarm, defaultOvercommit } from '#src/up/config.ts'
import { findDashboardPlace } from '#src/up/dashboard/ensure.ts'

/**
 * Returns the directory of the built dashboard of this version. Undefined if neither `up` nor a package has built it.
 */
const builtPages = (cacheDirectory: string): string | undefined => {
  try {
    const { directory } = findDashboardPlace(cacheDirectory)
    return existsSync(directory) ? directory : undefined
  } catch {
    // The user of this command has no right to create a directory in the cache. Control then serves the API without the dashboard.
    return undefined
  }
}

/** Returns the environment of control: `env`, with defaults for settings that `up` would provide. */
export const controlEnvironment = (
  env: NodeJS.ProcessEnv,
  pagesIn: (cacheDirectory: string) => string | undefined = builtPages,
): NodeJS.ProcessEnv => {
  const pages = env['ALCOVE_DASHBOARD_DIR'] || pagesIn(env['ALCOVE_CACHE_DIR'] || defaultCacheDirectory)
  const database = env['ALCOVE_DATABASE_URL'] || env['DATABASE_URL']
  return {
    ALCOVE_LISTEN: '127.0.0.1:4600',
    ALCOVE_MOST_WARM: String(defaultMostWarm),
    ALCOVE_OVERCOMMIT: defaultOvercommit,
    ...env,
    ...(database === undefined ? {} : { ALCOVE_DATABASE_URL: database }),
    ...(pages === undefined ? {} : { ALCOVE_DASHBOARD_DIR: pages }),
  }
}

/** Replaces this process by control, so that a service manager's signals reach control. Does not return. */
export const runControl = (env: NodeJS.ProcessEnv): never => {
  const command = nodeCommand('bin/control.ts')
  const [file = ''] = command
  if (process.execve === undefined) throw new Complaint('this Node cannot replace its process')
  return process.execve(file, command, controlEnvironment(env) as Record<string, string>)
}
