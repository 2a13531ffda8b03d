// All commands of `alcove`. The file of a command is loaded only when the command runs, so that other commands start fast.
import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { addCommands } from '#client/src/commands.ts'
import { showFailure, watchOutput } from '#client/src/end.ts'
import { handOn } from '#client/src/hand-on.ts'
import type { Access } from '#client/src/session/access.ts'
import { Complaint } from '#src/up/complaint.ts'
import { defaultDataDirectory } from '#src/up/data-directory.ts'
import { controlHelp } from './control-help.ts'

const portNumber = (text: string): number => {
  const port = Number(text)
  // The server may also use the four ports after this one, and 65535 is the last port.
  if (!/^\d+$/.test(text) || port < 1 || port > 65531) throw new InvalidArgumentError('a port from 1 to 65531')
  return port
}

/** Refuses an empty name, which an unset shell variable would cause and which would mean the working directory. */
const directoryName = (text: string): string => {
  if (text === '') throw new InvalidArgumentError('it must not be empty')
  return text
}

const dataOption = () => namedData('the data directory of the server').default(defaultDataDirectory)

/** The option `--data`. With this option, a command uses the server of a directory instead of the signed-in user's session. */
const namedData = (meaning: string) => new Option('--data <dir>', meaning).argParser(directoryName)

/**
 * Reads the settings of `up`. A variable with an unknown name causes only a warning, because another program may use
 * it.
 */
const upSettings = async () => {
  const { listUnknownSettings, readUpConfig } = await import('#src/up/config.ts')
  const config = readUpConfig(process.env)
  for (const name of listUnknownSettings(process.env)) {
    console.error(`alcove: \`up\` has no setting ${name}: the variable is ignored`)
  }
  return config
}

/**
 * Returns server and credential for a user's command. `--data` has priority over environment variables and the session.
 * Without any of them, the server of the default data directory is used.
 */
const connect = async ({ data }: { data?: string }): Promise<Access> => {
  const local = async (directory: string): Promise<Access> => {
    const { url, key } = (await import('./ask-server.ts')).serverOf(directory)
    return { apiUrl: `${url}/api`, token: async () => key }
  }
  if (data !== undefined) return await local(data)
  const { findAccess, notSignedIn } = await import('#client/src/session/access.ts')
  const access = findAccess(process.env)
  if (access !== undefined) return access
  return await local(defaultDataDirectory).catch((error) => {
    if (!(error instanceof Complaint)) throw error
    throw notSignedIn(`For a server on this machine, give its data directory with --data DIR: ${error.message}.`)
  })
}

const ownVersion = (): string =>
  (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version

const createCommandLine = (): Command => {
  const program = new Command('alcove')
    .description('Isolated Linux sandboxes over HTTP, on your own machine.')
    // An option after the name of a subcommand applies to this subcommand only.
    .enablePositionalOptions()
    .hook('preSubcommand', handOn)
    .version(ownVersion(), '--version', 'print the version')
    .addOption(namedData('the data directory of the server; may also follow the command’s name'))
    .showHelpAfterError('(alcove --help lists everything)')

  program
    .command('up')
    .description('start the server and keep it running; sandboxes keep running when the server ends')
    .addOption(dataOption())
    .addOption(
      new Option('--port <n>', 'port of the API; toolboxes and SSH use the next two ports')
        .argParser(portNumber)
        .default(4600),
    )
    .option('--host <address>', 'address to listen on; 0.0.0.0 for all addresses', '127.0.0.1')
    .option('--public-host <name>', 'the name or address under which clients reach this machine')
    .option('--hosts <address>', 'let other machines join, at this address of this machine (ports 4603 and 4604)')
    .action(async (options) => {
      const [{ runUp }, { lackOfDefault }, config] = await Promise.all([
        import('#src/up/up.ts'),
        import('#src/runner/images/lack.ts'),
        upSettings(),
      ])
      await runUp({ ...options, lackOfImage: lackOfDefault }, config)
    })

  program
    .command('control')
    .description('run control alone, in the foreground and without root; its settings are environment variables')
    .addHelpText('after', controlHelp)
    .action(async () => (await import('./control.ts')).runControl(process.env))

  program
    .command('down')
    .description('stop the server; sandboxes keep running')
    .addOption(dataOption())
    .action(async ({ data }) => (await import('./down.ts')).down(data))

  program
    .command('status')
    .description('show each program of the server, and the sandboxes by state')
    .addOption(dataOption())
    .option('--json', 'print JSON')
    .action(async ({ data, json }) => (await import('./status.ts')).status(data, { json: json === true }))

  program
    .command('key')
    .description('print the API key of the first admin and nothing else, or make, list and delete keys')
    .addOption(dataOption())
    .action(async ({ data }) => (await import('./key.ts')).key(data))

  const user = program
    .command('user')
    .description('local accounts: people who sign in at this server')
    .enablePositionalOptions()
    .hook('preSubcommand', handOn)
    .addOption(dataOption())
  user
    .command('add <email>')
    .description('make an account and print its password')
    .addOption(dataOption())
    .option('--name <name>', 'the name of the person')
    .action(async (email, { data, name }) => (await import('./user.ts')).addUser(data, email, name))
  user
    .command('password <email>')
    .description('give an account a new password and print it; the first admin is admin@localhost')
    .addOption(dataOption())
    .action(async (email, { data }) => (await import('./user.ts')).givePassword(data, email))
  user
    .command('link [email]')
    .description('print a link that signs an account in once, without a password; by default the first admin')
    .addOption(dataOption())
    .action(async (email, { data }) => (await import('./user.ts')).giveLink(data, email))

  const runner = program
    .command('runner')
    .description(
      'the hosts of a server: join one from this machine (--join), or add, list, drain and remove them on the server',
    )
    .enablePositionalOptions()
    .hook('preSubcommand', handOn)
    .addOption(dataOption())
    .option('--join <url>', 'the server: https://ADDRESS:4603, or on its own machine http://127.0.0.1:4600')
    .option('--token <token>', 'the token that "alcove runner add" printed on the server. Default: ALCOVE_RUNNER_KEY')
    .addOption(
      new Option(
        '--port <n>',
        'with https://: the gate listens for clients on port n+1, and for other gates on port n+4',
      )
        .argParser(portNumber)
        .default(4600),
    )
    .option('--host <address>', 'with https://: the address on which the gate listens for clients', '127.0.0.1')
    .option(
      '--address <address>',
      'the address at which other machines reach this machine. Default with https://: the address that this machine uses to reach the server. With http://, give the address of the server’s --hosts',
    )
    .option('--public-url <url>', 'with https://: where clients reach the gate of this machine directly')
    .action(async (given) => {
      if (given.join === undefined) runner.help({ error: true })
      const [{ joinServer }, { readUpConfig, readRunnerToken }] = await Promise.all([
        import('#src/up/join.ts'),
        import('#src/up/config.ts'),
      ])
      const options = { ...given, token: given.token ?? readRunnerToken(process.env) }
      await joinServer(options, readUpConfig(process.env))
    })
  runner
    .command('add <id>')
    .description('let a runner join this server, and print its token')
    .addOption(dataOption())
    .option('--region <id>', 'the region of the runner', 'local')
    .action(async (id, { data, region }) => (await import('./runner.ts')).addRunner(data, id, region))
  runner
    .command('token <id>')
    .description('print a new token for a runner; its old token stops working')
    .addOption(dataOption())
    .action(async (id, { data }) => (await import('./runner.ts')).renewToken(data, id))
  runner
    .command('list')
    .description('show the runners of this server')
    .addOption(dataOption())
    .action(async ({ data }) => (await import('./runner.ts')).listRunners(data))
  runner
    .command('drain <id>')
    .description('give a runner no new sandboxes; its sandboxes keep running, or move with --move')
    .addOption(dataOption())
    .option('--move', 'also move its sandboxes to other runners; running sandboxes are stopped and started again there')
    .option('--yes', 'with --move: do not ask for confirmation')
    .addOption(new Option('--undo', 'let the runner get new sandboxes again').conflicts('move'))
    .action(async (id, { data, undo, move, yes }) => {
      const { drainRunner, emptyRunner } = await import('./runner.ts')
      if (move) await emptyRunner(data, id, yes === true)
      else await drainRunner(data, id, undo !== true)
    })
  runner
    .command('lost <id>')
    .description('give up a silent runner now: its sandboxes with a copy in the store can then start elsewhere')
    .addOption(dataOption())
    .action(async (id, { data }) => (await import('./runner.ts')).loseRunner(data, id))
  runner
    .command('remove <id>')
    .description('remove a runner permanently')
    .addOption(dataOption())
    .option(
      '--force',
      'also remove a runner that has sandboxes or volumes; its volumes, and sandboxes without a copy in the store, are lost',
    )
    .action(async (id, { data, force }) => (await import('./runner.ts')).removeRunner(data, id, force === true))

  const region = program
    .command('region')
    .description('regions of this server: settings of the operator')
    .enablePositionalOptions()
    .hook('preSubcommand', handOn)
    .addOption(dataOption())
  region
    .command('save-stopped <id>')
    .description('save the disks of stopped sandboxes in the archive store, so that a lost host does not lose them')
    .addOption(dataOption())
    .option('--undo', 'save no more')
    .action(async (id, { data, undo }) => (await import('./region.ts')).saveStopped(data, id, undo !== true))

  const images = program
    .command('images')
    .description('the default image of this server')
    .enablePositionalOptions()
    .hook('preSubcommand', handOn)
    .addOption(dataOption())
  images
    .command('renew')
    .description(
      'build the default image from current packages; new sandboxes use it, existing sandboxes keep their image',
    )
    .addOption(dataOption())
    .action(async ({ data }) => (await import('./images.ts')).renewImages(data))

  addCommands(program, {
    connect,
    options: () => [namedData('use the server with this data directory, and its admin key')],
    serverUrl: async ({ data }: { data?: string }) =>
      data === undefined ? undefined : (await import('./ask-server.ts')).serverOf(data).url,
    env: process.env,
  })

  program
    .command('doctor')
    .description('show what this host offers, and what does not work without each missing feature')
    .addOption(dataOption())
    .option('--peer <url>', 'check only whether this machine can join a server, such as https://ADDRESS:4603')
    .option(
      '--token <token>',
      'with --peer: the token that "alcove runner add" printed; it shows whether this is the right server',
    )
    .action(async ({ data, peer, token }) => {
      const { doctor, doctorOfPeer } = await import('./doctor.ts')
      await (peer === undefined ? doctor(data, process.env) : doctorOfPeer(peer, token))
    })

  program
    .command('purge')
    .description('remove a server from this host: its sandboxes, networks, mounts and all its data')
    .addOption(dataOption())
    .option('--yes', 'do not ask')
    .action(async ({ data, yes }) => (await import('./purge.ts')).purgeCommand(data, { yes: yes === true }))

  program
    .command('test')
    .description('run the tests of this checkout')
    .argument('[files...]', 'parts of the paths of the test files to run; without any, all tests run')
    .option('--name <text>', 'only the tests whose name holds this text')
    .option('--check', 'only format, lint and types')
    .option('--faults', 'only the fault ring: programs are killed at random while sandboxes are used')
    .option('--hosts', 'with --faults: machines and links of three hosts instead of programs of one')
    .option('--red-team', 'only the attacks of SECURITY.md, on this host: what holds, what does not')
    .option('--seed <n>', 'of the fault ring: the same seed kills in the same order')
    .option('--count <n>', 'of the fault ring: how many are killed')
    .action(async (files, options) => (await import('./test.ts')).test(files, options))

  return program
}

/**
 * Runs the command and ends the process. An error for the user is printed as a sentence.
 * Any other error is a bug of Alcove and is printed with its stack trace.
 */
export const runCommandLine = async (argv: readonly string[]): Promise<never> => {
  const noticeLoss = watchOutput()
  try {
    await createCommandLine().parseAsync(argv)
  } catch (error) {
    const code = showFailure(error)
    if (code === undefined) console.error(error instanceof Complaint ? `alcove: ${error.message}` : error)
    process.exitCode = code ?? 1
  }
  await noticeLoss()
  process.exit()
}
