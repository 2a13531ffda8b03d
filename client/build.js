// Builds the program: bundles src/ and its packages into dist/alcove.js. Runs with Node 20 and newer.
//
// A fresh clone has no npm packages yet. Then the packages of this workspace are installed into .packages/, in the versions
// of the checkout's lock file. Install scripts never run.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const client = fileURLToPath(new URL('.', import.meta.url))
const checkout = join(client, '..')
const output = join(client, 'dist/alcove.js')
const packages = join(client, '.packages')
const lockFile = join(checkout, 'package-lock.json')

const manifest = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8'))
/** How long npm may take to install the packages, in ms. */
const installMs = 300_000

/** @returns {string[]} the files of the program, without its tests */
const listSources = () =>
  readdirSync(join(client, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .sort()
    .map((name) => join(client, 'src', name))

/** Returns a hash of everything from which the program is built. */
const digestOf = () => {
  const hash = createHash('sha256')
  for (const file of [...listSources(), join(client, 'package.json'), fileURLToPath(import.meta.url)])
    hash.update(file.slice(client.length)).update('\0').update(readFileSync(file)).update('\0')
  return hash.digest('hex')
}

const markOf = (digest) => `// built from ${digest}`

const isBuiltFrom = (digest) => {
  try {
    return readFileSync(output, 'utf8').trimEnd().endsWith(markOf(digest))
  } catch {
    return false
  }
}

/** Finds esbuild as a file in this directory would import it. The directory may have packages or not. */
const findEsbuild = (directory) => {
  try {
    return createRequire(join(directory, 'package.json')).resolve('esbuild')
  } catch {
    return undefined
  }
}

/** Runs the npm that started this program or, if there is none, the npm in PATH. */
const runNpm = (cwd, args) => {
  const own = process.env.npm_execpath
  const [command, first] = own?.endsWith('.js') ? [process.execPath, [own]] : ['npm', []]
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  const shell = command === 'npm' && process.platform === 'win32'
  return promisify(execFile)(command, [...first, ...args], { cwd, env, shell, timeout: installMs })
}

/** Whether .packages/ has exactly the packages of the lock file. */
const areInstalled = () => {
  try {
    return readFileSync(join(packages, 'package-lock.json')).equals(readFileSync(lockFile))
  } catch {
    return false
  }
}

/**
 * Installs the packages of this workspace. Afterwards all of them are there or none, even if several processes install at the
 * same time.
 */
const installPackages = async () => {
  console.error('alcove: installing the packages of the command line, once')
  const scratch = mkdtempSync(`${packages}-`)
  try {
    copyFileSync(join(checkout, 'package.json'), join(scratch, 'package.json'))
    copyFileSync(lockFile, join(scratch, 'package-lock.json'))
    for (const workspace of JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')).workspaces) {
      mkdirSync(join(scratch, workspace))
      copyFileSync(join(checkout, workspace, 'package.json'), join(scratch, workspace, 'package.json'))
    }
    await runNpm(scratch, [
      'ci',
      '--workspace',
      manifest.name,
      '--include=dev',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--no-update-notifier',
      '--loglevel=error',
    ])
    rmSync(packages, { recursive: true, force: true })
    renameSync(scratch, packages)
  } catch (error) {
    rmSync(scratch, { recursive: true, force: true })
    // Another process may have installed the packages in the meantime.
    if (!areInstalled())
      throw new Error(`the packages could not be installed: ${error.stderr || error.message}`, { cause: error })
  }
}

/** Returns the licenses of Alcove and of the packages whose files are in the bundle. */
const licensesOf = (files) => {
  const folders = new Set(
    files.flatMap((file) => {
      const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []
      return folder === undefined ? [] : [join(client, folder)]
    }),
  )
  const texts = [...folders].sort().map((folder) => {
    const license = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
    const text = license === undefined ? '' : readFileSync(join(folder, license), 'utf8')
    const { name, version, license: kind } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return `${name} ${version}: ${kind}\n\n${text}`
  })
  const own = readFileSync(join(checkout, 'LICENSE'), 'utf8')
  return `${[`${manifest.name} ${manifest.version}: ${manifest.license}\n\n${own}`, ...texts].join(`\n${'-'.repeat(80)}\n`)}\n`
}

/** Builds the program, unless it was already built from the present source. */
export const build = async () => {
  const digest = digestOf()
  if (isBuiltFrom(digest)) return
  if (findEsbuild(client) === undefined && !areInstalled()) await installPackages()
  const directory = findEsbuild(client) === undefined ? packages : client
  const { build: bundle } = await import(pathToFileURL(findEsbuild(directory)).href)
  mkdirSync(join(client, 'dist'), { recursive: true })
  const { metafile, outputFiles } = await bundle({
    entryPoints: [join(client, 'src/main.ts')],
    outfile: output,
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'silent',
    metafile: true,
    absWorkingDir: client,
    define: { ALCOVE_VERSION: JSON.stringify(manifest.version) },
    nodePaths: directory === client ? [] : [join(packages, 'node_modules')],
    // CommonJS packages in the bundle call `require` for modules of Node, and an ES module has no `require` of its own.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    footer: { js: markOf(digest) },
  })
  writeFileSync(join(client, 'dist/licenses.txt'), licensesOf(Object.keys(metafile.inputs)))
  const draft = `${output}.${process.pid}`
  writeFileSync(draft, outputFiles[0].contents)
  renameSync(draft, output)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build()
