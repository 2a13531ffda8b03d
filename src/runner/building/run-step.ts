// Runs a RUN line of a Dockerfile in the sandbox of its stage.
import { StringDecoder } from 'node:string_decoder'
import { StartFailed } from '#src/toolbox/agent/agent.ts'
import { ownDirectory } from '../copying/sandbox-source.ts'
import type { RunStep } from '../images/definition/plan.ts'
import { ImageFailed } from '../images/image-failed.ts'
import type { BuildAgent, Workplace } from './workplace.ts'

/** Maximum number of bytes that an error message quotes from the end of a failed command's output. */
const longestTail = 1200

type Running = { signal: AbortSignal; onText: (text: string) => void }

const sentences = {
  user: 'there is no such user in the image',
  cwd: 'the working directory cannot be entered',
  exec: 'the program of this line cannot be run',
}

const fail = (why: string, cause?: unknown) => new ImageFailed('build-failed', why, { cause })

const scriptPath = `${ownDirectory}/script`

export const runCommandOf = async (place: Workplace, step: RunStep, { signal, onText }: Running): Promise<void> => {
  const { argv, env, user, workdir, script } = step
  const agent = place.agent()
  if (script !== undefined) {
    await agent.files('0').mkdir(ownDirectory, 0o755)
    await agent.files('0').write(scriptPath, [Buffer.from(script)], { mode: 0o755 })
  }
  const spec = { argv: script === undefined ? argv : [scriptPath], env, cwd: workdir, mergeOutput: true }
  const command = await startAs(agent, user, spec)
  const giveUp = () => command.close()
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    onText(`Line ${step.line}: ${script ?? argv.at(-1)}\n`)
    const decoder = new StringDecoder('utf8')
    let tail = Buffer.alloc(0)
    for await (const { data } of command) {
      onText(decoder.write(data))
      tail = Buffer.concat([tail, data]).subarray(-longestTail - 1)
    }
    onText(decoder.end())
    const { exitCode } = await command.exit
    signal.throwIfAborted()
    if (exitCode !== 0) throw fail(`exit code ${exitCode}${saidBefore(tail)}${withoutSecrets(step)}`)
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
  if (script !== undefined) await agent.files('0').remove(scriptPath)
}

const startAs = async (
  agent: BuildAgent,
  user: string,
  spec: Omit<Parameters<BuildAgent['exec']>[0], 'user'>,
): ReturnType<BuildAgent['exec']> => {
  try {
    return await agent.exec({ ...spec, user: user === '' ? '0' : user })
  } catch (error) {
    if (error instanceof StartFailed) throw fail(`${sentences[error.stage]} (${error.errno})`, error)
    throw fail('the sandbox of the build does not answer', error)
  }
}

/** Returns the last whole lines of an output, at most `longestTail` bytes. If the last line alone is longer, returns its end. */
export const lastLines = (output: Buffer): string => {
  if (output.length <= longestTail) return output.toString('utf8').trim()
  // The tail is one byte longer than the limit. If its first byte is a line break, a whole line follows.
  const tail = output.subarray(-longestTail - 1)
  const whole = tail
    .subarray(tail.indexOf('\n') + 1)
    .toString('utf8')
    .trim()
  return whole === '' || !tail.includes('\n') ? tail.subarray(1).toString('utf8').trim() : whole
}

const saidBefore = (tail: Buffer): string => {
  const text = lastLines(tail)
  return text === '' ? '' : `\n${text}`
}

/**
 * Returns a sentence that names the secrets that the command did not get. The command's output rarely says that a missing secret
 * is why it failed.
 */
const withoutSecrets = ({ mounts = [] }: RunStep): string => {
  const wanted = mounts.flatMap((mount) => (mount.type === 'secret' || mount.type === 'ssh' ? [mount.id] : []))
  return wanted.length === 0
    ? ''
    : `\nThe command ran without ${wanted.join(', ')}: builds get no secrets and no SSH keys.`
}
