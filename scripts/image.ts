// Builds the OCI image of Alcove from this checkout: `node scripts/image.ts DIRECTORY [TAG]` writes an OCI layout.
// It needs root, mmdebstrap and umoci, npm's registry and a Debian mirror.
// Two builds of one commit, with the same Debian packages, give the same image.
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { requiredPackages } from '#src/doctor/packages.ts'
import { users } from '#src/kit/confined.ts'
import { version } from '#src/kit/version.ts'
import { ensureDashboard, findDashboardPlace } from '#src/up/dashboard/ensure.ts'
import { buildNativePrograms } from '#src/up/native-programs.ts'

const checkout = resolve(import.meta.dirname, '..')
/** Directory of Alcove in the image. */
export const home = '/opt/alcove'

const run = (file: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) =>
  execFileSync(file, args, { cwd: checkout, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8', ...options })

/** Files that are copied unchanged. No Makefile is among them, because Alcove compiles no C programs in an image. */
const copied = [
  'LICENSE',
  'alcove',
  'package.json',
  'package-lock.json',
  'bin/**',
  'src/**',
  'client/{bin,src,dist}/**',
  'client/package.json',
  'dashboard/package.json',
  'agent/build/alcove-agent',
  'native/build/{launch,confine}',
]
const onlyForTests = /\.test\.tsx?$|\/testing\//

/** Files of Node that the image does not need. The C headers for Linux stay: the default image of sandboxes has them. */
const unusedOfNode = ['node-linux-*/share', 'node-linux-*/include/node/openssl/archs/!(linux-x86_64|linux-aarch64)']

/**
 * Installs the packages of package-lock.json that programs need. The packages for the dashboard are left out, because
 * the dashboard is built already.
 */
const installPackages = (target: string): void => {
  const npm = join(checkout, 'node_modules/npm/bin/npm-cli.js')
  const options = [
    '--omit=dev',
    '--workspaces=false',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }
  run(process.execPath, [npm, 'ci', ...options], { cwd: target, env })
  const packages = join(target, 'node_modules')
  for (const unused of globSync(unusedOfNode, { cwd: packages })) {
    rmSync(join(packages, unused), { recursive: true })
  }
  rmSync(join(packages, '.package-lock.json'))
  // `./alcove` checks these two files to find out whether the packages are complete.
  copyFileSync(join(target, 'package-lock.json'), join(packages, '.alcove-lock.json'))
  cpSync('/dev/null', join(packages, '.alcove-without-test-packages'))
}

const buildPages = async (target: string, scratch: string): Promise<void> => {
  const place = findDashboardPlace(join(scratch, 'cache'))
  const failure = await ensureDashboard(place, console.log)
  if (failure !== undefined) throw new Error(`the dashboard was not built: ${failure}`)
  cpSync(place.directory, join(target, 'dashboard/pages'), { recursive: true })
}

/** Copies all files that the image has below /opt/alcove into `target`. */
export const stageCode = async (target: string): Promise<void> => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-image-'))
  try {
    await buildNativePrograms(console.log)
    run(process.execPath, ['client/build.js'])
    for (const file of globSync(copied, { cwd: checkout, withFileTypes: true })) {
      const from = join(file.parentPath, file.name)
      const name = from.slice(checkout.length + 1)
      if (!file.isFile() || onlyForTests.test(name)) continue
      mkdirSync(dirname(join(target, name)), { recursive: true })
      copyFileSync(from, join(target, name))
    }
    installPackages(target)
    await buildPages(target, scratch)
    run('chmod', ['-R', 'u+rwX,go=rX', target])
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The image's Debian packages: first those that sandboxes need, then those that Node needs. */
export const debianPackages = [
  ...requiredPackages.filter(({ compiles }) => compiles !== true).map(({ name }) => name),
  ...['ca-certificates', 'libatomic1', 'libstdc++6'],
]

const unpackedNever = ['man', 'info', 'locale'].map((name) => `/usr/share/${name}/*`)

const makeRoot = (code: string, tar: string, date: string): void => {
  const excluded = [...unpackedNever, '/usr/share/doc/*', '/usr/lib/cni/*'].map(
    (path) => `--dpkgopt=path-exclude=${path}`,
  )
  run(
    'mmdebstrap',
    [
      ...['--mode=root', '--variant=apt', '--format=tar', '--quiet', '--aptopt=Apt::Install-Recommends "false"'],
      ...[...excluded, '--dpkgopt=path-include=/usr/share/doc/*/copyright', `--include=${debianPackages.join(',')}`],
      `--customize-hook=copy-in ${code} /opt`,
      `--customize-hook=ln -s ${home}/alcove "$1/usr/bin/alcove"`,
      ...['bookworm', tar],
    ],
    { env: { ...process.env, SOURCE_DATE_EPOCH: date } },
  )
}

const writeLayout = (layout: string, tag: string, tar: string, date: string): void => {
  const image = `${layout}:${tag}`
  const created = new Date(Number(date) * 1000).toISOString()
  if (!existsSync(layout)) run('umoci', ['init', '--layout', layout])
  run('umoci', ['new', '--image', image])
  const history = [`--history.created=${created}`, '--history.author=', '--history.comment=']
  run('umoci', ['raw', 'add-layer', '--image', image, ...history, '--history.created_by=scripts/image.ts', tar])
  run('umoci', [
    ...['config', '--image', image, '--no-history', `--created=${created}`, '--author='],
    ...['--config.entrypoint=alcove', '--config.cmd=control', `--config.user=${users.control}:${users.control}`],
    ...['--config.workingdir=/', '--config.env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
    `--config.label=org.opencontainers.image.version=${version}`,
    ...['--config.label=org.opencontainers.image.licenses=Apache-2.0', '--config.stopsignal=SIGTERM'],
  ])
  run('umoci', ['gc', '--layout', layout])
}

const buildImage = async (layout: string, tag: string): Promise<void> => {
  const date = run('git', ['log', '-1', '--format=%ct']).trim()
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-image-'))
  try {
    const [code, tar] = [join(scratch, 'alcove'), join(scratch, 'root.tar')]
    mkdirSync(code)
    await stageCode(code)
    makeRoot(code, tar, date)
    writeLayout(layout, tag, tar, date)
    const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
    console.log(`${layout}:${tag} ${manifests.at(-1).digest}`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const [layout, tag = version] = process.argv.slice(2)
  if (layout === undefined || process.getuid?.() !== 0) {
    console.error('usage, as root: node scripts/image.ts DIRECTORY [TAG]')
    process.exit(2)
  }
  process.umask(0o022)
  await buildImage(resolve(layout), tag)
}
