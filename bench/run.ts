// Runs every benchmark of figures.ts together with its lower bounds (floors.ts), and measures how many calls per second a server
// can serve. Prints a table and writes all samples to bench/results/. Needs root.
//
// node bench/run.ts [--turns 10] [--rounds 20] [--seconds 2] [--only TEXT] [--no-load] [CHECKOUT…]
//
// The default CHECKOUT is this checkout. The servers of two CHECKOUTs are measured in turns, so that other load affects both. The
// table then shows the second server’s times divided by the first server’s: for the medians and for the 10th percentiles.
import { basename, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Figure, prepare, type Taken } from './figures.ts'
import { Floors } from './floors.ts'
import { type Load, measureLoad } from './load.ts'
import { keep, median, percentile } from './samples.ts'
import { type Sandbox, Served } from './served.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    turns: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    'no-load': { type: 'boolean', default: false },
  },
})
const [turns, rounds, seconds] = [Number(values.turns), Number(values.rounds), Number(values.seconds)]
const checkouts = positionals.length > 0 ? positionals : [resolve(import.meta.dirname, '..')]

type Candidate = { served: Served; box: Sandbox; figures: Figure[]; taken: Taken[]; loads: Load[] }

const ms = (value: number) => value.toFixed(value < 100 ? 2 : 0)
const floorOf = ({ floors }: Taken) => floors.reduce((sum, samples) => sum + median(samples), 0)
const row = (...cells: string[]) => console.log(`| ${cells.join(' | ')} |`)
const head = (...cells: string[]) => {
  row(...cells)
  row(...cells.map(() => '---'))
}

const add = (to: Taken | undefined, more: Taken): Taken => ({
  ours: [...(to?.ours ?? []), ...more.ours],
  floors: more.floors.map((samples, index) => [...(to?.floors[index] ?? []), ...samples]),
})

/** Returns the servers in the order in which this turn measures them. Every second turn has the reverse order. */
const inTurn = (all: Candidate[], turn: number) => (turn % 2 === 0 ? all : all.toReversed())

const measure = async (all: Candidate[]) => {
  // The first turn is not counted, because a server that has just started still compiles its code.
  for (let turn = -1; turn < turns; turn++) {
    for (const [index, { name }] of all[0]!.figures.entries()) {
      if (!name.includes(values.only)) continue
      for (const { figures, taken } of inTurn(all, turn)) {
        const more = await figures[index]!.take()
        if (turn >= 0) taken[index] = add(taken[index], more)
      }
    }
  }
  if (values['no-load']) return
  for (const [turn, { served, box, loads }] of [...all, ...all.toReversed()].entries()) {
    if (turn < all.length * Math.min(2, all.length)) loads.push(...(await measureLoad(served, box, seconds)))
  }
}

const sayFigures = (all: Candidate[]) => {
  const several = all.length > 1
  head(
    'figure',
    'floor',
    ...all.flatMap((_, index) => [`ms (${index + 1})`, 'floor, ms', 'ratio']),
    ...(several ? ['2 / 1', '2 / 1 at p10'] : []),
  )
  for (const [index, { name, floor }] of all[0]!.figures.entries()) {
    const found = all.map(({ taken }) => taken[index]).filter((each) => each !== undefined)
    if (found.length === 0) continue
    const cells = found.flatMap((each) => {
      const [ours, below] = [median(each.ours), floorOf(each)]
      return [ms(ours), ms(below), (ours / below).toFixed(2)]
    })
    const against = [0.5, 0.1].map(
      (share) => percentile(found[1]?.ours ?? [], share) / percentile(found[0]!.ours, share),
    )
    row(name, floor, ...cells, ...(several ? against.map((ratio) => ratio.toFixed(2)) : []))
  }
}

const sayLoads = (all: Candidate[]) => {
  head('load', 'callers', 'server', 'calls/s', 'p50, ms', 'p99, ms', 'processor time per call, ms')
  const lines = all.flatMap(({ loads }, index) => loads.map((load) => ({ ...load, server: index + 1 })))
  const inOrder = (one: (typeof lines)[number], other: (typeof lines)[number]) =>
    one.call.localeCompare(other.call) || one.callers - other.callers || one.server - other.server
  for (const { call, callers, server, callsPerSecond, p50, p99, processor } of lines.toSorted(inOrder)) {
    const spent = Object.entries(processor).map(([name, each]) => `${name} ${each.toFixed(2)}`)
    row(call, String(callers), String(server), callsPerSecond.toFixed(0), ms(p50), ms(p99), spent.join(', '))
  }
}

await using stack = new AsyncDisposableStack()
const all: Candidate[] = []
let floors: Floors | undefined
for (const checkout of checkouts) {
  const served = stack.use(await Served.start(checkout))
  floors ??= stack.use(await Floors.open(served.databaseUrl()))
  all.push({ served, ...(await prepare(served, floors, rounds)), taken: [], loads: [] })
}
await measure(all)
for (const [index, { served }] of all.entries()) console.log(`server ${index + 1}: ${served.checkout}`)
sayFigures(all)
if (!values['no-load']) sayLoads(all)
const kept = all.map(({ served, figures, taken, loads }) => ({
  checkout: basename(resolve(served.checkout)),
  figures: figures.map(({ name, floor }, index) => ({ name, floor, ...taken[index] })),
  loads,
}))
console.log(keep('run', { turns, rounds, servers: kept }))
