// The environment variables that the command line reads.
import { homedir } from 'node:os'
import { join } from 'node:path'

export const readCliConfig = (env: NodeJS.ProcessEnv): { configDirectory: string } => ({
  // XDG Base Directory Specification: a relative path is ignored.
  configDirectory: env['XDG_CONFIG_HOME']?.startsWith('/') ? env['XDG_CONFIG_HOME'] : join(homedir(), '.config'),
})
