// Measures builds of Dockerfiles by the runner alone: with no cached lines, with all lines cached, and with a changed last line.
// Needs root. The images come from a registry on loopback.
//
//   node bench/builds.ts [ROUNDS]
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { standardLineLimits } from '../src/runner/building/line-cache.ts'
import { makeImage, tarOf } from '../src/runner/images/testing/oci-image.ts'
import { TestRegistry } from '../src/runner/images/testing/registry.ts'
import { openBuilding } from '../src/runner/testing/building.ts'
import { busyboxFiles } from '../src/runner/testing/busybox-files.ts'
import { TestHost } from '../src/runner/testing/test-host.ts'

const rounds = Number(process.argv[2] ?? 3)
const limits = { ...standardLineLimits, freeShare: 0 }

await using box = await TestHost.start()
await using registry = await TestRegistry.start()
const from = registry.put('busybox:1', makeImage({ layers: [tarOf(busyboxFiles())], config: { Env: ['PATH=/bin'] } }))
await box.close()
const opened = await openBuilding(box.instance, box.directory, registry.host, undefined, limits)
box.use(opened)
const { images } = opened

/** A Dockerfile line that takes time and space: it sleeps for two seconds and writes 32 MiB. */
const work = (name: string) =>
  `RUN /bin/busybox sleep 2; /bin/busybox dd if=/dev/urandom of=/${name} bs=1M count=32 2>/dev/null`
const oneStage = (last: string) => [`FROM ${from}`, work('a'), work('b'), work('c'), `RUN echo ${last} > /last`]
const twoStages = (last: string) => [
  ...[`FROM ${from} AS one`, work('a'), work('b'), `FROM ${from} AS two`, work('a'), work('b')],
  ...[`FROM ${from}`, 'COPY --from=one /b /one', 'COPY --from=two /b /two', `RUN echo ${last} > /last`],
]

type Sample = { definition: string; kind: string; round: number; seconds: number }
const samples: Sample[] = []
let count = 0

const build = async (lines: readonly string[], organizationId: string) => {
  count += 1
  const image = `built-${count}`
  const began = performance.now()
  await images.bring(
    {
      ...{ image, target: 'present', maxGiB: 2, organizationId },
      source: { kind: 'definition', dockerfile: lines.join('\n') },
    },
    { signal: new AbortController().signal, onProgress: () => {} },
  )
  const seconds = (performance.now() - began) / 1000
  await images.remove(image)
  return seconds
}

const definitions = { 'one stage, 3 lines of 2 s': oneStage, 'two stages of 2 lines of 2 s': twoStages }
for (const [definition, lines] of Object.entries(definitions))
  for (let round = 0; round < rounds; round++) {
    const organizationId = `${definition} ${round}`
    const kinds = { cold: lines('one'), cached: lines('one'), 'last line changed': lines('two') }
    for (const [kind, text] of Object.entries(kinds))
      samples.push({ definition, kind, round, seconds: await build(text, organizationId) })
  }

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
console.log('| Definition | Build | s, median | n |\n|---|---|---|---|')
for (const [definition, ofOne] of Object.entries(Object.groupBy(samples, (sample) => sample.definition)))
  for (const [kind, some] of Object.entries(Object.groupBy(ofOne ?? [], (sample) => sample.kind)))
    console.log(
      `| ${definition} | ${kind} | ${median((some ?? []).map(({ seconds }) => seconds)).toFixed(1)} | ${some?.length} |`,
    )

const results = join(import.meta.dirname, 'results')
mkdirSync(results, { recursive: true })
const name = `builds-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.json`
writeFileSync(join(results, name), `${JSON.stringify({ samples }, null, 1)}\n`)
console.log(name)
