// Defines the commands for users. Two programs have these commands: this package's program, and the server's own command line
// (src/cli). The code of a command is loaded when the command runs.
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { Api } from './api.ts'
import { shells } from './complete/shells.ts'
import { exitCodes } from './failure.ts'
import { handOn } from './hand-on.ts'
import { Interruption } from './interruption.ts'
import type { CreateOptions } from './sandboxes/create.ts'
import type { ListOptions } from './sandboxes/list.ts'
import { type Access, defaultServer } from './session/access.ts'
import type { SnapshotOptions } from './snapshots/snapshots.ts'

/** The first parameter of each function that carries out a command. */
export type Work = {
  api: Api
  interruption: Interruption
  env: NodeJS.ProcessEnv
}

/**
 * The options that all commands have. Only the server's own command line has the option `data`, which names the server's data
 * directory.
 */
type Options = { organization?: string; data?: string }
type Json = { json?: boolean }

export type Host = {
  /** Returns the address of the server and the credential for it. Throws a Failure if the user has to sign in first. */
  connect: (options: Options) => Promise<Access>
  /** More options with which the user chooses the server of a command, such as `--data`. */
  options?: () => Option[]
  /** Returns the address of the server that the command line's options choose. */
  serverUrl?: (options: Options) => Promise<string | undefined>
  env: NodeJS.ProcessEnv
}

const whole =
  (least: number) =>
  (text: string): number => {
    if (!/^\d{1,9}$/.test(text) || Number(text) < least)
      throw new InvalidArgumentError(`it must be a whole number of at least ${least}`)
    return Number(text)
  }

const several = (text: string, before: string[] | undefined): string[] => [...(before ?? []), text]

const jsonOption = () => new Option('--json', 'print JSON')

/** Exits with code 64 after a wrong command line, and with 0 after help was shown. */
const exitOnUsage = (command: Command): Command =>
  command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exitCodes.usage))

export const addCommands = (program: Command, host: Host): void => {
  // Makes an option after the name of a subcommand belong to the subcommand.
  program.enablePositionalOptions()
  const connecting = () => [
    new Option(
      '--organization <id>',
      'use this organization; default: the organization of the key, or your personal organization',
    ).env('ALCOVE_ORGANIZATION_ID'),
    ...(host.options?.() ?? []),
  ]

  /** Adds a command to `parent` and returns it. */
  const add = (
    parent: Command,
    name: string,
    description: string,
    options: Option[] = [],
    kind: { isDefault?: boolean } = {},
  ): Command => {
    const command = exitOnUsage(parent.command(name, kind).description(description))
    for (const option of [...options, ...connecting()]) command.addOption(option)
    return command
  }

  const group = (name: string, description: string): Command => {
    const found = program.commands.find((command) => command.name() === name)
    const made = found ?? exitOnUsage(program.command(name).description(description))
    const missing = connecting().filter(({ long }) => !made.options.some((option) => option.long === long))
    for (const option of missing) made.addOption(option)
    return made.enablePositionalOptions().hook('preSubcommand', handOn)
  }

  const working =
    <Given, Args extends unknown[]>(work: (work: Work, options: Given, ...args: Args) => Promise<unknown>) =>
    async (...args: unknown[]): Promise<void> => {
      const options = args.at(-2) as Options
      using interruption = new Interruption()
      const { signal } = interruption
      try {
        const api = new Api(await host.connect(options), { organization: options.organization, signal })
        const code = await work({ api, interruption, env: host.env }, options as Given, ...(args.slice(0, -2) as Args))
        process.exitCode = typeof code === 'number' ? code : 0
      } catch (error) {
        throw signal.aborted ? signal.reason : error
      }
    }

  const sizes = () => [
    new Option('--cpu <n>', 'processors').argParser(whole(1)),
    new Option('--memory <n>', 'memory, in GiB').argParser(whole(1)),
    new Option('--disk <n>', 'disk, in GiB').argParser(whole(1)),
  ]
  const making = () => [
    new Option('--image <image>', 'make the sandbox from this image of a registry').conflicts('snapshot'),
    new Option('--snapshot <snapshot>', 'make the sandbox from this snapshot'),
    new Option('--name <name>', 'the name of the sandbox'),
    new Option(
      '-e, --env <name=value>',
      'a variable of the sandbox; with a name alone, the value of your own variable',
    ).argParser(several),
    ...sizes(),
  ]

  add(program, 'run', 'make a sandbox, run a command in it, and delete the sandbox', [
    ...making(),
    new Option('--keep', 'do not delete the sandbox'),
  ])
    .argument('<command...>', 'the command with its arguments, after --')
    .passThroughOptions()
    .action(
      working(async (work, options: CreateOptions & { keep?: boolean }, argv: string[]) =>
        (await import('./command/run.ts')).run(work, argv, options),
      ),
    )

  add(program, 'exec', 'run a command in a sandbox', [
    new Option(
      '-e, --env <name=value>',
      'a variable of the command; with a name alone, the value of your own variable',
    ).argParser(several),
  ])
    .argument('<sandbox>', 'id or name')
    .argument('<command...>', 'the command with its arguments, after --')
    .passThroughOptions()
    .action(
      working(async (work, options: { env?: string[] }, sandbox: string, argv: string[]) =>
        (await import('./command/run.ts')).exec(work, sandbox, argv, options),
      ),
    )

  const sandbox = group('sandbox', 'sandboxes: make, list, start, stop, delete them …').alias('sandboxes')
  const verbs = () => import('./sandboxes/verbs.ts')
  add(sandbox, 'create', 'make a sandbox, and print its id', [
    ...making(),
    new Option('--label <name=value>', 'a label').argParser(several),
    new Option('--auto-stop <minutes>', 'stop the sandbox after this time without use; 0: never').argParser(whole(0)),
    jsonOption(),
  ]).action(working(async (work, options: CreateOptions & Json) => (await verbs()).createSandbox(work, options)))
  add(
    sandbox,
    'list',
    'list the sandboxes',
    [
      new Option('--state <state>', 'only sandboxes in this state; may be given several times').argParser(several),
      new Option('--label <name=value>', 'only sandboxes with this label').argParser(several),
      new Option('--name <prefix>', 'only sandboxes whose name begins with this text'),
      jsonOption(),
    ],
    { isDefault: true },
  ).action(
    working(async ({ api }, options: ListOptions) => (await import('./sandboxes/list.ts')).listSandboxes(api, options)),
  )
  add(sandbox, 'info', 'show a sandbox', [jsonOption()])
    .argument('<sandbox>', 'id or name')
    .action(working(async ({ api }, options: Json, name: string) => (await verbs()).showSandbox(api, name, options)))
  const moves = {
    start: 'start sandboxes that are stopped, paused or archived',
    stop: 'stop sandboxes and end their processes',
    pause: 'freeze sandboxes and all their processes; start lets them continue',
    archive: 'move the disks of sandboxes to the object store; start brings the sandboxes back',
  } as const
  for (const verb of ['start', 'stop', 'pause', 'archive'] as const) {
    const options =
      verb === 'stop' ? [new Option('--force', 'stop immediately, without asking the processes to end')] : []
    const moving = add(sandbox, verb, moves[verb], [...options, jsonOption()])
      .argument('<sandboxes...>', 'ids or names')
      .action(
        working(async ({ api }, options: Json & { force?: boolean }, names: string[]) =>
          (await verbs()).moveSandboxes(api, verb, names, options),
        ),
      )
    // The command `start` also resumes a paused sandbox, so `resume` is another name for this command.
    if (verb === 'start') moving.alias('resume')
  }
  add(sandbox, 'fork', 'make another sandbox with a copy of the disk, and print its id', [
    new Option('--name <name>', 'the name of the new sandbox'),
    jsonOption(),
  ])
    .argument('<sandbox>', 'id or name')
    .action(
      working(async ({ api }, options: Json & { name?: string }, name: string) =>
        (await verbs()).forkSandbox(api, name, options),
      ),
    )
  add(sandbox, 'delete', 'delete sandboxes, in any state', [jsonOption()])
    .alias('rm')
    .argument('<sandboxes...>', 'ids or names')
    .action(
      working(async ({ api }, options: Json, names: string[]) => (await verbs()).deleteSandboxes(api, names, options)),
    )

  add(program, 'shell', 'open a terminal in a sandbox', [
    new Option('--attach <id>', 'return to a terminal after a lost connection'),
  ])
    .argument('<sandbox>', 'id or name')
    .action(
      working(async (work, options: { attach?: string }, name: string) =>
        (await import('./command/shell.ts')).shell(work, name, options),
      ),
    )
  add(program, 'cp', 'copy a file or a directory: SANDBOX:PATH is in a sandbox, and any other path is on this machine')
    .argument('<from>')
    .argument('<to>')
    .action(
      working(async (work, _options: object, from: string, to: string) =>
        (await import('./copy/copy.ts')).copy(work, from, to),
      ),
    )
  add(program, 'logs', 'show what the entrypoint of a sandbox has written', [
    new Option('-f, --follow', 'also show new output, until the entrypoint ends'),
    new Option('--build', 'show the log of the build of the image instead'),
    jsonOption().conflicts(['follow', 'build']),
  ])
    .argument('<sandbox>', 'id or name')
    .action(
      working(async (work, options: Json & { follow?: boolean; build?: boolean }, name: string) =>
        (await import('./command/logs.ts')).logs(work, name, options),
      ),
    )
  add(program, 'port', 'forward ports of this machine to ports in a sandbox, for any protocol over TCP', [jsonOption()])
    .argument('<sandbox>', 'id or name')
    .argument('<ports...>', 'PORT, or PORT:LOCAL for another port on this machine; a LOCAL of 0 is any free port')
    .action(
      working(async (work, options: Json, name: string, ports: string[]) =>
        (await import('./command/port.ts')).port(work, name, ports, options),
      ),
    )

  const snapshot = group('snapshot', 'snapshots: images from which sandboxes are made')
  const snapshots = () => import('./snapshots/snapshots.ts')
  add(snapshot, 'create', 'make a snapshot, and show the log while it is made', [
    new Option('--image <image>', 'make the snapshot from this image of a registry'),
    new Option('--dockerfile <file>', 'make the snapshot from this Dockerfile; COPY cannot copy files of this machine'),
    new Option('--sandbox <sandbox>', 'make the snapshot from the disk of this sandbox'),
    ...sizes(),
    jsonOption(),
  ])
    .argument('<name>')
    .action(
      working(async ({ api }, options: SnapshotOptions, name: string) =>
        (await snapshots()).createSnapshot(api, name, options),
      ),
    )
  add(snapshot, 'list', 'list the snapshots', [jsonOption()], { isDefault: true }).action(
    working(async ({ api }, options: Json) => (await snapshots()).listSnapshots(api, options)),
  )
  add(snapshot, 'delete', 'delete snapshots; existing sandboxes stay', [jsonOption()])
    .alias('rm')
    .argument('<snapshots...>', 'ids or names')
    .action(
      working(async ({ api }, options: Json, names: string[]) =>
        (await snapshots()).deleteSnapshots(api, names, options),
      ),
    )

  const key = group('key', 'API keys: make, list and delete them')
  const keys = () => import('./keys/keys.ts')
  add(key, 'create', 'make a key, and print it', [
    new Option(
      '--permission <permission>',
      'a permission of the key; default: write:sandboxes and delete:sandboxes',
    ).argParser(several),
    new Option('--expires <when>', 'when the key expires: a time, or a number of days such as 30d; default: never'),
    jsonOption(),
  ])
    .argument('<name>')
    .action(
      working(async ({ api }, options: Json & { permission?: string[]; expires?: string }, name: string) =>
        (await keys()).createKey(api, name, options),
      ),
    )
  add(key, 'list', 'list the keys, without their values', [jsonOption()]).action(
    working(async ({ api }, options: Json) => (await keys()).listKeys(api, options)),
  )
  add(key, 'delete', 'delete keys; they stop working immediately', [jsonOption()])
    .alias('rm')
    .argument('<names...>')
    .action(working(async ({ api }, options: Json, names: string[]) => (await keys()).deleteKeys(api, names, options)))

  exitOnUsage(program.command('completion'))
    .description('print a script that completes commands in your shell')
    .addArgument(new Argument('<shell>').choices(shells))
    .action(async (shell: (typeof shells)[number]) => {
      const { completionFor } = await import('./complete/completion.ts')
      process.stdout.write(completionFor(program, shell))
    })

  const say = (line: string): void => void process.stdout.write(`${line}\n`)
  const signing = async () => {
    const [{ login, logout }, { ownSessionFile }] = await Promise.all([
      import('./session/login.ts'),
      import('./session/access.ts'),
    ])
    return { login, logout, file: ownSessionFile(host.env) }
  }
  const login = exitOnUsage(program.command('login'))
    .description('sign in to a server, with a code that you enter in any browser')
    .addOption(new Option('--url <url>', 'the server').default(host.env['ALCOVE_API_URL'] || defaultServer))
    .action(async (options: Options & { url: string }) => {
      using interruption = new Interruption()
      const url = (await host.serverUrl?.(options)) ?? options.url
      const { login, file } = await signing()
      await login({ url, file, say, signal: interruption.signal })
    })
  for (const option of host.options?.() ?? []) login.addOption(option.conflicts('url'))
  exitOnUsage(program.command('logout'))
    .description('end the session of alcove login')
    .action(async () => {
      const { logout, file } = await signing()
      await logout({ file, say })
    })
}
