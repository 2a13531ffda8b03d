// The command `alcove cp`: copies files and directories to and from a sandbox, by the tar program of the sandbox.
import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { callServer } from '../call.ts'
import { cleanLine, cleanLines } from '../clean.ts'
import { runCommand } from '../command/remote-command.ts'
import type { Work } from '../commands.ts'
import { exitCodes, Failure } from '../failure.ts'
import { note } from '../print/print.ts'
import { CopyProgress } from '../print/progress.ts'
import { getSandbox, type Sandbox, toolboxOf } from '../sandboxes/sandbox.ts'
import { pack, sizeOf } from './pack.ts'
import { nameOf, readCopy, splitTarget } from './place.ts'
import { BadTar } from './tar-header.ts'
import { unpackFile, unpackInto } from './unpack.ts'

const mostNotes = 10
const mostErrorBytes = 8 * 1024

type Remote = { isDir: boolean; size: number }

const isMissing = (error: unknown): undefined => {
  if (!(error instanceof Failure) || error.status !== 404) throw error
  return undefined
}

const findRemote = async ({ api }: Work, sandbox: Sandbox, path: string): Promise<Remote | undefined> => {
  const url = `${toolboxOf(sandbox)}/files/info?${new URLSearchParams({ path })}`
  return await callServer<Remote>(url, { headers: await api.headers(), signal: api.signal }).catch(isMissing)
}

const findLocal = async (path: string) =>
  await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })

/** Reports the files that could not be copied unchanged: the name of the first such file, and how many more there are. */
class Troubles {
  #count = 0

  add(name: string, why: string): void {
    this.#count += 1
    if (this.#count <= mostNotes) note(`${cleanLine(name)} ${cleanLine(why)}`)
  }

  end(): void {
    if (this.#count > mostNotes) note(`… and ${this.#count - mostNotes} more`)
    if (this.#count > 0) throw new Failure('Not everything could be copied.', exitCodes.localFile)
  }
}

/** Stores the first part of what the tar program writes to standard error. */
class Sayings extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.text.length < mostErrorBytes) this.text += chunk.toString().slice(0, mostErrorBytes)
    done()
  }
}

type Parts = { argv: string[]; input?: Readable; stdout?: Writable; signal?: AbortSignal }

const runTar = async ({ api, interruption }: Work, sandbox: Sandbox, { argv, input, stdout, signal }: Parts) => {
  const said = new Sayings()
  const code = await runCommand(api, sandbox, {
    argv,
    ...(input === undefined ? {} : { input }),
    stdout: stdout ?? new Writable({ write: (_chunk, _encoding, done) => done() }),
    stderr: said,
    signal: signal === undefined ? interruption.signal : AbortSignal.any([interruption.signal, signal]),
  })
  if (code === 0) return
  if (code === 127)
    throw new Failure('Copying needs the program tar, which this sandbox does not have.', exitCodes.refused)
  const why = cleanLines(said.text).trim()
  throw new Failure(`The sandbox could not copy everything: ${why || `tar ended with ${code}`}`, exitCodes.refused)
}

const copyUp = async (work: Work, sandbox: Sandbox, local: string, remote: string): Promise<void> => {
  const source = resolve(local)
  const found = await findLocal(source)
  if (found === undefined)
    throw new Failure(`There is no file or directory ${cleanLine(local)} on this machine.`, exitCodes.localFile)
  const there = await findRemote(work, sandbox, remote)
  const { directory, name } = there?.isDir
    ? { directory: remote, name: basename(source) || 'root' }
    : splitTarget(remote)
  if (there !== undefined && !there.isDir && found.isDirectory())
    throw new Failure(`${cleanLine(remote)} is a file, not a directory.`, exitCodes.refused)
  const troubles = new Troubles()
  {
    const total = found.isDirectory() ? await sizeOf(Buffer.from(await realpath(source))) : found.size
    using progress = new CopyProgress(name, total)
    const packed = pack(source, name, {
      onBytes: (count) => progress.add(count),
      onTrouble: (path, why) => troubles.add(path.toString(), why),
    })
    const argv = ['tar', '-x', '-o', '-f', '-', '-C', directory]
    await runTar(work, sandbox, { argv, input: Readable.from(packed, { objectMode: true }) })
  }
  troubles.end()
}

/**
 * Returns the path to write to: `local` itself or, if `local` is an existing directory, a path in this directory with the source's
 * name.
 */
const findTarget = async (local: string, remote: string, isDir: boolean) => {
  const found = await findLocal(local)
  const name = nameOf(remote)
  const isInside = found?.isDirectory() === true && name !== undefined
  const target = resolve(isInside ? join(local, name) : local)
  if (found !== undefined && !found.isDirectory() && isDir)
    throw new Failure(`${cleanLine(local)} is a file, not a directory.`, exitCodes.localFile)
  if (isInside && isDir && (await lstat(target).catch(() => undefined))?.isSymbolicLink())
    throw new Failure(
      `${cleanLine(target)} is a symbolic link, and copying does not follow links.`,
      exitCodes.localFile,
    )
  const parent = !isDir && /[/\\]$/.test(local) && found === undefined ? target : dirname(target)
  if (!(await findLocal(parent))?.isDirectory())
    throw new Failure(`There is no directory ${cleanLine(parent)} on this machine.`, exitCodes.localFile)
  return { target, name }
}

const copyDown = async (work: Work, sandbox: Sandbox, remote: string, local: string): Promise<void> => {
  const there = await findRemote(work, sandbox, remote)
  if (there === undefined)
    throw new Failure(`There is no file or directory ${cleanLine(remote)} in the sandbox.`, exitCodes.notFound)
  const { target, name } = await findTarget(local, remote, there.isDir)
  const troubles = new Troubles()
  const broken = new AbortController()
  const bytes = new PassThrough()
  bytes.on('error', () => {})
  const { argv, unpack } = there.isDir
    ? { argv: ['tar', '-c', '-f', '-', '-C', remote, '.'], unpack: unpackInto.bind(undefined, target) }
    : {
        argv: ['tar', '-c', '-h', '-f', '-', '-C', splitTarget(remote).directory, '--', splitTarget(remote).name],
        unpack: unpackFile.bind(undefined, dirname(target), basename(target)),
      }
  {
    using progress = new CopyProgress(name ?? remote, there.isDir ? undefined : there.size)
    const unpacking = unpack(bytes, {
      onBytes: (count) => progress.add(count),
      onTrouble: (path, why) => troubles.add(path, why),
    })
    // If unpacking fails, ends the tar program in the sandbox too. That program would otherwise wait forever, because nobody reads
    // its output.
    unpacking.catch((error) => {
      broken.abort(error)
      bytes.destroy()
    })
    try {
      await runTar(work, sandbox, { argv, stdout: bytes, signal: broken.signal })
    } finally {
      bytes.end()
      // Waits for the unpacking even after an interruption, because the unpacking then removes an incomplete file.
      await unpacking.catch(() => {})
    }
    await unpacking
  }
  troubles.end()
}

const asFailure = (error: unknown): unknown => {
  if (error instanceof BadTar)
    return new Failure(`The sandbox did not send a valid tar archive: ${error.message}.`, exitCodes.refused)
  const { code, path, syscall } = error as NodeJS.ErrnoException
  if (syscall === undefined || error instanceof Failure) return error
  return new Failure(`${cleanLine(String(path ?? 'A file'))}: ${syscall} failed with ${code}.`, exitCodes.localFile)
}

export const copy = async (work: Work, from: string, to: string): Promise<void> => {
  const { direction, sandbox: idOrName, remote, local } = readCopy(from, to)
  const sandbox = await getSandbox(work.api, idOrName)
  try {
    if (direction === 'up') await copyUp(work, sandbox, local, remote)
    else await copyDown(work, sandbox, remote, local)
  } catch (error) {
    throw asFailure(error)
  }
}
