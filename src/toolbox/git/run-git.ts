// Runs the image's own git inside the sandbox, as the sandbox's user and never through a shell. It never asks, pages or
// opens an editor, its words are English so that failures.ts can read them, and everything of it has a bound.
import { constants } from 'node:os'
import { Problem } from '#src/problems.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { callersFault } from '#src/toolbox/running/start-failure.ts'
import { type RunningCommand, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { pathFrom } from '../agent/work-directory.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { problemOf } from './failures.ts'

const answerBytes = 16 * 1024 * 1024
const complaintBytes = 64 * 1024

/** Far more than a work tree of that many bytes of names has; whoever prints empty ones would have the gate busy. */
const mostRecords = 250_000

/** On SIGTERM git removes its lock files, and a clone what it has made so far. */
const graceMs = 5_000

export type GitOptions = {
  /** `name=value`, for this call only; they win over every configuration file. They are seen by all in the sandbox. */
  settings?: readonly string[]
  env?: Record<string, string>
  stdin?: string
}
type GitAnswer = { exitCode: number; stdout: Buffer; stderr: string }

export type Git = {
  /** Throws the Problem that fits when git fails. */
  run: (args: readonly string[], options?: GitOptions) => Promise<GitAnswer>
  /** Answers a failure like a success, for a caller who reads the exit code. */
  ask: (args: readonly string[], options?: GitOptions) => Promise<GitAnswer>
}

const quietly = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  // Empty is none; without them, git would look for a program that asks.
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  GIT_PAGER: 'cat',
  GIT_EDITOR: ':',
  GIT_SEQUENCE_EDITOR: ':',
  GIT_MERGE_AUTOEDIT: 'no',
  // A trace, if the sandbox wants one, holds no password.
  GIT_TRACE_REDACT: '1',
}

const always = ['protocol.ext.allow=never', 'color.ui=false', 'core.quotePath=false']

/** Ends git so that it can tidy up; the connection to the agent stays until it has, or until the grace is over. */
const endInOrder = (command: RunningCommand) => {
  command.kill(constants.signals.SIGTERM)
  const timer = setTimeout(() => {
    command.kill(constants.signals.SIGKILL)
    command.close()
  }, graceMs)
  command.exit.catch(() => undefined).finally(() => clearTimeout(timer))
}

const asProblem = (failure: StartFailed, spec: Parameters<typeof callersFault>[1]): Problem => {
  const cwd = (spec.cwd ?? '').slice(0, 1024)
  if (failure.stage === 'cwd' && (failure.errno === 'ENOENT' || failure.errno === 'ENOTDIR')) {
    return new Problem('git_repo_not_found', `directory not found: ${cwd}. There is no such directory.`, {
      cause: failure,
    })
  }
  if (failure.stage === 'cwd' && (failure.errno === 'EACCES' || failure.errno === 'EPERM')) {
    const sentence = `permission denied: ${cwd}. The sandbox user may not enter it.`
    return new Problem('file_access_denied', sentence, { cause: failure })
  }
  const fault = callersFault(failure, spec)
  return fault ?? new Problem('unprocessable', 'This sandbox has no git that could be started.', { cause: failure })
}

/** Bound to one directory of one sandbox, where things begin when none is given, and to one call's deadline. */
export const gitIn = (sandbox: ToolboxSandbox, deadline: Deadline, directory?: string): Git => {
  const ask: Git['ask'] = async (args, { settings = [], env = {}, stdin } = {}) => {
    using stdout = new BoundedOutput(sandbox.assignment.organizationId, answerBytes)
    using stderr = new BoundedOutput(sandbox.assignment.organizationId, complaintBytes)
    const spec = {
      argv: ['git', '--no-pager', ...[...always, ...settings].flatMap((setting) => ['-c', setting]), ...args],
      env: environmentOf(sandbox, { ...quietly, ...env }),
      ...(directory === undefined ? {} : { cwd: pathFrom(sandbox.workDirectory, directory) }),
      user: sandbox.assignment.user,
      ...(stdin === undefined ? {} : { stdin: Buffer.from(stdin) }),
      mergeOutput: false,
    }
    const take = (data: Buffer, stream: 'stdout' | 'stderr') => {
      // After its end was asked for, git may still say something that nobody waits for.
      if (!deadline.signal.aborted) (stream === 'stdout' ? stdout : stderr).add(data)
    }
    const { exitCode } = await runToEnd(sandbox.agent, spec, deadline, take, endInOrder).catch((error) => {
      throw error instanceof StartFailed ? asProblem(error, spec) : error
    })
    if (stdout.droppedBytes > 0) throw new Problem('unprocessable', 'The answer of git is too long.')
    return { exitCode, stdout: stdout.bytes(), stderr: stderr.text() }
  }
  return {
    ask,
    run: async (args, options) => {
      const answer = await ask(args, options)
      if (answer.exitCode !== 0) throw problemOf(answer)
      return answer
    },
  }
}

/** What git has answered, cut apart at each `end`. The git is the sandbox's, so it may be any program. */
export const recordsOf = (stdout: Buffer, end: '\0' | '\n', encoding: BufferEncoding = 'utf8'): string[] => {
  const records = stdout.toString(encoding).split(end, mostRecords + 1)
  if (records.length > mostRecords) throw new Problem('unprocessable', 'The answer of git is too long.')
  return records
}

/**
 * How git takes a list of files from its input, so that no list is too long and no name is taken for an option, nor for
 * a pattern: what callers name are files, whatever characters they are made of.
 */
export const fileList = (files: readonly string[]) => ({
  args: ['--pathspec-from-file=-', '--pathspec-file-nul'],
  options: { stdin: files.join('\0'), env: { GIT_LITERAL_PATHSPECS: '1' } },
})
