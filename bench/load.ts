// Measures how many calls per second a server can serve, for 1, 8 and 64 callers at the same time. Prints the calls per second, the
// 50th and 99th percentile of their times, and the processor time of each program.
import { previewPort } from './figures.ts'
import { percentile, type Samples, timed } from './samples.ts'
import { processorMs, type Sandbox, type Served } from './served.ts'

export type Load = {
  call: string
  callers: number
  callsPerSecond: number
  p50: number
  p99: number
  /** Milliseconds of processor time per call, by program. */
  processor: Record<string, number>
}

const carry = async (served: Served, box: Sandbox, callers: number, seconds: number, work: () => Promise<unknown>) => {
  const pids = { ...served.programs(), agent: served.agentPid(box), client: process.pid }
  const spent = () => Object.entries(pids).map(([name, pid]) => [name, processorMs(pid)] as const)
  await Promise.all(Array.from({ length: callers }, work))
  const before = new Map(spent())
  const began = performance.now()
  const samples: Samples = []
  const call = async () => {
    while (performance.now() - began < seconds * 1000) samples.push(await timed(work))
  }
  await Promise.all(Array.from({ length: callers }, call))
  const elapsed = (performance.now() - began) / 1000
  const processor = Object.fromEntries(spent().map(([name, ms]) => [name, (ms - before.get(name)!) / samples.length]))
  const [p50, p99] = [percentile(samples, 0.5), percentile(samples, 0.99)]
  return { callers, callsPerSecond: samples.length / elapsed, p50, p99, processor }
}

export const measureLoad = async (served: Served, box: Sandbox, seconds: number): Promise<Load[]> => {
  const loads: Load[] = []
  for (const [call, work] of [
    ['execute', () => served.execute(box, 'true')],
    ['preview GET', () => served.preview(box, previewPort)],
  ] as const) {
    for (const callers of [1, 8, 64]) loads.push({ call, ...(await carry(served, box, callers, seconds, work)) })
  }
  return loads
}
