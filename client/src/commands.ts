// Defines the commands of a user. The program of this package has them, and so has the server's own command line. The code
// of each command is loaded only when it runs.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Api } from './api.ts'
import { exitCodes } from './failure.ts'
import { handOn } from './hand-on.ts'
import { Interruption } from './interruption.ts'
import type { CreateOptions } from './sandboxes/create.ts'
import type { ListOptions } from './sandboxes/list.ts'
import { type Access, defaultServer } from './session/access.ts'

/** What a running command works with. */
export type Work = {
  api: Api
  interruption: Interruption
  /** The environment variables of the user. */
  env: NodeJS.ProcessEnv
}

/** The options that all commands have. Only the server's own command line has `data`. */
type Options = { organization?: string; data?: string }
type Json = { json?: boolean }

export type Host = {
  /** Finds the server and the credential. Throws a Failure if the user has to sign in first. */
  connect: (options: Options) => Promise<Access>
  /** Further options by which a command finds its server. */
  options?: () => Option[]
  /** Returns the address of the server that these further options name. */
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

const jsonOption = () => new Option('--json', 'as JSON')

/** Exits with our code for a wrong command line, and with 0 after help. */
const exitOnUsage = (command: Command): Command =>
  command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exitCodes.usage))

export const addCommands = (program: Command, host: Host): void => {
  const connecting = () => [
    new Option('--organization <id>', 'in this organization; default: that of the key, or your personal one').env(
      'ALCOVE_ORGANIZATION_ID',
    ),
    ...(host.options?.() ?? []),
  ]

  /** Adds a command. `work` is what it does; its answer is the exit code. */
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
    new Option('--image <image>', 'make it from this image of a registry').conflicts('snapshot'),
    new Option('--snapshot <snapshot>', 'make it from this snapshot'),
    new Option('--name <name>', 'its name'),
    new Option('-e, --env <name=value>', 'a variable of the sandbox; a name alone takes yours').argParser(several),
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
    new Option('-e, --env <name=value>', 'a variable of the command; a name alone takes yours').argParser(several),
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
    new Option('--auto-stop <minutes>', 'stop it after so long without use; 0: never').argParser(whole(0)),
    jsonOption(),
  ]).action(working(async (work, options: CreateOptions & Json) => (await verbs()).createSandbox(work, options)))
  add(
    sandbox,
    'list',
    'list the sandboxes',
    [
      new Option('--state <state>', 'only those in this state; may be given several times').argParser(several),
      new Option('--label <name=value>', 'only those with this label').argParser(several),
      new Option('--name <prefix>', 'only those whose name begins so'),
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
    stop: 'stop sandboxes; what runs in them ends',
    pause: 'freeze sandboxes with everything that runs in them; start lets them go on',
    archive: 'put the disks of sandboxes into the object store; start brings them back',
  } as const
  for (const verb of ['start', 'stop', 'pause', 'archive'] as const) {
    const options = verb === 'stop' ? [new Option('--force', 'at once, without asking its processes to end')] : []
    add(sandbox, verb, moves[verb], [...options, jsonOption()])
      .argument('<sandboxes...>', 'ids or names')
      .action(
        working(async ({ api }, options: Json & { force?: boolean }, names: string[]) =>
          (await verbs()).moveSandboxes(api, verb, names, options),
        ),
      )
  }
  add(sandbox, 'fork', 'make another sandbox with the disk of this one, and print its id', [
    new Option('--name <name>', 'the name of the new one'),
    jsonOption(),
  ])
    .argument('<sandbox>', 'id or name')
    .action(
      working(async ({ api }, options: Json & { name?: string }, name: string) =>
        (await verbs()).forkSandbox(api, name, options),
      ),
    )
  add(sandbox, 'delete', 'delete sandboxes, whatever they are doing', [jsonOption()])
    .alias('rm')
    .argument('<sandboxes...>', 'ids or names')
    .action(
      working(async ({ api }, options: Json, names: string[]) => (await verbs()).deleteSandboxes(api, names, options)),
    )

  const say = (line: string): void => void process.stdout.write(`${line}\n`)
  const signing = async () => {
    const [{ login, logout }, { ownSessionFile }] = await Promise.all([
      import('./session/login.ts'),
      import('./session/access.ts'),
    ])
    return { login, logout, file: ownSessionFile(host.env) }
  }
  const login = exitOnUsage(program.command('login'))
    .description('sign in to a server, by a code that you enter in any browser')
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
