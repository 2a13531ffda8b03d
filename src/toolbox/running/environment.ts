import { Problem } from '#src/problems.ts'

const validName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Throws a 400 if a shell cannot accept one of the variable names. The error contains the first such name. */
export const checkEnvironment = (envs: Record<string, string>): void => {
  for (const name of Object.keys(envs)) {
    if (!validName.test(name)) {
      throw new Problem(
        'bad_request',
        `envs: ${JSON.stringify(name.slice(0, 100))} is not a valid name of an environment variable`,
      )
    }
  }
}
