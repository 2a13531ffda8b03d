// The environment variables that the command line reads.
import { homedir } from 'node:os'
import { join } from 'node:path'

export const readCliConfig = (env: NodeJS.ProcessEnv): { configDirectory: string } => ({
  // The XDG Base Directory Specification says that a relative path must be ignored.
  configDirectory: env['XDG_CONFIG_HOME']?.startsWith('/') ? env['XDG_CONFIG_HOME'] : join(homedir(), '.config'),
})
