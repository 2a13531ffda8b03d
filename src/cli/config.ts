// The environment variables that the command line reads.
import { homedir } from 'node:os'
import { join } from 'node:path'

export const readCliConfig = (env: NodeJS.ProcessEnv): { configDirectory: string } => ({
  // A relative path is ignored, as the XDG Base Directory Specification says.
  configDirectory: env['XDG_CONFIG_HOME']?.startsWith('/') ? env['XDG_CONFIG_HOME'] : join(homedir(), '.config'),
})
